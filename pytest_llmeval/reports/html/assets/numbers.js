/** @param {Group} group @param {number} place @returns {any[]} Systems, metrics, tables, groups and history of a suite. */
function drawNumbers(group, place) {
  return [
    drawSystems(group),
    ...drawStrengths(group),
    ...group.shown.flatMap((number_) => {
      const entry = head.entries[number_];
      const name = group.shown.length > 1 ? ` · ${systemName(number_)}` : "";
      return [
        section(t("Metrics") + name, metricTable(number_), drawUsage(entry)),
        ...(entry.tables || []).map((each, table_) => drawTable(each, `${number_}.${table_}`, place, name)),
        ...Object.entries(entry.groups || {}).map(([label, members]) => drawGroups(entry, number_, place, label, members, name)),
        drawBuckets(entry, number_, place, name),
      ];
    }),
  ];
}

/** @param {number} number_ Of the entry. @returns {Element} */
function metricTable(number_) {
  const entry = head.entries[number_];
  const history = entry.history || [];
  const lines = Object.keys(entry.metrics || {}).some((name) => sparkline(history, name));
  const found = Object.entries({ ...entry.metrics, pass_rate: entry.pass_rate });
  const counts = { abstained: t("abstained"), undefined: t("undefined"), errored: t("errored"), missing: t("missing") };
  const lacking = Object.keys(counts).filter((kind) => found.some(([, each]) => each[kind]));
  const means = found.some(([, each]) => typeof each.mean === "number" && Math.abs(each.mean - each.value) > 1e-9);
  const rows = found.map(([name, each]) => [
    h("span", { title: each.signature || null }, name),
    figure(each.value),
    intervalFigure(each.low, each.high),
    ...(means ? [figure(each.mean)] : []),
    each.scored,
    ...lacking.map((kind) => each[kind] ?? 0),
    { class: "drawn", cell: histogram(number_, name) },
    ...(lines ? [{ class: "drawn", cell: sparkline(history, name) }] : []),
  ]);
  const headers = [t("metric"), t("value"), t("interval"), ...(means ? [t("mean")] : []), t("scored"), ...lacking.map((kind) => counts[kind]), t("distribution")];
  return [table([...headers, ...(lines ? [t("history")] : [])], rows, { caption: t("Metrics"), stacked: true }), drawHistory(number_)];
}

/** @param {number} number_ Of the entry. @returns {Element|null} Earlier runs and approvals, with dates and commits, the latest first. */
function drawHistory(number_) {
  const history = head.entries[number_].history || [];
  if (history.length < 2) return null;
  const known = [...Object.keys(head.entries[number_].metrics || {}), "pass_rate"];
  const names = known.filter((name) => history.some((point) => typeof point.values[name] === "number")).slice(0, 6);
  const note = (point) => [point.approved ? t("approved") : null, point.changed.length ? `${t("changed")}: ${point.changed.map((name) => t(name)).join(t(", "))}` : null].filter(Boolean).join("; ");
  const rows = [...history].reverse().map((point) => [point.time, h("code", {}, point.commit), ...names.map((name) => figure(point.values[name])), note(point)]);
  const noted = history.some(note) ? [t("note")] : [];
  const listed = noted.length ? rows : rows.map((row) => row.slice(0, -1));
  return h("details", { class: "past" }, h("summary", {}, counted(history.length, "History: {n} run", "History: {n} runs")), table([t("date"), t("commit"), ...names, ...noted], listed, { texts: [0, 1, names.length + 2], caption: t("history"), stacked: true }));
}

/** @param {any} entry @returns {Element|null} */
function drawUsage(entry) {
  const { usage } = entry;
  if (!usage) return null;
  const parts = [];
  if (usage.verdicts) {
    parts.push(t("judge: {n} verdicts, {calls} requested in this run", { n: usage.verdicts, calls: usage.calls }));
    if (usage.calls && usage.input_tokens !== null && usage.output_tokens !== null) parts.push(t("{n} tokens", { n: usage.input_tokens + usage.output_tokens }));
    if (usage.calls) parts.push(usage.judge_cost_usd === null ? t("cost unknown") : `${usage.judge_cost_usd.toFixed(4)} USD`);
  }
  for (const [name, each] of Object.entries(usage.cascades || {})) {
    parts.push(t("cascade {name}: {n} of {of} verdicts unsure", { name, n: each.unsure, of: each.verdicts }));
    if (each.audit === 0) parts.push(t("not audited"));
    else parts.push(t("{n} of {of} sure ones audited, {wrong} of them wrong", { n: each.audited, of: each.verdicts - each.unsure, wrong: each.differing }));
  }
  if (typeof usage.target_tokens === "number") parts.push(t("target: {n} tokens", { n: Math.round(usage.target_tokens) }));
  if (typeof usage.target_cost_usd === "number") parts.push(t("target: {n} USD", { n: usage.target_cost_usd.toFixed(4) }));
  for (const [name, found] of [[t("judge latency"), usage.latency_s], [t("target latency"), usage.target_latency_s]]) {
    if (found) parts.push(`${name} ${Object.entries(found).map(([each, value]) => `${each} ${duration(value)}`).join(t(", "))}`);
  }
  return parts.length ? h("p", { class: "quiet" }, parts.join("; ")) : null;
}

/** @param {any} drawn @param {string} key Entry and number of the table. @param {number} place @param {string} name @returns {Element} */
function drawTable(drawn, key, place, name) {
  const cells = new Map((drawn.cases || []).map(([row, column, ids]) => [`${row}.${column}`, ids.length]));
  const most = Math.max(1, ...cells.values());
  const texts = drawn.headers.map((_, column) => column).filter((column) => drawn.rows.every((row) => typeof row[column] === "string"));
  const rows = drawn.rows.map((row, down) =>
    row.map((value, column) => {
      const count = cells.get(`${down}.${column}`);
      const shown = typeof value === "number" && !Number.isInteger(value) ? figure(value) : value === null ? "n/a" : value;
      if (!count) return drawn.cases && column ? { class: "matrix zero", cell: shown } : shown;
      const right = drawn.rows[down][0] === drawn.headers[column];
      return {
        class: `matrix ${right ? "right" : "wrong"} heat${Math.ceil((4 * count) / most)}`,
        cell: h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, cell: `${key}.${down}.${column}`, sort: "" }) }, shown),
      };
    }),
  );
  return section(
    (drawn.title || t("Table")) + name,
    table(drawn.headers, rows, { texts, caption: drawn.title || t("Table") }),
    drawn.left_out ? h("p", { class: "quiet" }, t("... and {n} more.", { n: drawn.left_out })) : null,
    drawn.note ? h("p", { class: "quiet" }, drawn.note) : null,
  );
}

/** @returns {Element} Groups as rows, metrics as columns; coloured where a group differs from the suite. */
function drawGroups(entry, number_, place, label, members, name) {
  const metrics = [...new Set(Object.values(members).flatMap((each) => Object.keys(each.metrics)))];
  let marked = false;
  const rows = Object.entries(members).map(([value, each]) => [
    h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, labels: { [label]: value }, system: systemOf(number_), sort: "" }) }, value),
    each.cases,
    ...metrics.map((metric) => {
      const found = each.metrics[metric];
      const said = found ? `${interval(found.low, found.high)}; ${counted(found.scored, "{n} case scored", "{n} cases scored")}` : "";
      const kind = apart(found, entry.metrics[metric], lowerIsBetter(number_, metric));
      marked ||= Boolean(kind);
      return { class: kind && `significant ${kind}`, title: said, cell: [kind ? [sign(kind, kind === "rose" ? t("better than the suite") : t("worse than the suite")), " "] : null, figure(found?.value)] };
    }),
  ]);
  const legend_ = marked ? h("p", { class: "quiet" }, t("Coloured: the interval of the group lies outside the interval of the suite, ▲ better, ▼ worse.")) : null;
  return section(t("By {label}", { label }) + name, table([label, t("cases"), ...metrics], rows, { caption: t("By {label}", { label }), stacked: true }), legend_);
}

/** @param {any} found @param {any} whole @param {boolean} lower @returns {""|"rose"|"fell"} Whether the interval of a group lies outside that of the suite. */
function apart(found, whole, lower) {
  if ([found?.low, found?.high, whole?.low, whole?.high].some((each) => typeof each !== "number")) return "";
  if (found.low <= whole.high && found.high >= whole.low) return "";
  return found.low > whole.high !== lower ? "rose" : "fell";
}

/** @returns {Element|null} */
function drawBuckets(entry, number_, place, name) {
  const buckets = (entry.error_buckets || []).filter((each) => each.cases.length);
  if (!buckets.length) return null;
  const rows = buckets.map((each) => [
    each.bucket,
    `${each.metric} ${each.limit}`,
    each.cases.length,
    each.cases.slice(0, 8).map((id, at) => [at ? ", " : "", caseLink(number_, id, place)]),
  ]);
  return section(t("Error analysis") + name, table([t("errors"), t("where"), t("cases"), t("which")], rows, { texts: [0, 1, 3], caption: t("Error analysis"), stacked: true }));
}

/** @param {number} entry @param {string} id @param {number} place @returns {Element} */
function caseLink(entry, id, place) {
  return h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, case: `${entry}/${id}`, sort: "" }) }, h("bdi", {}, id));
}
