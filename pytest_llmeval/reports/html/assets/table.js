const ROW_HEIGHT = 36;
const SPARE_ROWS = 8;
const PRINTED_ROWS = 1000;
const MOST_METRICS = 2;
const EXCERPT = 160;

/** What the table of cases shows now: its rows, and how to draw those in sight, or on paper. @type {{rows: Row[], found: Row[], times: Map<Row, number>, draw: () => void, onPaper: boolean}} */
const shownCases = { rows: [], found: [], times: new Map(), draw: () => {}, onPaper: false };

/** @param {Group} group @returns {any[]} Filters, and the rows that pass them; equal failures are one. */
function drawCases(group) {
  const main = mainMetric(group);
  const every = rowsOf(group);
  const count = h("p", { class: "quiet", role: "status", id: "count" });
  const rest = h("p", { class: "quiet on-paper rest" });
  const body = h("div", { class: "rows", role: "rowgroup" });
  const columns = columnsOf(group, main);
  const header = h("div", { role: "row", class: "row head" }, columns.map((each) => headerCell(each)));
  const grid = h("div", { class: "cases", role: "table", "aria-label": t("Cases") }, h("div", { role: "rowgroup" }, header), body);
  const scroller = h("div", { class: "scroller", scroll: () => shownCases.draw(), keydown: moveFocus }, grid);
  const update = () => {
    const metric = state.metric || main;
    const found = sorted(filtered(every, state, main), state.sort, metric);
    const folds = !state.sort && !state.alike && !bySystems(group);
    shownCases.times = folds ? withoutEqual(found, metric) : new Map();
    shownCases.rows = bySystems(group) ? uniqueCases(found) : folds ? [...shownCases.times.keys()] : found;
    shownCases.found = bySystems(group) ? shownCases.rows : found;
    const all = bySystems(group) ? uniqueCases(every).length : every.length;
    const folded = shownCases.found.length - shownCases.rows.length;
    count.textContent = t("{n} of {all} cases", { n: shownCases.found.length, all }) + (folded ? t(", equal failures as one") : "");
    rest.textContent = shownCases.rows.length > PRINTED_ROWS ? t("Only the first {n} are printed.", { n: PRINTED_ROWS }) : "";
    grid.setAttribute("aria-rowcount", String(shownCases.rows.length + 1));
    body.style.height = `${shownCases.rows.length * ROW_HEIGHT}px`;
    shownCases.draw();
  };
  shownCases.draw = () => drawRows(scroller, body, columns);
  update();
  if (state.q) searchTexts(group, state.q, update);
  requestAnimationFrame(shownCases.draw);
  const template = columns.map((each) => each.width).join(" ");
  grid.style.setProperty("--columns", template);
  grid.classList.toggle("matrixed", bySystems(group));
  grid.style.setProperty("--narrow", `minmax(0, 1.2fr) repeat(${group.shown.length}, minmax(0, 1fr))`);
  return [drawFilters(group, main), h("div", { class: "above" }, count, drawExport(group)), rest, scroller];
}

/** @param {Group} group @returns {boolean} Whether the rows are cases, and the columns systems. */
function bySystems(group) {
  return state.rows === "systems" && group.shown.length > 1;
}

/** @param {Row[]} rows @returns {Row[]} The first row of each case. */
function uniqueCases(rows) {
  return [...new Map([...rows].reverse().map((row) => [idOf(row), row])).values()].reverse();
}

/** @param {Group} group @param {string} main @returns {{name: string, title: string, width: string, kind: string, cell: (row: Row) => any}[]} */
function columnsOf(group, main) {
  const of = group.shown.length > 1 && !bySystems(group) ? (row) => h("small", { class: "of" }, ` ${systemName(row.entry)}`) : () => null;
  const id = { name: "@id", title: t("case"), width: "minmax(8rem, 1.5fr)", kind: "id", cell: (row) => [h("a", { href: linkTo({ case: `${row.entry}/${idOf(row)}` }), "data-case": true }, h("bdi", {}, idOf(row))), of(row), equalOnes(row)] };
  if (bySystems(group)) {
    return [id, ...group.shown.map((entry) => ({ name: "", title: systemName(entry), width: "minmax(9rem, 3fr)", kind: "answer", cell: (row) => systemAnswer(find(entry, idOf(row)), state.metric || main) }))];
  }
  const chosen = state.metric && state.metric !== main ? state.metric : "";
  const metrics = [...new Set([chosen || main, ...metricsOf(group)])].filter(Boolean).slice(0, group.shown.length > 1 ? 1 : MOST_METRICS);
  const compared = group.shown.some((entry) => head.entries[entry].pair !== null);
  const metric = state.metric || main;
  const columns = [
    { name: "@outcome", title: t("outcome"), width: "6.5rem", kind: "outcome", cell: (row) => [sign(outcomeOf(row)), h("span", { class: "name" }, ` ${outcomeName(outcomeOf(row))}`)] },
    id,
  ];
  if (group.shown.length > 1) columns.push({ name: "", title: t("system"), width: "minmax(5rem, 1fr)", kind: "system", cell: (row) => systemName(row.entry) });
  for (const name of metrics) columns.push({ name, title: name, width: "minmax(5.5rem, 0.8fr)", kind: name === metric ? "number first" : "number", cell: (row) => figure(scoreOf(row, name)) });
  if (compared) columns.push({ name: "@change", title: t("change"), width: "6rem", kind: "number", cell: (row) => changeCell(row, metric) });
  columns.push(
    { name: "", title: t("question"), width: "minmax(7rem, 2fr)", kind: "said", cell: (row) => excerptOfCase(row, (texts) => (texts.input === undefined ? "" : textOf(texts.input))) },
    { name: "", title: t("answer"), width: "minmax(7rem, 2fr)", kind: "said", cell: (row) => excerptOfCase(row, answerText) },
    { name: "", title: t("reason"), width: "minmax(8rem, 2fr)", kind: "reason", cell: (row) => indexes[row.entry].reasons[row.place] },
  );
  return columns;
}

/** @param {Row} row @returns {Element|null} The way to the cases that fail as this one does. */
function equalOnes(row) {
  const more = (shownCases.times.get(row) || 1) - 1;
  return more ? [" ", h("a", { class: "alike", href: linkTo({ alike: alikeOf(row) }) }, counted(more, "+{n} equal", "+{n} equal"))] : null;
}

/** @param {Row} row @param {(texts: any) => string} part @returns {Element} The beginning of a text of a case, once it is unpacked. */
function excerptOfCase(row, part) {
  const shown = h("span", { class: "excerpt", dir: "auto" });
  textsOf(row).then((texts) => fill(shown, shortText(part(texts)).slice(0, EXCERPT)), () => {});
  return shown;
}

/** @param {Row} row @param {string} metric @returns {any} */
function changeCell(row, metric) {
  const kinds = { regressed: "fell", worse: "fell", "now passing": "rose", better: "rose", equal: "same", new: "new" };
  const change = changeOf(row, metric);
  const other = counterpart(row);
  const [now, then] = [scoreOf(row, metric), other && scoreOf(other, metric)];
  const moved = now !== null && then !== null ? signedFigure(now - then) : "";
  return h("span", { class: `kind ${kinds[change]}` }, sign(kinds[change], t(change)), " ", change === "equal" ? "" : moved);
}

/** @param {{name: string, title: string, kind: string}} column @returns {Element} */
function headerCell({ name, title, kind }) {
  if (!name) return h("span", { role: "columnheader", class: kind }, title);
  const first = kind.startsWith("number") ? `-${name}` : name;
  const second = kind.startsWith("number") ? name : `-${name}`;
  const direction = state.sort === name ? "ascending" : state.sort === `-${name}` ? "descending" : "none";
  const next = state.sort === first ? second : state.sort === second ? "" : first;
  const arrow = { ascending: " ↑", descending: " ↓", none: "" }[direction];
  return h(
    "span",
    { role: "columnheader", class: kind, "aria-sort": direction },
    h("button", { type: "button", title, click: () => go({ sort: next }), "data-sort": name }, h("span", { class: "name" }, title), arrow),
  );
}

/** Draw the rows that are in sight; a table of ten thousand has no more elements than one of fifty. */
function drawRows(scroller, body, columns) {
  const top = Math.max(0, scroller.scrollTop - ROW_HEIGHT);
  const first = shownCases.onPaper ? 0 : Math.max(0, Math.floor(top / ROW_HEIGHT) - SPARE_ROWS);
  const end = shownCases.onPaper ? PRINTED_ROWS : Math.ceil((top + (scroller.clientHeight || 600)) / ROW_HEIGHT) + SPARE_ROWS;
  const last = Math.min(shownCases.rows.length, end);
  const focused = document.activeElement?.closest?.("[data-row]")?.getAttribute("data-row");
  const rows = [];
  for (let at = first; at < last; at += 1) {
    const row = shownCases.rows[at];
    const element = h(
      "div",
      { role: "row", class: `row ${outcomeOf(row)}`, "aria-rowindex": at + 2, "data-row": at, click: (event) => event.target.closest("a") || go({ case: `${row.entry}/${idOf(row)}` }) },
      columns.map((column) => h("span", { role: "cell", class: column.kind }, column.cell(row))),
    );
    element.style.transform = `translateY(${at * ROW_HEIGHT}px)`;
    rows.push(element);
  }
  body.replaceChildren(...rows);
  if (focused !== null && focused !== undefined) body.querySelector(`[data-row="${focused}"] a`)?.focus({ preventScroll: true });
}

/** Arrow keys move between rows, Home and End to the ends; rows out of sight are drawn first. @param {KeyboardEvent} event */
function moveFocus(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  const now = event.target.closest("[data-row]");
  if (!now || !(event.key in steps)) return;
  event.preventDefault();
  const last = shownCases.rows.length - 1;
  const next = Math.max(0, Math.min(last, Number(now.getAttribute("data-row")) + steps[event.key]));
  const scroller = event.currentTarget;
  const top = next * ROW_HEIGHT;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top + 2 * ROW_HEIGHT > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + 2 * ROW_HEIGHT - scroller.clientHeight;
  shownCases.draw();
  scroller.querySelector(`[data-row="${next}"] a`)?.focus({ preventScroll: true });
}

/** @param {Group} group @param {string} main @returns {Element} */
function drawFilters(group, main) {
  const entries = group.shown.map((entry) => indexes[entry]);
  const outcomes = OUTCOME_ORDER.filter((name) => entries.some((index) => index.outcomes.values.includes(name)));
  const labels = [...new Set(entries.flatMap((index) => Object.keys(index.labels)))];
  const statuses = [...new Set(entries.flatMap((index) => index.statuses.values))];
  const compared = group.shown.some((entry) => head.entries[entry].pair !== null);
  const valuesOf = (label) => [...new Set(entries.flatMap((index) => [...(index.labels[label]?.values || []), ...(index.labels[label]?.codes.includes(-1) ? ["(none)"] : [])]))];
  const changes = { changed: t("changed"), regressed: t("regressed"), "now passing": t("now passing"), worse: t("worse"), better: t("better"), equal: t("equal"), new: t("new") };
  const filtering = Object.entries(NO_FILTERS).some(([name, none]) => JSON.stringify(state[name]) !== JSON.stringify(none));
  return h(
    "form",
    { class: "filters", role: "search", submit: (event) => event.preventDefault() },
    h("label", { class: "wide" }, t("Search"), h("input", { type: "search", name: "q", value: state.q, placeholder: t("id, reason, texts"), input: typed("q") })),
    h(
      "fieldset",
      {},
      h("legend", {}, t("Outcome")),
      outcomes.map((name) =>
        h("label", { class: "check" }, h("input", { type: "checkbox", name: `outcome-${name}`, checked: state.outcome.includes(name), change: (event) => go({ outcome: toggled(name, event.target.checked) }) }), sign(name), ` ${outcomeName(name)}`),
      ),
    ),
    group.shown.length > 1 ? choice(t("System"), "system", state.system, group.shown.map((entry) => [systemName(entry), systemName(entry)]), (value) => go({ system: value })) : null,
    group.shown.length > 1 ? choice(t("Rows"), "rows", state.rows, [["systems", t("cases x systems")]], (value) => go({ rows: value, sort: "" }), t("answers")) : null,
    labels.map((label) => choice(label, `label.${label}`, state.labels[label] ?? "", valuesOf(label).map((each) => [each, each]), (value) => go({ labels: withLabel(label, value) }))),
    statuses.length ? choice(t("Repeats"), "repeats", state.repeats, statuses.map((each) => [each, outcomeName(each)]), (value) => go({ repeats: value })) : null,
    compared ? choice(t("Change"), "change", state.change, Object.entries(changes), (value) => go({ change: value })) : null,
    choice(t("Metric"), "metric", state.metric, metricsOf(group).map((each) => [each, each]), (value) => go({ metric: value }), main),
    h(
      "div",
      { class: "range" },
      h("label", {}, t("from"), h("input", { name: "min", inputmode: "decimal", size: 5, value: state.min, input: typed("min") })),
      h("label", {}, t("to"), h("input", { name: "max", inputmode: "decimal", size: 5, value: state.max, input: typed("max") })),
    ),
    filtering ? h("button", { type: "button", class: "reset", click: () => go({ ...NO_FILTERS }) }, t("Clear filters")) : null,
  );
}

/** @param {string} name @returns {(event: Event) => void} */
function typed(name) {
  return (event) => go({ [name]: event.target.value }, true);
}

/** @param {string} title @param {string} name @param {string} value @param {[string, string][]} options @param {(value: string) => void} chosen @param {string} [none] */
function choice(title, name, value, options, chosen, none = t("all")) {
  return h(
    "label",
    {},
    title,
    h(
      "select",
      { name, change: (event) => chosen(event.target.value) },
      h("option", { value: "", selected: !value }, none),
      options.map(([each, shown]) => h("option", { value: each, selected: each === value }, shown)),
    ),
  );
}

/** @param {string} outcome @param {boolean} wanted @returns {string[]} */
function toggled(outcome, wanted) {
  const others = state.outcome.filter((each) => each !== outcome);
  return wanted ? [...others, outcome] : others;
}

/** @param {string} label @param {string} value @returns {Object<string, string>} */
function withLabel(label, value) {
  const { [label]: _, ...others } = state.labels;
  return value ? { ...others, [label]: value } : others;
}
