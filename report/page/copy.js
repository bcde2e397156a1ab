// Buttons that copy a text.
for (const button of document.querySelectorAll("[data-copies]")) {
  const said = button.textContent;
  button.addEventListener("click", async () => {
    const element = document.getElementById(button.dataset.copies);
    const items = [...element.querySelectorAll("p, li")];
    const text = items.length ? items.map((item) => item.textContent).join("\n\n") : element.textContent;
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not allowed in this browser: the text is selected at least.
      getSelection().selectAllChildren(element);
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = said; }, 1500);
  });
}
