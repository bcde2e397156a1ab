// A note's place is opened when it is linked to, and everything before printing.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details");
  if (folded && !folded.open) {
    folded.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", unfold);
unfold();
addEventListener("beforeprint", () => { for (const folded of document.querySelectorAll("details")) folded.open = true; });
