const app = document.getElementById("app");
/** Counts what is drawn, so that a slow view never replaces a later one. */
let drawing = 0;

/** @returns {Element} */
function drawTabs() {
  const comparable = head.entries.some((entry) => entry.pair !== null);
  const tabs = { overview: t("Overview"), numbers: t("Numbers"), cases: t("Cases"), ...(comparable ? { comparison: t("Comparison") } : {}), ...(head.runs[0].mutation.length ? { mutants: t("Mutants") } : {}) };
  return h(
    "nav",
    { class: "tabs", "aria-label": t("Report") },
    Object.entries(tabs).map(([view, name]) => h("a", { href: linkTo({ ...(view === "cases" ? {} : NO_FILTERS), view, ...(view === "comparison" && (["overview", "mutants"].includes(state.view) || !isCompared(state.suite)) ? { suite: culpritGroup() } : {}) }), "aria-current": state.view === view ? "page" : null }, name)),
    groups.length > 1 && !["overview", "mutants"].includes(state.view)
      ? h("label", { class: "suites" }, t("Suite"), h("select", { name: "suite", change: (event) => go({ ...NO_FILTERS, sort: "", suite: Number(event.target.value) }) }, groups.map((group, place) => h("option", { value: place, selected: place === state.suite }, group.name))))
      : null,
    h("button", { type: "button", class: "keys", title: t("Keys"), "aria-label": t("Keys"), click: showKeys }, "?"),
  );
}

/** @param {Group|undefined} group @param {Row|null} row A case that is to be shown. @returns {Promise<any>} What the view shows. */
async function drawView(group, row) {
  if (state.view === "mutants" && head.runs[0].mutation.length) return drawMutants();
  if (!group || ["overview", "mutants"].includes(state.view)) return drawOverview();
  if (state.view === "cases") return row ? drawCase(row, group) : drawCases(group);
  return state.view === "comparison" ? drawComparison(group, state.suite) : drawNumbers(group, state.suite);
}

/** Draw what the address says. */
async function show() {
  const mine = (drawing += 1);
  const before = document.activeElement;
  const kept = before instanceof HTMLInputElement && before.name ? { name: before.name, at: before.type === "checkbox" ? null : before.selectionStart } : before instanceof HTMLSelectElement ? { name: before.name, at: null } : null;
  const sorting = before?.getAttribute?.("data-sort");
  const scrolled = document.querySelector(".scroller")?.scrollTop || 0;
  const last = state;
  state = parseState(location.hash);
  const group = groups[state.suite];
  const row = state.case ? parseCase(state.case) : null;
  let content;
  try {
    content = await drawView(group, row);
  } catch (error) {
    console.error(error);
    content = h("p", { class: "note", role: "alert" }, t("This view cannot be drawn: {why}", { why: String(error) }));
  }
  if (mine !== drawing) return;
  fill(app, h("a", { class: "skip", href: "#main", click: (event) => { event.preventDefault(); document.getElementById("main").focus(); } }, t("To the content")), drawHeader(), drawNote(), drawTabs(), group && !["overview", "mutants"].includes(state.view) ? h("h2", { class: "on-paper" }, group.name) : null, h("main", { id: "main", tabindex: -1 }, content));
  watchEdges(app);
  document.body.dataset.view = row ? "case" : state.view;
  const scroller = document.querySelector(".scroller");
  if (scroller) {
    if (last?.case && !state.case) scroller.scrollTop = keptScroll;
    shownCases.draw();
  }
  if (row && !last?.case) keptScroll = scrolled;
  const field = kept ? app.querySelector(`[name="${CSS.escape(kept.name)}"]`) : sorting ? app.querySelector(`[data-sort="${CSS.escape(sorting)}"]`) : null;
  if (field) {
    field.focus({ preventScroll: true });
    if (kept?.at !== null && kept?.at !== undefined) field.setSelectionRange(kept.at, kept.at);
  } else if (last && (last.view !== state.view || last.case !== state.case)) {
    scrollTo(0, 0);
    (document.getElementById("case") || document.getElementById("main")).focus({ preventScroll: true });
  }
}

let keptScroll = 0;

/** @returns {Element|null} */
function drawNote() {
  return head.note ? h("p", { class: "note", role: "note" }, translated(head.note)) : null;
}

/** Keys, as `KEYS` names them. @param {KeyboardEvent} event */
function pressed(event) {
  const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?" && !typing) {
    showKeys();
  } else if (event.key === "/" && !typing) {
    event.preventDefault();
    if (state.view === "cases" && !state.case) app.querySelector("[name=q]").focus();
    else go({ view: "cases" });
  } else if (!typing || event.key === "Escape") {
    app.querySelector(`[data-step="${CSS.escape(event.key)}"]`)?.click();
  }
}

/** @type {HTMLDetailsElement[]} What is open on paper only. */
let opened = [];

/** Draw every row and open what is folded while the page is printed. @param {boolean} onPaper */
function printing(onPaper) {
  shownCases.onPaper = onPaper;
  shownCases.draw();
  if (onPaper) opened = [...document.querySelectorAll("details:not([open])")];
  for (const each of opened) each.open = onPaper;
}

async function start() {
  document.documentElement.lang = chinese ? "zh" : "en";
  groupSuites();
  try {
    await loadIndexes();
  } catch (error) {
    fill(app, drawHeader(), h("p", { class: "note", role: "alert" }, t("The cases cannot be unpacked by this browser: {why}", { why: String(error) })));
    return;
  }
  addEventListener("hashchange", show);
  addEventListener("keydown", pressed);
  addEventListener("resize", () => shownCases.draw());
  addEventListener("copy", copied);
  addEventListener("toggle", (event) => event.target.querySelectorAll?.(".scroll").forEach(markEdges), true);
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  await show();
  document.body.dataset.ready = "true";
}

start();
