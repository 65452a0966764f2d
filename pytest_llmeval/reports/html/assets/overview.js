/** Answers on a run, as the report has them. */
const ANSWERS = { merge: "Merge", stop: "Do not merge", check: "Check before you merge", none: "No answer" };

/** @param {any} run @returns {string} How the answer is drawn: green only if the run can be merged. */
function lookOf({ verdict, answer }) {
  return verdict === "passed" && answer.words !== ANSWERS.merge ? "not_judged" : verdict;
}

/** @returns {Element} What the page is about, and whether to merge. */
function drawHeader() {
  const run = head.runs[0];
  const meta = [
    run.started_at && h("span", {}, run.started_at.replace("T", " ").replace("+00:00", " UTC")),
    typeof run.duration_s === "number" && h("span", {}, duration(run.duration_s)),
    run.commit && h("span", {}, t("commit {commit}", { commit: run.commit.slice(0, 12) })),
    run.branch && h("span", {}, t("branch {branch}", { branch: run.branch })),
    run.pull_request && h("span", {}, t("pull request {number}", { number: run.pull_request })),
    run.version && h("span", {}, `pytest-llmeval-suite ${run.version}`),
    head.runs.length > 1 && run.label && h("span", {}, run.label),
  ];
  const look = lookOf(run);
  const counts = run.verdict === "failed" ? failures(run) : reasons(run);
  return h(
    "header",
    { class: `banner ${look}` },
    h("div", { class: "verdict" }, sign(look), h("div", {}, h("h1", {}, t(run.answer.words), drawReason(run)), drawOpenSuites(run), counts[0] ? h("p", { class: "counted" }, counts) : null)),
    h("p", { class: "meta" }, meta),
  );
}

/** Gates that passed, up to which they are beside those that did not. */
const FEW_PASSED = 3;

/** @param {any} run @returns {Element|null} Links to the suites whose gates could not decide. */
function drawOpenSuites({ verdict }) {
  if (verdict !== "undecided") return null;
  const open = head.entries.map((each, entry) => ({ ...each, entry })).filter((each) => each.run === 0 && each.gates.some((gate) => gate.outcome === "undecided"));
  return h("p", { class: "counted" }, t("to check"), ": ", open.map((each, at) => [at ? t(", ") : "", suiteLink(each.entry, each.suite)]));
}

/** @param {number} entry @param {string} name @returns {Element} A link to the numbers of its suite. */
function suiteLink(entry, name) {
  const suite = groups.findIndex((group) => group.entries.includes(entry));
  return h("a", { href: linkTo({ ...NO_FILTERS, view: "numbers", suite, sort: "" }) }, name);
}

/** @param {any} run @returns {any} Why the run has this answer; of a failed one the cause, what the worse cases share, and a link to the first case. */
function drawReason({ answer: { why, headline } }) {
  if (!headline) return why ? [": ", h("small", {}, translated(why))] : null;
  const { cause, shared, place, case: id } = headline;
  const suite = groups.findIndex((group) => group.entries.includes(place));
  return [": ", h("small", {}, cause, shared ? `; ${shared}` : null, id ? ["; ", t("start with"), " ", h("code", {}, caseLink(place, id, suite))] : null)];
}

/** @param {any} run That failed. @returns {any[]} What its headline leaves out: whether failures are new, and how much else failed. */
function failures({ answer: { headline }, new_failures: fresh, compared, faults }) {
  const own = head.entries.filter((each) => each.run === 0);
  const all = (pick) => own.reduce((sum, each) => sum + pick(each), 0);
  const before = all((each) => each.worst?.still || 0);
  const failing = before + fresh;
  const gates = all((each) => each.gates.filter((gate) => gate.look === "failed").length);
  const scores = all((each) => brokenOf(each).length);
  const total = { n: failing, of: all((each) => each.counts.total) };
  const said = [];
  if (failing && !headline?.cause.includes(`${failing} of `)) said.push(t(failing === 1 ? "{n} of {of} cases fails" : "{n} of {of} cases fail", total));
  if (failing && !compared) said.push(t("no approved run to compare with (--snapshot-update approves one)"));
  else if (failing) said.push(before ? t("{n} of the failures are new", { n: fresh }) : failing === 1 ? t("the failure is new") : t("all failures are new"));
  if (gates > 1) said.push(t("{n} gates failed", { n: gates }));
  if (own.some((each) => each.gates.some((gate) => gate.look === "failed" && each.uncalibrated?.includes(gate.metric)))) said.push(t("no human labels confirm the judge"));
  if (scores > 1) said.push(t("{n} approved scores not kept", { n: scores }));
  if (Object.keys(faults).length > 1) said.push(t("{n} files with faults", { n: Object.keys(faults).length }));
  return [said.join("; ")];
}

/** @param {any} run That did not fail. @returns {any[]} What else is known about it, if anything; with a link to each suite that is past a limit. */
function reasons(run) {
  const own = head.entries.map((each, entry) => ({ ...each, entry })).filter((each) => each.run === 0);
  const all = (pick) => own.reduce((sum, each) => sum + pick(each), 0);
  const gates = (look) => all((each) => each.gates.filter((gate) => gate.look === look).length);
  const cases = (outcome) => all((each) => each.counts[outcome] || 0);
  const said = [
    [run.verdict === "undecided" ? 0 : gates("undecided"), "{n} gate undecided", "{n} gates undecided"],
    [cases("known_failure"), "{n} known failure", "{n} known failures"],
    [cases("not_scored"), "{n} case not scored", "{n} cases not scored"],
    [gates("within_chance"), "{n} gate past its limit, not significant", "{n} gates past their limits, not significant"],
  ];
  const found = said.filter(([count]) => count).map(([count, one, many]) => counted(count, one, many));
  const past = own.flatMap((each) => each.gates.flatMap((gate) => (gate.past ? [[suiteLink(each.entry, each.name), ` ${gate.past}`]] : [])));
  return [found.join(t(", ")), past.map((each, at) => [at ? "; " : ": ", each])];
}

/** @returns {Promise<Element[]>} */
async function drawOverview() {
  const run = head.runs[0];
  const faults = Object.entries(run.faults);
  const shown = groups.flatMap((group, place) =>
    group.shown.filter((entry) => head.entries[entry].run === 0).map((entry) => ({ place, entry })),
  );
  const decided = ({ entry }) => [...head.entries[entry].gates, ...(head.entries[entry].snapshot || [])].some((each) => each.outcome === "failed");
  const urgent = shown.filter(({ entry }) => head.entries[entry].verdict !== "passed").sort((a, b) => Number(decided(b)) - Number(decided(a)));
  const calm = shown.filter(({ entry }) => head.entries[entry].verdict === "passed");
  const folded = calm.length > 3 || (urgent.length && calm.length > 1);
  const deciding = urgent.some(decided) ? urgent.filter(decided) : urgent;
  const drawn = ({ entry, place }) => drawSuite(entry, place, true);
  return [
    faults.length
      ? section(t("Faulty files"), h("ul", { class: "faults" }, faults.flatMap(([, lines]) => lines.map((line) => h("li", {}, line)))))
      : null,
    await Promise.all(deciding.map(drawn)),
    groups.map((group, place) => (group.shown.length > 1 ? drawRanking(group, place) : null)),
    await Promise.all(urgent.filter((each) => !deciding.includes(each)).map(drawn)),
    folded
      ? section(t("Suites that passed"), suiteTable(calm), await Promise.all(calm.map(({ entry, place }) => drawSuite(entry, place, false))))
      : await Promise.all(calm.map(drawn)),
    shown.length ? null : h("p", { class: "empty" }, t("No suite ran.")),
  ].flat();
}

/** @param {{entry: number}[]} listed @returns {Element} */
function suiteTable(listed) {
  const rows = listed.map(({ entry }) => {
    const { suite, counts, gates, verdict } = head.entries[entry];
    const passed = gates.filter((gate) => gate.outcome === "passed").length;
    const others = Object.entries(counts).filter(([name, count]) => count && !["total", "passed", "scored"].includes(name)).map(([name, count]) => `${count} ${outcomeName(name)}`);
    return [
      [sign(verdict), " ", suiteLink(entry, suite)],
      [`${(counts.passed ?? 0) + (counts.scored ?? 0)}/${counts.total}`, others.length ? h("small", {}, ` (${others.join(t(", "))})`) : null],
      `${passed}/${gates.length}`,
    ];
  });
  return table([t("suite"), t("cases passed"), t("gates passed")], rows, { caption: t("Suites that passed") });
}

/** @param {number} number_ @param {number} place @param {boolean} open @returns {Promise<Element>} Counts, gates beside what broke, and what moved. */
async function drawSuite(number_, place, open) {
  const entry = head.entries[number_];
  const link = (outcome) => linkTo({ ...NO_FILTERS, view: "cases", suite: place, outcome, system: systemOf(number_), sort: "" });
  const title = [sign(entry.verdict), " ", entry.suite];
  const body = [
    entry.description && h("p", { class: "description" }, entry.description),
    h("p", { class: "path" }, entry.path),
    drawCounts(number_, link),
    drawNotices(entry),
    h("div", { class: "front" }, h("section", {}, h("h3", {}, t("Gates"), " ", h("small", { class: "scope" }, t("limits of the whole suite"))), drawGates(number_)), await drawWorst(number_, place)),
    drawChanges(number_, place),
  ];
  return open
    ? h("section", { class: "suite" }, h("h2", {}, title), body)
    : h("details", { class: "suite" }, h("summary", {}, title), body);
}

/** @param {number} entry @returns {string} */
function systemOf(entry) {
  return groups.find((group) => group.entries.includes(entry)).shown.length > 1 ? systemName(entry) : "";
}

const URGENCY = ["failed", "undecided", "not_judged", "within_chance", "passed"];

/** @param {any} one @param {any} other @returns {number} */
function byUrgency(one, other) {
  return URGENCY.indexOf(one.look) - URGENCY.indexOf(other.look);
}

/** @param {number} number_ Of the entry. @returns {Element} Gates, and approved scores that were not kept; what failed is first. */
function drawGates(number_) {
  const { gates } = head.entries[number_];
  const shown = [...gates, ...brokenOf(head.entries[number_]).map((each) => brokenScore(number_, each))];
  if (!shown.length) return h("p", { class: "empty" }, t("This suite has no gates."));
  const listed = (gates) => (gates.length ? h("ul", { class: "gates" }, gates.sort(byUrgency).map((each) => drawGate(each, number_))) : null);
  const passed = shown.filter((each) => each.look === "passed");
  if (passed.length === shown.length || passed.length <= FEW_PASSED) return listed(shown);
  const rest = h("details", {}, h("summary", {}, counted(passed.length, "{n} gate passed", "{n} gates passed")), listed(passed));
  return h("div", {}, listed(shown.filter((each) => each.look !== "passed")), rest);
}

/** @param {any} entry @returns {any[]} Approved scores that were not kept, without those whose fall a gate has. */
function brokenOf({ gates, snapshot }) {
  const told = new Set(gates.filter((gate) => gate.fallen?.length).map((gate) => gate.metric));
  return (snapshot || []).filter((each) => each.outcome === "failed" && !told.has(each.metric));
}

/** @param {number} entry @param {any} verdict @returns {any} An approved score that was not kept, as a gate that failed. */
function brokenScore(entry, { metric, value, approved, reason }) {
  const name = metric === "*" ? t("approved scores") : t("approved {metric}", { metric });
  const change = head.entries[entry].changes?.metrics.find((each) => each.metric === metric);
  return { gate: name, look: "failed", value, approved, lead: reason, change, line: {} };
}

/** @param {any} gate @param {number} entry @returns {Element} */
function drawGate(gate, entry) {
  const { look, lead, statistics, value } = gate;
  const { counts, metrics } = head.entries[entry];
  const { errored: errors, scored } = metrics?.[gate.metric] || {};
  const name = outcomeName(look);
  const whole = translated(lead || "");
  const shown = whole.startsWith(name) ? whole.slice(name.length).replace(/^[:;：]\s*/, "") : whole;
  return h(
    "li",
    { class: `gate ${look}` },
    sign(look),
    h("div", { class: "said" }, h("code", {}, gate.gate), h("p", {}, h("b", { class: "look" }, name), shown ? [": ", shown] : null), statistics ? h("details", {}, h("summary", {}, t("statistics")), h("p", { class: "quiet" }, statistics)) : null),
    h("span", { class: "figure" }, errors && look !== "passed" ? t("{n} of {all} scored", { n: scored, all: counts.total }) : figure(value)),
    h("div", { class: "line" }, errors && look === "failed" ? null : numberLine(gate)),
  );
}

/** @param {number} number_ Of the entry. @param {(outcome: string[]) => string} link @returns {Element} */
function drawCounts(number_, link) {
  const { counts, pass_rate: rate } = head.entries[number_];
  const parts = ["passed", "scored", "failed", "errored", "xfailed", "known_failure", "not_scored", "skipped", "not_run", "not_needed"].filter((name) => counts[name]);
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
      rate.value === null ? null : h("span", { class: "rate" }, ` ${t("pass rate")} `, figure(rate.value), t(", "), t("interval"), " ", intervalFigure(rate.low, rate.high)),
    ),
  );
}

/** @param {any} entry @returns {Element|null} What keeps numbers from being comparable, and what they lack. */
function drawNotices(entry) {
  const said = (entry.snapshot || []).filter((each) => each.kind === "not_comparable" || each.outcome === "not_judged");
  const lines = [...new Set(said.map((each) => (each.metric === "*" ? each.reason : `${each.metric}: ${each.reason}`)))];
  lines.push(...(entry.changes?.notes || []));
  for (const [name, metric] of Object.entries(entry.metrics || {})) if (metric.reason) lines.push(`${name}: ${metric.reason}`);
  if (entry.sample) lines.push(t("A sample of {cases} of {all} cases", { cases: entry.sample.cases, all: entry.sample.of }));
  if (entry.stop) lines.push(t("Stopped after {cases} of {all} cases, when all gates were decided", { cases: entry.stop.cases, all: entry.stop.cases + entry.stop.not_needed }));
  if (entry.left_out) lines.push(counted(entry.left_out, "{n} case left out: it has no prediction", "{n} cases left out: they have no prediction"));
  if (entry.uncalibrated) lines.push(t("Uncalibrated: no human labels confirm the judge of {metrics}; label answers with {command}", { metrics: entry.uncalibrated.join(t(", ")), command: "llmeval review REPORT.json --pick 40" }));
  if (entry.stability) lines.push(`${t("repeats")}: ${Object.entries(entry.stability).map(([name, count]) => `${count} ${outcomeName(name)}`).join(t(", "))}`);
  if (entry.shared_inputs) lines.push(t("{n} cases have the input of an earlier case, so intervals are too narrow unless cluster_by names a label that such cases share", { n: entry.shared_inputs }));
  return lines.length ? h("ul", { class: "notices" }, lines.map((line) => h("li", {}, translated(line)))) : null;
}

/** @param {number} number_ Of the entry. @param {number} place @returns {Element|null} What declined and improved against the baseline or the approved scores. */
function drawChanges(number_, place) {
  const entry = head.entries[number_];
  const broken = new Map((entry.snapshot || []).filter((each) => each.outcome === "failed").map((each) => [each.metric, each]));
  const found = (entry.changes ? entry.changes.metrics : approvedChanges(entry)).map((each) => ({ ...each, kind: lookOfChange(each, broken) }));
  if (!found.length) return null;
  const order = ["failed", "fell", "vanished", "rose", "unclear", "untold", "new", "same"];
  const moved = found.filter((each) => each.kind !== "same").sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  const same = found.length - moved.length;
  const reach = Math.max(...moved.flatMap((each) => [each.difference, each.low, each.high].map((at) => Math.abs(at ?? 0))));
  const against = entry.changes ? t(entry.changes.against) : t("approved scores");
  const rows = moved.map((each) => {
    const name = t(KINDS[each.kind]);
    return [
      { class: "name", cell: h("span", { class: "named" }, sign(each.kind, name), h("span", {}, each.name || each.metric)) },
      { class: each.kind === "failed" ? "told reasoned" : "told", cell: [h("span", { class: `kind ${each.kind}` }, name), each.kind === "failed" ? h("small", {}, broken.get(each.metric).reason) : null] },
      { class: "before", cell: figure(each.baseline) },
      { class: "now", cell: figure(each.value) },
      signedFigure(each.difference),
      intervalFigure(each.low, each.high),
      { class: "drawn", cell: changeLine(each, reach) },
    ];
  });
  const headers = [t("metric"), t("change"), t("before"), t("now"), t("difference"), t("interval"), ""];
  return h(
    "div",
    { class: "changes" },
    state.view === "comparison" ? null : h("h3", {}, t("Against {baseline}", { baseline: against })),
    moved.length ? table(headers, rows, { texts: [0, 1], caption: t("Against {baseline}", { baseline: against }), stacked: true }) : null,
    same ? h("p", { class: "quiet" }, counted(same, "{n} metric unchanged", "{n} metrics unchanged")) : null,
    entry.pair === null || state.view === "comparison" ? null : h("p", {}, h("a", { href: linkTo({ ...NO_FILTERS, view: "comparison", suite: place }) }, t("Compare case by case"))),
  );
}

const KINDS = {
  fell: "declined",
  rose: "improved",
  failed: "not kept",
  unclear: "not significant",
  untold: "cannot tell",
  same: "unchanged",
  new: "new",
  vanished: "gone",
};

/** @param {any} change @param {Map<string, any>} broken Approved scores that were not kept. @returns {string} */
function lookOfChange({ metric, kind, low }, broken) {
  if (broken.has(metric)) return "failed";
  return kind === "unclear" && typeof low !== "number" ? "untold" : kind;
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
