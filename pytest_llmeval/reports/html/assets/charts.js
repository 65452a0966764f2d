/** @param {number[]} values @returns {[number, number]} The ends of an axis: 0 to 1 for shares, else a little more than all. */
function axis(values) {
  const found = values.filter((each) => Number.isFinite(each));
  const [low, high] = [Math.min(...found), Math.max(...found)];
  if (low >= 0 && high <= 1 && (high > 0.2 || high === low)) return [0, 1];
  const margin = (high - low || Math.abs(high) || 1) * 0.15;
  return [low >= 0 && low - margin < 0 ? 0 : low - margin, high + margin];
}

/**
 * Draw the value of a gate, its interval and its limit on a line whose failing side is shaded.
 * @param {any} gate
 * @returns {Element|null}
 */
function numberLine(gate) {
  const { value, limit, look, line } = gate;
  if (typeof value !== "number" || typeof limit !== "number" || !line.operator) return null;
  const hasInterval = line.low !== undefined && line.high !== undefined;
  const [from, to] = axis([value, limit, ...(hasInterval ? [line.low, line.high] : [])]);
  const WIDTH = 240;
  const x = (at) => (8 + ((at - from) / (to - from)) * (WIDTH - 16)).toFixed(1);
  const wantsMore = line.operator.startsWith(">");
  const said = t("{value}, limit {operator} {limit}, interval {interval}", {
    value: number(value), operator: line.operator, limit, interval: interval(line.low, line.high),
  });
  const tick = (at, anchor) => h("svg:text", { x: x(at), y: 38, "text-anchor": anchor, class: "tick" }, shortNumber(at));
  const failing = line.operator === "==" || line.relative ? [] : wantsMore ? [x(from), x(limit)] : [x(limit), x(to)];
  return h(
    "svg:svg",
    { class: `numberline ${look}`, viewBox: `0 0 ${WIDTH} 42`, role: "img", "aria-label": said },
    h("svg:title", {}, said),
    failing.length ? h("svg:rect", { class: "failing", x: failing[0], y: 12, width: Math.max(0, failing[1] - failing[0]).toFixed(1), height: 12 }) : null,
    h("svg:line", { class: "axis", x1: x(from), x2: x(to), y1: 18, y2: 18 }),
    hasInterval ? h("svg:line", { class: "interval", x1: x(line.low), x2: x(line.high), y1: 18, y2: 18 }) : null,
    h("svg:line", { class: "limit", x1: x(limit), x2: x(limit), y1: 8, y2: 28 }),
    h("svg:circle", { class: "value", cx: x(value), cy: 18, r: 5 }),
    tick(from, "start"),
    tick(to, "end"),
  );
}

/** @param {number} value @returns {string} A number as short as an axis wants it. */
function shortNumber(value) {
  return String(Number(value.toPrecision(3)));
}

/**
 * Draw a change and its interval around zero.
 * @param {any} change
 * @param {number} reach Largest number of the table, so that all lines have one scale.
 * @returns {Element|null}
 */
function changeLine(change, reach) {
  const { difference: found, low, high, kind } = change;
  if (found === null || found === undefined || !reach) return null;
  const x = (at) => (80 + Math.max(-1, Math.min(1, at / reach)) * 74).toFixed(1);
  const known = low !== null && low !== undefined;
  return h(
    "svg:svg",
    { class: `changeline ${kind}`, viewBox: "0 0 160 20", "aria-hidden": "true" },
    h("svg:line", { class: "axis", x1: 6, x2: 154, y1: 10, y2: 10 }),
    h("svg:line", { class: "limit", x1: 80, x2: 80, y1: 2, y2: 18 }),
    known ? h("svg:line", { class: "interval", x1: x(low), x2: x(high), y1: 10, y2: 10 }) : null,
    h("svg:circle", { class: "value", cx: x(found), cy: 10, r: 4 }),
  );
}

/**
 * Draw how a metric went over the runs; approved ones are marked, and lines stand where data, judge or evaluator changed.
 * @param {{time: string, approved: boolean, changed: string[], values: Object<string, number|null>}[]} history
 * @param {string} metric
 * @returns {Element|null}
 */
function sparkline(history, metric) {
  const points = history
    .map((run, place) => ({ place, value: run.values[metric], approved: run.approved, time: run.time, commit: run.commit, changed: run.changed }))
    .filter((each) => typeof each.value === "number");
  if (points.length < 2) return null;
  const values = points.map((each) => each.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (place) => (6 + (place / Math.max(1, history.length - 1)) * 148).toFixed(1);
  const y = (value) => (high === low ? 16 : 26 - ((value - low) / (high - low)) * 20).toFixed(1);
  const said = t("{n} runs, from {first} to {last}", {
    n: points.length, first: number(values[0]), last: number(values.at(-1)),
  });
  return h(
    "svg:svg",
    { class: "sparkline", viewBox: "0 0 160 32", role: "img", "aria-label": said },
    h("svg:title", {}, said),
    points.filter((each) => each.changed.length).map((each) =>
      h("svg:line", { class: "break", x1: x(each.place), x2: x(each.place), y1: 2, y2: 30 }, h("svg:title", {}, `${each.time}: ${t("changed")}: ${each.changed.map((name) => t(name)).join(t(", "))}`)),
    ),
    h("svg:polyline", { points: points.map((each) => `${x(each.place)},${y(each.value)}`).join(" ") }),
    points.map((each) => {
      const marked = each.approved || each === points.at(-1);
      const said = [each.time, each.commit].filter(Boolean).join(" ");
      return h("svg:circle", { class: each.approved ? "approved" : marked ? "last" : "earlier", cx: x(each.place), cy: y(each.value), r: marked ? 3.2 : 1.8 },
        h("svg:title", {}, `${said}: ${number(each.value)}${each.approved ? ` (${t("approved")})` : ""}`));
    }),
  );
}

const BINS = 10;

/** @param {number} entry @param {string} metric @returns {Element|null} How many cases have which score; a click on a bar shows its cases. */
function histogram(entry, metric) {
  const scores = (indexes[entry].metrics[metric] || []).filter((each) => each !== null);
  if (scores.length < 2) return null;
  const [from, to] = axis(scores);
  const width = (to - from) / BINS;
  const bins = new Array(BINS).fill(0);
  for (const each of scores) bins[Math.max(0, Math.min(BINS - 1, Math.floor((each - from) / width)))] += 1;
  const most = Math.max(...bins);
  const place = groups.findIndex((group) => group.entries.includes(entry));
  const edge = (at) => Number((from + at * width).toPrecision(6));
  return h(
    "svg:svg",
    { class: "histogram", viewBox: "0 0 120 30", role: "img", "aria-label": t("{n} cases by {metric} from {low} to {high}: {counts}", { n: scores.length, metric, low: shortNumber(from), high: shortNumber(to), counts: bins.join(", ") }) },
    bins.map((count, at) => {
      const tall = count ? Math.max(1.5, (26 * count) / most) : 0;
      const open = () => go({ ...NO_FILTERS, view: "cases", suite: place, system: systemOf(entry), metric, min: String(edge(at)), max: String(edge(at + 1)), sort: metric });
      return count ? h("svg:rect", { x: at * 12 + 1, y: (28 - tall).toFixed(1), width: 10, height: tall.toFixed(1), click: open }, h("svg:title", {}, `${edge(at)}..${edge(at + 1)}: ${counted(count, "{n} case", "{n} cases")}`)) : null;
    }),
    h("svg:line", { class: "axis", x1: 0, x2: 120, y1: 28.5, y2: 28.5 }),
  );
}

/**
 * Draw the scores of cases in two runs against each other; cases with nearly the same scores are one larger dot.
 * @param {{old: number, now: number, row: Row}[]} points
 * @param {{lower: boolean, names: [string, string], open: (rows: Row[]) => void}} options
 * @returns {Element}
 */
function scatter(points, { lower, names, open }) {
  const SIZE = 360;
  const [from, to] = axis(points.flatMap((each) => [each.old, each.now]));
  const place = (value) => 40 + ((value - from) / (to - from)) * (SIZE - 56);
  const dots = new Map();
  for (const point of points) {
    const at = [Math.round(place(point.old) / 4) * 4, Math.round((SIZE - place(point.now)) / 4) * 4];
    const key = at.join();
    if (!dots.has(key)) dots.set(key, { at, rows: [], gain: point.now - point.old });
    dots.get(key).rows.push(point.row);
  }
  const kind = (gain) => (Math.abs(gain) <= TIE ? "same" : gain > 0 !== lower ? "rose" : "fell");
  const label = t("Scores of {n} cases in both runs", { n: points.length });
  return h(
    "svg:svg",
    { class: "scatter", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": label },
    h("svg:rect", { class: "frame", x: 40, y: 16, width: SIZE - 56, height: SIZE - 56 }),
    h("svg:line", { class: "diagonal", x1: place(from), y1: SIZE - place(from), x2: place(to), y2: SIZE - place(to) }),
    [from, to].map((at, end) => [
      h("svg:text", { x: place(at), y: SIZE - 24, "text-anchor": end ? "end" : "start", class: "tick" }, shortNumber(at)),
      h("svg:text", { x: 34, y: SIZE - place(at) + (end ? 10 : 0), "text-anchor": "end", class: "tick" }, shortNumber(at)),
    ]),
    h("svg:text", { x: SIZE / 2, y: SIZE - 6, "text-anchor": "middle", class: "name" }, names[0]),
    h("svg:text", { x: -SIZE / 2, y: 12, transform: "rotate(-90)", "text-anchor": "middle", class: "name" }, names[1]),
    [...dots.values()].map(({ at, rows, gain }) => {
      const said = rows.length === 1 ? idOf(rows[0]) : counted(rows.length, "{n} case", "{n} cases");
      return h(
        "svg:circle",
        { class: `dot ${kind(gain)}`, cx: at[0], cy: at[1], r: Math.min(12, 3 + Math.sqrt(rows.length)).toFixed(1), click: () => open(rows) },
        h("svg:title", {}, said),
      );
    }),
  );
}
