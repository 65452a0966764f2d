const LISTED = 50;

/** @param {Group} group @param {number} place @returns {any[]} The suite against the run, or the system, that it is compared with. */
function drawComparison(group, place) {
  const compared = group.shown.filter((entry) => head.entries[entry].pair !== null);
  if (!compared.length) return [h("p", { class: "empty" }, t("There is nothing to compare with: name a baseline, llmeval html RUN.json --baseline BASE.json."))];
  const [moved, still] = [compared.filter(hasMoved), compared.filter((entry) => !hasMoved(entry))];
  moved.sort((a, b) => guiltOf(b) - guiltOf(a));
  const metric = state.metric || movedMetric(group, moved);
  const views = moved.flatMap((entry) => {
    const rows = rowsOfEntry(entry);
    const points = rows.flatMap((row) => {
      const other = counterpart(row);
      const [now, old] = [scoreOf(row, metric), other && scoreOf(other, metric)];
      return now === null || old === null ? [] : [{ old, now, row }];
    });
    const open = (found) =>
      found.length === 1
        ? go({ view: "cases", case: `${found[0].entry}/${idOf(found[0])}` })
        : go({ ...NO_FILTERS, view: "cases", metric, ...around(found, metric) });
    const counts = new Map();
    for (const row of rows) counts.set(changeOf(row, metric), (counts.get(changeOf(row, metric)) || 0) + 1);
    const chosen = choice(t("Metric"), "metric", state.metric, metricsOf(group).map((each) => [each, each]), (value) => go({ metric: value }), movedMetric(group, moved));
    return [
      h("section", {}, h("h2", {}, t("{now} against {before}", { now: sourceName(entry), before: sourceName(head.entries[entry].pair) })), drawChangeCounts(counts, place), drawChanges(entry, place)),
      h("section", {}, h("h2", {}, t("Scores of single cases")), h("div", { class: "filters" }, chosen), points.length && !points.some((each) => Math.abs(each.now - each.old) > TIE) ? h("p", { class: "quiet" }, t("unchanged in all {n} cases", { n: points.length })) : points.length ? scatter(points, { lower: lowerIsBetter(entry, metric), names: [t("before"), t("now")], open }) : h("p", { class: "empty" }, t("No case has a score in both runs."))),
      drawMoved(rows, metric, ["regressed", "worse"], t("Regressed or worse"), place),
      drawMoved(rows, metric, ["now passing", "better"], t("Now passing or better"), place),
    ];
  });
  return [...views, ...still.map(drawUnchanged)];
}

/** @param {number} entry @returns {Row[]} */
function rowsOfEntry(entry) {
  return indexes[entry].ids.map((_, at) => ({ entry, place: at }));
}

/** @param {number} entry @returns {boolean} Whether a case of a suite has another outcome, another score, or no counterpart. */
function hasMoved(entry) {
  const metrics = Object.keys(indexes[entry].metrics);
  return rowsOfEntry(entry).some((row) => changeOf(row, "") !== "equal" || metrics.some((name) => Math.abs(gainOf(row, name) ?? 0) > TIE));
}

/** @param {number} entry @returns {number} How much a suite has to do with a run that failed: gates first, then cases that broke. */
function guiltOf(entry) {
  const { gates, worst } = head.entries[entry];
  return 1e9 * gates.filter((gate) => gate.look === "failed").length + 1e3 * (worst?.failing || 0) + (worst?.fell || 0);
}

/** @param {Group} group @param {number[]} entries @returns {string} The metric of a gate that failed, or else the main one, if cases moved by it; else one by which they did. */
function movedMetric(group, entries) {
  const failed = entries.flatMap((entry) => head.entries[entry].gates.filter((gate) => gate.look === "failed").map((gate) => gate.metric));
  const moved = (name) => entries.some((entry) => rowsOfEntry(entry).some((row) => Math.abs(gainOf(row, name) ?? 0) > TIE));
  return [...failed, mainMetric(group), ...metricsOf(group)].find((name) => name && moved(name)) || mainMetric(group);
}

/** @param {number} place Of a group. @returns {boolean} Whether it has another run to compare with. */
function isCompared(place) {
  return groups[place].shown.some((entry) => head.entries[entry].pair !== null);
}

/** @returns {number} The place of the group that has the most to compare. */
function culpritGroup() {
  const guilt = groups.map(({ shown }) => Math.max(...shown.map((entry) => (head.entries[entry].pair === null ? -1 : guiltOf(entry)))));
  return Math.max(0, guilt.indexOf(Math.max(...guilt)));
}

/** @param {number} entry @returns {Element} */
function drawUnchanged(entry) {
  const names = { now: sourceName(entry), before: sourceName(head.entries[entry].pair) };
  return h("p", { class: "quiet" }, t("{now} against {before}", names), ": ", t("unchanged in all {n} cases", { n: indexes[entry].ids.length }));
}

/** @param {Row[]} rows @param {string} metric @returns {{min: string, max: string}} A range that holds the scores of the rows. */
function around(rows, metric) {
  const scores = rows.map((row) => scoreOf(row, metric));
  return { min: String(Math.min(...scores)), max: String(Math.max(...scores)) };
}

/** @param {Map<string, number>} counts @param {number} place @returns {Element} */
function drawChangeCounts(counts, place) {
  const names = ["regressed", "now passing", "worse", "better", "equal", "new"].filter((name) => counts.get(name));
  const link = (name) => h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, change: name, sort: ["now passing", "better"].includes(name) ? "-@change" : "@change" }) }, `${counts.get(name)} ${t(name)}`);
  return h("p", { class: "counts" }, names.map((name, at) => [at ? " · " : "", link(name)]));
}

/** @param {Row[]} rows @param {string} metric @param {string[]} kinds @param {string} title @param {number} place @returns {any} */
function drawMoved(rows, metric, kinds, title, place) {
  const found = rows.filter((row) => kinds.includes(changeOf(row, metric)));
  if (!found.length) return null;
  const size = (row) => Math.abs(gainOf(row, metric) ?? 0) + (changeOf(row, metric) === kinds[0] ? 1e6 : 0);
  const listed = [...found].sort((a, b) => size(b) - size(a)).slice(0, LISTED);
  const list = h("div", { class: "moved" }, listed.map((row) => movedCase(row, metric, place)));
  const rest = found.length - listed.length;
  return section(`${title} (${found.length})`, list, rest ? h("p", { class: "quiet" }, t("... and {n} more.", { n: rest })) : null);
}

/** @param {Row} row @param {string} metric @param {number} place @returns {Element} A case that opens to both answers. */
function movedCase(row, metric, place) {
  const other = counterpart(row);
  const body = h("div", { class: "sides" });
  const load = async (event) => {
    if (!event.target.open || body.childNodes.length) return;
    const [before, now] = await Promise.all([textsOf(other), textsOf(row)]);
    const side = (title, texts) => h("div", {}, h("h3", {}, title), texts.prediction === undefined ? h("p", { class: "empty" }, t("no text in the report")) : drawPrediction(texts.prediction), texts.reason ? h("p", { class: "quiet" }, texts.reason) : null);
    fill(body, side(t("Before"), before), side(t("Now"), now));
    const difference = before.prediction === undefined || now.prediction === undefined ? null : drawChange(before.prediction, now.prediction);
    if (difference) append(body, h("div", { class: "whole" }, h("h3", {}, t("Difference")), difference));
    append(body, h("p", {}, caseLink(row.entry, idOf(row), place)));
  };
  return h(
    "details",
    { toggle: load },
    h("summary", {}, sign(outcomeOf(other)), " → ", sign(outcomeOf(row)), " ", h("bdi", {}, idOf(row)), head.entries[row.entry].variant ? h("small", { class: "quiet" }, head.entries[row.entry].variant) : null, h("span", { class: "figure" }, `${metric} `, figure(scoreOf(other, metric)), " → ", figure(scoreOf(row, metric)))),
    body,
  );
}
