/** @param {Group} group @returns {any} What the report says of the systems of the suite, if it has several. */
function systemsOf(group) {
  return head.runs
    .filter((run) => !run.baseline)
    .flatMap((run) => run.systems)
    .find((each) => each.path === group.path && each.suite === group.name);
}

/** @param {Group} group @param {string} system @returns {number|undefined} */
function entryOfSystem(group, system) {
  return group.shown.find((entry) => head.entries[entry].variant === system);
}

/** @param {any} against A difference from the reference. @param {number} level @param {boolean} lower @returns {""|"rose"|"fell"} What is significant. */
function significance(against, level, lower) {
  if (!against || typeof against.p_value !== "number" || against.p_value > level) return "";
  return against.difference > 0 !== lower ? "rose" : "fell";
}

/** @param {Group} group @param {number} place @returns {Element|null} The systems of a suite, the best first: values, and differences from the reference. */
function drawRanking(group, place) {
  const found = systemsOf(group);
  if (!found) return null;
  const { reference, confidence } = found;
  const measured = found.systems.flatMap((each) => Object.keys(each.metrics));
  const names = [...new Set(found.compare_by.length ? found.compare_by : measured)].slice(0, 2);
  return h(
    "section",
    { class: "suite systems" },
    h("h2", {}, `${group.name}: ${counted(found.systems.length, "{n} system", "{n} systems")}`),
    names.map((name) => rankingOf(group, place, found, name)),
    h("p", { class: "quiet legend" }, h("span", { class: "significant rose" }, "▲ ", t("significantly better")), " ", h("span", { class: "significant fell" }, "▼ ", t("significantly worse")), " ", h("span", { title: t("p by Holm's method, {level}", { level: `${confidence * 100}%` }) }, t("than {reference}; without colour: not significant", { reference }))),
  );
}

/** @param {Group} group @param {number} place @param {any} found @param {string} name @returns {any[]} The sentence on a metric, and its table. */
function rankingOf(group, place, found, name) {
  const { reference } = found;
  const level = 1 - found.confidence;
  const lower = group.shown.some((entry) => lowerIsBetter(entry, name));
  const value = (system) => system.metrics[name]?.value ?? null;
  const ranked = [...found.systems].sort((a, b) => (value(a) === null) - (value(b) === null) || (lower ? value(a) - value(b) : value(b) - value(a)));
  const winner = ranked.find((each) => significance(each.differences?.[name], level, lower) === "rose");
  const nothing = { class: "absent", cell: "" };
  const changeOf = (system) => head.entries[entryOfSystem(group, system)]?.changes?.metrics.find((each) => each.metric === name);
  const approved = ranked.some((each) => changeOf(each.system));
  const rows = ranked.map((each) => {
    const against = each.differences?.[name];
    const kind = significance(against, level, lower);
    const entry = entryOfSystem(group, each.system);
    const counts = entry === undefined ? null : head.entries[entry].counts;
    const title = kind ? kind === "rose" ? t("significantly better") : t("significantly worse") : "";
    return [
      h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, system: entry === undefined ? "" : systemName(entry), sort: "" }) }, each.system, each.system === reference ? h("small", {}, ` (${t("reference")})`) : null, each === winner ? h("b", {}, ` ${t("best")}`) : null),
      counts ? `${(counts.passed ?? 0) + (counts.scored ?? 0)}/${counts.total}` : each.cases,
      figure(value(each)),
      intervalFigure(each.metrics[name]?.low, each.metrics[name]?.high),
      ...(approved ? [sinceApproval(entry, changeOf(each.system))] : []),
      against ? { class: kind ? `significant ${kind}` : "", cell: [kind ? [sign(kind, title), " "] : null, signedFigure(against.difference)] } : nothing,
      against ? intervalFigure(against.low, against.high) : nothing,
      against ? `${against.wins}/${against.ties}/${against.losses}` : nothing,
    ];
  });
  const headers = [t("system"), t("cases passed"), name, t("interval"), ...(approved ? [t("since approval")] : []), t("difference"), t("its interval"), t("better/same/worse")];
  const fallen = ranked.filter((each) => significance(each.differences?.[name], level, lower) === "fell").map((each) => each.system);
  const best = winner?.system ?? (fallen.length ? reference : "");
  const others = winner ? [winner] : ranked.filter((each) => fallen.includes(each.system));
  const written = (system) => number(value(found.systems.find((each) => each.system === system)));
  const said = best
    ? others.map((each) => {
        const { wins, losses } = each.differences[name];
        const other = winner ? reference : each.system;
        return t("{better} is better than {worse} in {metric}: {high} against {low}, {n} of {of} cases that differ.", { better: best, worse: other, metric: name, high: written(best), low: written(other), n: winner ? wins : losses, of: wins + losses });
      })
    : [t("No system is significantly better than {reference} in {metric}.", { reference, metric: name })];
  return [h("p", {}, said.join(" ")), table(headers, rows, { caption: `${t("Systems side by side")}: ${name}`, stacked: true })];
}

/** @param {number|undefined} entry @param {any} change @returns {any} By how much a metric of a system has changed. */
function sinceApproval(entry, change) {
  if (entry === undefined || !change || typeof change.difference !== "number") return { class: "absent", cell: "" };
  if (!change.difference) return h("span", { class: "quiet" }, t("unchanged"));
  const kind = ["rose", "fell"].includes(change.kind) ? change.kind : "";
  return h("span", { class: `kind ${kind}` }, kind ? [sign(kind, t(KINDS[kind])), " "] : null, signedFigure(change.difference));
}

/** @param {Group} group @returns {Element|null} All metrics of the systems side by side. */
function drawSystems(group) {
  const found = systemsOf(group);
  if (!found) return null;
  const names = [...new Set([...found.compare_by, ...found.systems.flatMap((each) => Object.keys(each.metrics))])];
  const rows = names.map((name) => [name, ...found.systems.map((each) => systemCell(each, name, 1 - found.confidence, entryOfSystem(group, each.system)))]);
  const headers = found.systems.map((each) => (each.system === found.reference ? [each.system, h("small", {}, ` (${t("reference")})`)] : each.system));
  return section(
    t("Systems side by side"),
    table([t("metric"), ...headers], [[t("cases"), ...found.systems.map((each) => each.cases)], ...rows], { caption: t("Systems side by side"), stacked: true }),
    h("p", { class: "quiet" }, t("An arrow marks a significant difference from {reference} (p by Holm's method), in the metrics by which systems are compared; others are exploratory.", { reference: found.reference })),
  );
}

/** @param {any} system @param {string} name @param {number} level @param {number|undefined} entry @returns {any} */
function systemCell(system, name, level, entry) {
  const own = system.metrics[name];
  const value = figure(own?.value);
  const against = system.differences?.[name];
  const kind = significance(against, level, entry !== undefined && lowerIsBetter(entry, name));
  if (!kind) return value;
  const said = `${signed(against.difference)} (${interval(against.low, against.high)}), p ${number(against.p_value)}`;
  return h("span", { class: `established ${kind}`, title: said }, sign(kind, said), " ", value);
}

/** @param {Group} group @returns {Element[]} How strong the systems are that a judge compared in pairs. */
function drawStrengths(group) {
  return (systemsOf(group)?.strengths || []).map((each) => {
    const title = t("Strengths by {name} (Bradley-Terry with ties)", { name: each.label });
    const rows = each.systems.map((one) => [one.system, figure(one.value), intervalFigure(one.low, one.high)]);
    return section(title, table([t("system"), t("strength"), t("interval")], rows, { caption: title }));
  });
}

/** @param {Row|null} row @param {string} metric @returns {any} The answer of a system to a case: outcome, score, and how the text begins. */
function systemAnswer(row, metric) {
  if (!row) return h("span", { class: "quiet" }, t("none"));
  return h("a", { href: linkTo({ case: `${row.entry}/${idOf(row)}` }) }, sign(outcomeOf(row)), " ", figure(scoreOf(row, metric)), " ", excerptOfCase(row, answerText));
}
