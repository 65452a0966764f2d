const VERDICTS = {
  passed: "All gates and cases passed",
  failed: "Failed",
  not_judged: "Not judged as a whole",
};

/** @returns {Element} What the page is about, and whether to merge. */
function drawHeader() {
  const run = head.runs[0];
  const meta = [
    run.started_at && h("span", {}, run.started_at.replace("T", " ").replace("+00:00", " UTC")),
    typeof run.duration_s === "number" && h("span", {}, duration(run.duration_s)),
    run.commit && h("span", {}, t("commit {commit}", { commit: run.commit.slice(0, 12) })),
    run.version && h("span", {}, `pytest-llmeval-suite ${run.version}`),
    head.runs.length > 1 && run.label && h("span", {}, run.label),
  ];
  return h(
    "header",
    { class: `banner ${run.verdict}` },
    h("div", { class: "verdict" }, sign(run.verdict), h("h1", {}, t(VERDICTS[run.verdict]), h("small", {}, reasons(run)))),
    h("p", { class: "meta" }, meta),
  );
}

/** @param {any} run @returns {string} What made the verdict. */
function reasons(run) {
  const own = head.entries.filter((each) => each.run === 0);
  const all = (pick) => own.reduce((sum, each) => sum + pick(each), 0);
  const gates = (outcome) => all((each) => each.gates.filter((gate) => gate.outcome === outcome).length);
  const approved = all((each) => (each.snapshot || []).filter((verdict) => verdict.outcome === "failed").length);
  const cases = (outcome) => all((each) => each.counts[outcome] || 0);
  const total = all((each) => each.gates.length);
  const said = [
    [gates("failed"), "{n} gate failed", "{n} gates failed"],
    [approved, "{n} approved score not kept", "{n} approved scores not kept"],
    [gates("not_judged"), "{n} gate not judged", "{n} gates not judged"],
    [cases("failed"), "{n} case failed", "{n} cases failed"],
    [cases("errored"), "{n} case without a score because of an error", "{n} cases without a score because of errors"],
    [cases("known_failure"), "{n} known failure", "{n} known failures"],
    [cases("not_run"), "{n} case did not run", "{n} cases did not run"],
    [Object.keys(run.faults).length, "{n} file with faults", "{n} files with faults"],
  ];
  const found = said.filter(([count]) => count).map(([count, one, many]) => counted(count, one, many));
  if (run.verdict === "passed") found.unshift(counted(total, "{n} gate", "{n} gates"), counted(cases("passed"), "{n} case passed", "{n} cases passed"));
  return found.join(t(", "));
}

/** @returns {Element[]} */
function drawOverview() {
  const run = head.runs[0];
  const faults = Object.entries(run.faults);
  const shown = groups.flatMap((group, place) =>
    group.shown.filter((entry) => head.entries[entry].run === 0).map((entry) => ({ place, entry })),
  );
  const urgent = shown.filter(({ entry }) => head.entries[entry].verdict !== "passed");
  const calm = shown.filter(({ entry }) => head.entries[entry].verdict === "passed");
  return [
    faults.length
      ? section(t("Faulty files"), h("ul", { class: "faults" }, faults.flatMap(([, lines]) => lines.map((line) => h("li", {}, line)))))
      : null,
    urgent.map(({ entry, place }) => drawSuite(entry, place, true)),
    calm.length > 3 || (urgent.length && calm.length > 1)
      ? section(t("Suites that passed"), suiteTable(calm), calm.map(({ entry, place }) => drawSuite(entry, place, false)))
      : calm.map(({ entry, place }) => drawSuite(entry, place, true)),
    shown.length ? null : h("p", { class: "empty" }, t("No suite ran.")),
  ].flat();
}

/** @param {{entry: number, place: number}[]} listed @returns {Element} */
function suiteTable(listed) {
  const rows = listed.map(({ entry, place }) => {
    const { suite, counts, gates, verdict } = head.entries[entry];
    const passed = gates.filter((gate) => gate.outcome === "passed").length;
    return [
      [sign(verdict), " ", h("a", { href: linkTo({ ...NO_FILTERS, view: "numbers", suite: place, sort: "" }) }, suite)],
      `${counts.passed ?? 0}/${counts.total}`,
      `${passed}/${gates.length}`,
    ];
  });
  return table([t("suite"), t("cases passed"), t("gates passed")], rows, { caption: t("Suites that passed") });
}

/** @param {number} number @param {number} place @param {boolean} open @returns {Element} */
function drawSuite(number_, place, open) {
  const entry = head.entries[number_];
  const link = (outcome) => linkTo({ ...NO_FILTERS, view: "cases", suite: place, outcome, system: systemOf(number_), sort: "" });
  const title = [sign(entry.verdict), " ", entry.suite];
  const body = [
    h("p", { class: "path" }, entry.path),
    drawCounts(entry, link),
    drawNotices(entry),
    entry.gates.length ? h("ul", { class: "gates" }, [...entry.gates].sort(byUrgency).map(drawGate)) : h("p", { class: "empty" }, t("This suite has no gates.")),
    drawChanges(entry, place),
  ];
  return open
    ? h("section", { class: "suite" }, h("h2", {}, title), body)
    : h("details", { class: "suite" }, h("summary", {}, title), body);
}

/** @param {number} entry @returns {string} */
function systemOf(entry) {
  return groups.find((group) => group.entries.includes(entry)).shown.length > 1 ? sourceName(entry) : "";
}

const URGENCY = ["failed", "undecided", "not_judged", "passed"];

/** @param {any} one @param {any} other @returns {number} */
function byUrgency(one, other) {
  return URGENCY.indexOf(one.outcome) - URGENCY.indexOf(other.outcome);
}

/** @param {any} gate @returns {Element} */
function drawGate(gate) {
  return h(
    "li",
    { class: `gate ${gate.outcome}` },
    sign(gate.outcome),
    h("div", { class: "said" }, h("code", {}, gate.gate), h("p", {}, translated(gate.reason))),
    h("div", { class: "line" }, numberLine(gate)),
    h("span", { class: "figure" }, number(gate.value)),
  );
}

/** @param {any} entry @param {(outcome: string[]) => string} link @returns {Element} */
function drawCounts(entry, link) {
  const { counts } = entry;
  const parts = ["passed", "failed", "errored", "xfailed", "known_failure", "skipped", "not_run"].filter((name) => counts[name]);
  return h(
    "div",
    { class: "counts" },
    h(
      "svg:svg",
      { class: "bar", viewBox: "0 0 100 2", preserveAspectRatio: "none", "aria-hidden": "true" },
      parts.reduce(
        ({ x, drawn }, name) => {
          const width = (100 * counts[name]) / counts.total;
          return { x: x + width, drawn: [...drawn, h("svg:rect", { class: name, x, y: 0, width, height: 2 })] };
        },
        { x: 0, drawn: [] },
      ).drawn,
    ),
    h(
      "p",
      {},
      h("a", { href: link([]) }, counted(counts.total, "{n} case", "{n} cases")),
      parts.map((name) => [" ", h("a", { href: link([name]) }, sign(name), ` ${counts[name]} ${outcomeName(name)}`)]),
      entry.pass_rate.value === null ? null : h("span", { class: "rate" }, ` ${t("pass rate")} ${number(entry.pass_rate.value)} (${interval(entry.pass_rate.low, entry.pass_rate.high)})`),
    ),
  );
}

/** @param {any} entry @returns {Element|null} What keeps numbers from being comparable, and what they lack. */
function drawNotices(entry) {
  const said = (entry.snapshot || []).filter((each) => each.kind === "not_comparable" || each.outcome === "not_judged");
  const lines = [...new Set(said.map((each) => (each.metric === "*" ? each.reason : `${each.metric}: ${each.reason}`)))];
  lines.push(...(entry.changes?.notes || []));
  if (entry.left_out) lines.push(counted(entry.left_out, "{n} case left out: it has no prediction", "{n} cases left out: they have no prediction"));
  if (entry.stability) lines.push(`${t("repeats")}: ${Object.entries(entry.stability).map(([name, count]) => `${count} ${outcomeName(name)}`).join(t(", "))}`);
  if (entry.shared_inputs) lines.push(t("{n} cases have the input of an earlier case, so intervals are too narrow unless cluster_by names a label that such cases share", { n: entry.shared_inputs }));
  return lines.length ? h("ul", { class: "notices" }, lines.map((line) => h("li", {}, translated(line)))) : null;
}

/** @param {any} entry @param {number} place @returns {Element|null} What fell and rose against the baseline or the approved scores. */
function drawChanges(entry, place) {
  const found = entry.changes ? entry.changes.metrics : approvedChanges(entry);
  if (!found.length) return null;
  const order = ["fell", "vanished", "rose", "unclear", "new", "same"];
  const moved = found.filter((each) => each.kind !== "same").sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  const same = found.length - moved.length;
  const reach = Math.max(...moved.flatMap((each) => [each.difference, each.low, each.high].map((at) => Math.abs(at ?? 0))));
  const lower = new Set(entry.lower_is_better || []);
  const against = entry.changes ? t(entry.changes.against) : t("approved scores");
  const rows = moved.map((each) => [
    [sign(each.kind, kindName(each.kind, lower.has(each.metric))), ` ${each.metric}`],
    h("span", { class: `kind ${each.kind}` }, kindName(each.kind, lower.has(each.metric))),
    number(each.baseline),
    number(each.value),
    signed(each.difference),
    interval(each.low, each.high),
    { class: "drawn", cell: changeLine(each, reach) },
  ]);
  const headers = [t("metric"), t("change"), t("before"), t("now"), t("difference"), t("interval"), ""];
  return h(
    "div",
    { class: "changes" },
    state.view === "comparison" ? null : h("h3", {}, t("Against {baseline}", { baseline: against })),
    moved.length ? table(headers, rows, { texts: [0, 1], caption: t("Against {baseline}", { baseline: against }) }) : null,
    same ? h("p", { class: "quiet" }, counted(same, "{n} metric unchanged", "{n} metrics unchanged")) : null,
    entry.pair === null || state.view === "comparison" ? null : h("p", {}, h("a", { href: linkTo({ ...NO_FILTERS, view: "comparison", suite: place }) }, t("Compare case by case"))),
  );
}

const KINDS = {
  fell: "fell",
  rose: "rose",
  unclear: "cannot tell",
  same: "unchanged",
  new: "new",
  vanished: "gone",
};

/** @param {string} kind `fell` for what became worse. @param {boolean} lower Whether less is better. @returns {string} */
function kindName(kind, lower) {
  if (lower && kind === "fell") return t("rose, which is worse");
  if (lower && kind === "rose") return t("fell, which is better");
  return t(KINDS[kind]);
}

/** @param {any} entry @returns {any[]} What the verdicts on approved scores say, which have no intervals. */
function approvedChanges(entry) {
  const kinds = { unchanged: "same", improved: "rose", rose_within: "rose", fell_within: "fell", fell_beyond: "fell", new: "new", vanished: "vanished" };
  return (entry.snapshot || [])
    .filter((each) => kinds[each.kind])
    .map((each) => ({
      metric: each.metric, kind: kinds[each.kind], baseline: each.approved, value: each.value,
      difference: each.value === null || each.approved === null ? null : each.value - each.approved, low: null, high: null,
    }));
}
