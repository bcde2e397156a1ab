// Every record: a table in pages, which sorts and filters, and #r12 for all that is known of one.
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 50;
const named = new Map(data.columns.map((column) => [column.name, column]));
const at = (column, i) => (column.at ? column.values[column.at[i]] : column.values[i]);
const of = (name, i) => at(named.get(name), i);
const place = (i) => [of("source", i), of("line", i)].filter(Boolean).join(":");
const plain = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : value);

function shown(value) {
  if (value === null) return "";
  if (typeof value !== "number" || Number.isInteger(value)) return String(plain(value));
  return String(Number(value.toPrecision(5)));
}

function sign(implementation) {
  const look = data.looks[implementation];
  if (!look) return "";
  const spaced = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const svg = spaced("svg", { class: "sign", width: 26, height: 12, viewBox: "-13 -6 26 12", "aria-hidden": true });
  svg.append(spaced("use", { href: `#${look}` }));
  return svg;
}

if (data.count) {
  const everyone = [...Array(data.count).keys()];
  const figures = data.columns.slice(5);
  const listed = [
    { title: "record", key: place, cell: (i) => make("a", { href: `#r${i}` }, place(i) || `r${i}`) },
    ...["implementation", "workload", "outcome"].map((name) => ({ title: name, key: (i) => of(name, i) })),
    ...figures.map((column) => ({ title: column.name, key: (i) => plain(at(column, i)) })),
  ];
  listed[1].cell = (i) => make("span", {}, sign(of("implementation", i)), of("implementation", i));
  for (const column of listed) {
    const some = everyone.find((i) => typeof column.key(i) === "number");
    column.number = some !== undefined;
    column.cell ??= (i) => shown(column.key(i));
  }

  const input = make("input", { type: "search", placeholder: "Filter records", "aria-label": "Filter the records", autocomplete: "off" });
  const count = make("output");
  const every = make("button", { type: "button", hidden: "" }, "Show all");
  const head = make("tr");
  const body = make("tbody");
  const back = make("button", { type: "button" }, "Previous");
  const on = make("button", { type: "button" }, "Next");
  const where = make("span");
  document.getElementById("record-list").append(
    make("p", { class: "tools" }, input, count, every),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "records-title" },
      make("table", { "aria-labelledby": "records-title" }, make("thead", {}, head), body)),
    make("p", { class: "pager" }, back, where, on),
  );

  let subset = everyone;
  let whose = "";
  let sorted = { key: null, direction: 0 };
  let found = everyone;
  let first = 0;
  let texts = null;

  const text = (i) => [place(i), ...listed.slice(1).map((column) => column.key(i)).filter((value) => typeof value === "string")].join(" ").toLowerCase();

  function draw() {
    body.replaceChildren(...found.slice(first, first + PAGE).map((i) => make("tr", {}, ...listed.map((column, n) => {
      const attributes = n ? {} : { scope: "row" };
      const value = column.cell(i);
      if (column.number) attributes.class = "number";
      else if (typeof value === "string" && value.length > 60) Object.assign(attributes, { class: "long", title: value });
      return make(n ? "td" : "th", attributes, value);
    }))));
    const last = Math.min(first + PAGE, found.length);
    where.textContent = found.length ? `${first + 1}\u2013${last} of ${found.length}` : "none";
    back.disabled = first === 0;
    on.disabled = last >= found.length;
    count.textContent = [`${found.length} of ${data.count} records`, whose].filter(Boolean).join(" ");
    every.hidden = subset === everyone;
  }

  function find() {
    const wanted = words(input.value);
    if (wanted.length) texts ??= everyone.map(text);
    found = wanted.length ? subset.filter((i) => has(texts[i], wanted)) : [...subset];
    if (sorted.direction) {
      const keys = new Map(found.map((i) => [i, sorted.key(i)]));
      found.sort((a, b) => compare(keys.get(a), keys.get(b), sorted.direction));
    }
    first = 0;
    draw();
  }

  for (const column of listed) {
    const th = make("th", { scope: "col", class: column.number ? "number" : "" }, make("span", { class: "head" }, column.title));
    head.append(th);
    sortable(th, () => head.cells, (direction) => { sorted = { key: column.key, direction }; find(); });
  }
  input.addEventListener("input", find);
  back.addEventListener("click", () => { first -= PAGE; draw(); });
  on.addEventListener("click", () => { first += PAGE; draw(); });
  every.addEventListener("click", () => { subset = everyone; whose = ""; find(); });
  for (const link of document.querySelectorAll("[data-records]")) {
    link.addEventListener("click", () => {
      subset = link.dataset.records.split(",").flatMap((run) => {
        const [from, to = from] = run.split("-").map(Number);
        return Array.from({ length: to - from + 1 }, (_, i) => from + i);
      });
      whose = `of: ${link.closest("figure").querySelector("figcaption").textContent}`;
      input.value = "";
      find();
    });
  }
  draw();

  const panel = document.getElementById("panel");
  panel.setAttribute("aria-labelledby", "panel-title");
  const pairs = (entries) => make("dl", { class: "pairs" }, ...entries.flatMap(([name, value]) => [
    make("dt", {}, name), make("dd", {}, value === null ? "\u2013" : String(plain(value))),
  ]));

  function open() {
    const asked = /^#r(\d+)$/.exec(location.hash);
    const i = asked ? Number(asked[1]) : -1;
    if (i < 0 || i >= data.count) {
      if (panel.open) panel.close();
      return;
    }
    const source = data.sources[of("source", i)];
    const line = of("line", i) ? `, line ${of("line", i)}` : "";
    const close = make("button", { type: "button", class: "close", "aria-label": "Close" }, "\u00d7");
    close.addEventListener("click", () => panel.close());
    panel.replaceChildren(
      close,
      make("h2", { id: "panel-title" }, sign(of("implementation", i)), of("implementation", i)),
      make("p", { class: "workload" }, of("workload", i)),
      pairs([
        ["outcome", of("outcome", i)],
        ["file", `${source ? source.file : of("source", i)}${line}`],
        ...figures.filter((column) => at(column, i) !== null).map((column) => [column.name, at(column, i)]),
      ]),
      ...(source ? [
        make("h3", {}, `Source ${of("source", i)}: ${source.title}`),
        pairs([["command", source.command], ["started", source.started], ["machine", source.machine], ...Object.entries(source.versions)]),
      ] : []),
    );
    if (!panel.open) panel.showModal();
    panel.scrollTop = 0;
  }
  // Closed, the address names no record any more; the page stays where it is.
  panel.addEventListener("close", () => { if (/^#r\d+$/.test(location.hash)) history.replaceState(null, "", "#records"); });
  panel.addEventListener("click", (event) => { if (event.target === panel) panel.close(); });
  addEventListener("hashchange", open);
  open();
}
