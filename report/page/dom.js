// An element with these attributes and children; text stays text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A head that sorts: it calls sort(1), sort(-1) and sort(0), which is the order from before.
function sortable(head, heads, sort) {
  const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
  head.replaceChildren(button);
  head.setAttribute("aria-sort", "none");
  const next = { none: ["ascending", 1], ascending: ["descending", -1], descending: ["none", 0] };
  button.addEventListener("click", () => {
    const [state, direction] = next[head.getAttribute("aria-sort")];
    for (const other of heads()) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", state);
    sort(direction);
  });
}

// Numbers before words, and last, whichever way it is sorted, what is missing.
const collator = new Intl.Collator("en", { numeric: true });
function compare(a, b, direction) {
  const missing = (value) => value === null || value === "";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  if (typeof a !== typeof b) return (typeof a === "number" ? -1 : 1) * direction;
  return (typeof a === "number" ? a - b : collator.compare(a, b)) * direction;
}

// Whether a text has every word that was typed.
const words = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);
const has = (text, wanted) => wanted.every((word) => text.includes(word));
