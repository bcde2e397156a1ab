// What a note says is said where its number stands, too; its place is opened when it is linked to.
for (const mark of document.querySelectorAll("sup a")) {
  mark.title = document.getElementById(mark.hash.slice(1)).textContent;
}
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
// Paper does not unfold.
addEventListener("beforeprint", () => { for (const folded of document.querySelectorAll("details")) folded.open = true; });
