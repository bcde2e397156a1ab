// Tables that sort by their heads and show the rows with all words that are typed.
for (const figure of document.querySelectorAll("figure.table")) {
  const body = figure.querySelector("tbody");
  const rows = [...body.rows];
  if (rows.length < 2) continue;
  const heads = [...figure.querySelectorAll("thead th")];
  heads.forEach((head, place) => {
    const key = (row) => {
      const cell = row.cells[place];
      if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
      // A word in a column of numbers says why there is none.
      return head.classList.contains("number") ? null : cell.textContent.trim();
    };
    sortable(head, () => heads, (direction) => {
      const order = [...rows];
      if (direction) {
        const keys = new Map(rows.map((row) => [row, key(row)]));
        order.sort((a, b) => compare(keys.get(a), keys.get(b), direction));
      }
      body.replaceChildren(...order);
    });
  });

  const input = figure.querySelector("input[type=search]");
  const count = figure.querySelector("output");
  const texts = new Map(rows.map((row) => [row, [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase()]));
  input.addEventListener("input", () => {
    const wanted = words(input.value);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !has(texts.get(row), wanted);
      shown += !row.hidden;
    }
    count.textContent = wanted.length ? `${shown} of ${rows.length} rows` : "";
  });
}
