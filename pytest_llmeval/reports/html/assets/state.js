/**
 * What the page shows; it is in the address, so that a link shows the same.
 * @typedef {{view: string, suite: number, q: string, outcome: string[], system: string, labels: Object<string, string>,
 *   metric: string, min: string, max: string, change: string, repeats: string, cell: string, alike: string, sort: string,
 *   rows: string, case: string}} State
 * @type {State}
 */
let state;

const VIEWS = ["overview", "numbers", "cases", "comparison", "mutants"];
const TEXTS = ["q", "system", "metric", "min", "max", "change", "repeats", "cell", "alike", "sort", "rows", "case"];

/** @param {string} hash @returns {State} */
function parseState(hash) {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (name) => found.get(name) || "";
  const view = VIEWS.includes(text("view")) ? text("view") : "overview";
  const suite = view === "comparison" && !found.has("suite") ? culpritGroup() : Number(text("suite"));
  const parsed = {
    view,
    suite: Number.isInteger(suite) && suite >= 0 && suite < groups.length ? suite : 0,
    outcome: text("outcome").split(",").filter(Boolean),
    labels: {},
  };
  for (const name of TEXTS) parsed[name] = text(name);
  for (const [name, value] of found) if (name.startsWith("label.")) parsed.labels[name.slice(6)] = value;
  return /** @type {State} */ (parsed);
}

/** @param {State} shown @returns {string} */
function formatState(shown) {
  const written = new URLSearchParams();
  if (shown.view !== "overview") written.set("view", shown.view);
  if (shown.suite || (shown.view === "comparison" && groups.length > 1)) written.set("suite", String(shown.suite));
  if (shown.outcome.length) written.set("outcome", shown.outcome.join(","));
  for (const name of TEXTS) if (shown[name]) written.set(name, shown[name]);
  for (const [name, value] of Object.entries(shown.labels)) written.set(`label.${name}`, value);
  return `#${written}`;
}

const NO_FILTERS = {
  q: "", outcome: [], system: "", labels: {}, metric: "", min: "", max: "", change: "", repeats: "", cell: "", alike: "", case: "",
};

/** @param {Partial<State>} changes @returns {string} The address that shows something else. */
function linkTo(changes) {
  return formatState({ ...state, case: "", ...changes });
}

/**
 * Show something else.
 * @param {Partial<State>} changes
 * @param {boolean} [quietly] Without a step in the browser's history, such as for a letter typed into the search.
 */
function go(changes, quietly = false) {
  const hash = linkTo(changes);
  if (quietly) {
    history.replaceState(null, "", hash);
    show();
  } else if (location.hash === hash || (hash === "#" && !location.hash)) {
    show();
  } else {
    location.hash = hash;
  }
}
