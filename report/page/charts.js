// A chart as a file of its own: on white, in the colours of the light page.
for (const button of document.querySelectorAll("[data-downloads]")) {
  button.addEventListener("click", () => {
    const id = button.dataset.downloads;
    const svg = document.querySelector(`#chart-${id} svg`).cloneNode(true);
    svg.setAttribute("style", "background: #ffffff");
    const text = new XMLSerializer().serializeToString(svg).replace(/var\(--[\w-]+, ([^()]*)\)/g, "$1");
    const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    make("a", { href: address, download: `${id}.svg` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}
