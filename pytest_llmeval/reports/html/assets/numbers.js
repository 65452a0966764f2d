/** @param {Group} group @param {number} place @returns {any[]} Systems, metrics, tables, groups and history of a suite. */
function drawNumbers(group, place) {
  return [
    drawSystems(group),
    ...drawStrengths(group),
    ...group.shown.flatMap((number_) => {
      const entry = head.entries[number_];
      const name = group.shown.length > 1 ? ` · ${sourceName(number_)}` : "";
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
  const lines = Object.keys(entry.metrics || {}).some((name) => sparkline(history, name, 2));
  const silent = Object.values(entry.metrics || {}).some((each) => each.abstained);
  const rows = Object.entries({ ...entry.metrics, pass_rate: entry.pass_rate }).map(([name, each]) => [
    h("span", { title: each.signature || null }, name),
    figure(each.value, digitsOf(number_, name)),
    intervalFigure(each.low, each.high, digitsOf(number_, name)),
    figure(each.mean, digitsOf(number_, name)),
    each.scored,
    ...(silent ? [each.abstained ?? 0] : []),
    each.undefined ?? 0,
    each.errored ?? 0,
    each.missing,
    ...(lines ? [{ class: "drawn", cell: sparkline(history, name, digitsOf(number_, name)) }] : []),
  ]);
  const headers = [t("metric"), t("value"), t("interval"), t("mean"), t("scored"), ...(silent ? [t("abstained")] : []), t("undefined"), t("errored"), t("missing")];
  return table([...headers, ...(lines ? [t("history")] : [])], rows, { caption: t("Metrics"), stacked: true });
}

/** @param {any} entry @returns {Element|null} */
function drawUsage(entry) {
  const { usage } = entry;
  if (!usage) return null;
  const parts = [];
  if (usage.verdicts) {
    parts.push(t("judge: {n} verdicts, {calls} requested in this run", { n: usage.verdicts, calls: usage.calls }));
    if (usage.calls && usage.input_tokens !== null && usage.output_tokens !== null) parts.push(t("{n} tokens", { n: usage.input_tokens + usage.output_tokens }));
    if (usage.calls) parts.push(usage.cost_usd === null ? t("cost unknown") : `${usage.cost_usd.toFixed(4)} USD`);
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

/** @param {Group} group @returns {any} What the report says of the systems of the suite, if it has several. */
function systemsOf(group) {
  return head.runs
    .filter((run) => !run.baseline)
    .flatMap((run) => run.systems)
    .find((each) => each.path === group.path && each.suite === group.name);
}

/** @param {Group} group @returns {Element[]} How strong the systems are that a judge compared in pairs. */
function drawStrengths(group) {
  return (systemsOf(group)?.strengths || []).map((each) => {
    const title = t("Strengths by {name} (Bradley-Terry with ties)", { name: each.label });
    const digits = Math.max(...each.systems.map((one) => decimals(one.low, one.high) ?? decimalsFor([one.value])));
    const rows = each.systems.map((one) => [one.system, figure(one.value, digits), intervalFigure(one.low, one.high, digits)]);
    return section(title, table([t("system"), t("strength"), t("interval")], rows, { caption: title }));
  });
}

/** @param {Group} group @returns {Element|null} The systems of the suite side by side. */
function drawSystems(group) {
  const found = systemsOf(group);
  if (!found) return null;
  const names = [...new Set([...found.compare_by, ...found.systems.flatMap((each) => Object.keys(each.metrics))])];
  const entryOf = (system) => group.shown.find((entry) => head.entries[entry].variant === system);
  const rows = names.map((name) => [name, ...found.systems.map((each) => systemCell(each, name, 1 - found.confidence, entryOf(each.system)))]);
  const headers = found.systems.map((each) => (each.system === found.reference ? [each.system, h("small", {}, ` (${t("reference")})`)] : each.system));
  return section(
    t("Systems side by side"),
    table([t("metric"), ...headers], [[t("cases"), ...found.systems.map((each) => each.cases)], ...rows], { caption: t("Systems side by side"), stacked: true }),
    h("p", { class: "quiet" }, t("An arrow marks a difference to {reference} that is significant (p by Holm's method).", { reference: found.reference })),
  );
}

/** @param {any} system @param {string} name @param {number} level @param {number|undefined} entry @returns {any} */
function systemCell(system, name, level, entry) {
  const own = system.metrics[name];
  const value = figure(own?.value, entry === undefined ? decimals(own?.low, own?.high) ?? decimalsFor([own?.value]) : digitsOf(entry, name));
  const against = system.differences?.[name];
  if (!against || against.p_value === null || against.p_value > level) return value;
  const kind = against.wins >= against.losses ? "rose" : "fell";
  const digits = decimals(against.low, against.high) ?? USUAL_DECIMALS;
  const said = `${signed(against.difference, digits)} (${interval(against.low, against.high, digits)}), p ${number(against.p_value)}`;
  return h("span", { class: `established ${kind}`, title: said }, sign(kind, said), " ", value);
}

/** @param {any} drawn @param {string} key Entry and number of the table. @param {number} place @param {string} name @returns {Element} */
function drawTable(drawn, key, place, name) {
  const cells = new Map((drawn.cases || []).map(([row, column, ids]) => [`${row}.${column}`, ids.length]));
  const most = Math.max(1, ...cells.values());
  const texts = drawn.headers.map((_, column) => column).filter((column) => drawn.rows.every((row) => typeof row[column] === "string"));
  const digits = drawn.headers.map((_, column) => decimalsFor(drawn.rows.map((row) => row[column])));
  const rows = drawn.rows.map((row, down) =>
    row.map((value, column) => {
      const count = cells.get(`${down}.${column}`);
      const shown = typeof value === "number" && !Number.isInteger(value) ? figure(value, digits[column]) : value === null ? "n/a" : value;
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

/** @returns {Element} Groups as rows, metrics as columns, each cell shaded by how it compares within its column. */
function drawGroups(entry, number_, place, label, members, name) {
  const metrics = [...new Set(Object.values(members).flatMap((each) => Object.keys(each.metrics)))];
  const spans = metrics.map((metric) => {
    const values = Object.values(members).map((each) => each.metrics[metric]?.value).filter((each) => typeof each === "number");
    return [Math.min(...values), Math.max(...values)];
  });
  const rows = Object.entries(members).map(([value, each]) => [
    h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, labels: { [label]: value }, system: systemOf(number_), sort: "" }) }, value),
    each.cases,
    ...metrics.map((metric, column) => {
      const found = each.metrics[metric];
      const digits = digitsOf(number_, metric);
      const said = found ? `${interval(found.low, found.high, digits)}; ${counted(found.scored, "{n} case scored", "{n} cases scored")}` : "";
      return { class: heat(found?.value, spans[column], lowerIsBetter(number_, metric)), title: said, cell: figure(found?.value, digits) };
    }),
  ]);
  return section(t("By {label}", { label }) + name, table([label, t("cases"), ...metrics], rows, { caption: t("By {label}", { label }), stacked: true }));
}

/** @param {number|null|undefined} value @param {number[]} span @param {boolean} lower @returns {string} Class of a cell: from 0, the worst, to 4. */
function heat(value, [low, high], lower) {
  if (value === null || value === undefined || high - low < 1e-9) return "";
  const share = (value - low) / (high - low);
  return `group${Math.round(4 * (lower ? 1 - share : share))}`;
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
  return h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, case: `${entry}/${id}`, sort: "" }) }, id);
}
