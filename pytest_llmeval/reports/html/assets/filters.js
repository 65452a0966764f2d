/** Cases whose texts hold what is searched for, by entry; filled piece by piece. @type {{q: string, hits: Map<number, Set<number>>}} */
const searched = { q: "", hits: new Map() };

/** @param {Group} group @returns {Row[]} All cases of a group of suites. */
function rowsOf(group) {
  return group.shown.flatMap((entry) => indexes[entry].ids.map((_, place) => ({ entry, place })));
}

/** @param {Group} group @returns {string[]} The metrics of the cases of a group. */
function metricsOf(group) {
  return [...new Set(group.shown.flatMap((entry) => Object.keys(indexes[entry].metrics)))];
}

/** @param {Group} group @returns {string} The metric that the first gate is about, or else the first one. */
function mainMetric(group) {
  const metrics = metricsOf(group);
  const gated = group.shown.flatMap((entry) => head.entries[entry].gates.map((gate) => gate.gate));
  return metrics.find((name) => gated.some((gate) => gate.split(/[ ()]/).includes(name))) || metrics[0] || "";
}

/** @param {Row} row @param {State} wanted @param {string} q In small letters. @returns {boolean} */
function holds(row, wanted, q) {
  const index = indexes[row.entry];
  if (index.ids[row.place].toLowerCase().includes(q)) return true;
  if (index.reasons[row.place].toLowerCase().includes(q)) return true;
  if (searched.q === wanted.q && searched.hits.get(row.entry)?.has(row.place)) return true;
  return Object.values(index.labels).some((column) => (decoded(column, row.place) || "").toLowerCase().includes(q));
}

/**
 * Return the cases that pass all filters.
 * @param {Row[]} rows
 * @param {State} wanted
 * @param {string} main The metric by which changes are told where no other is chosen.
 * @returns {Row[]}
 */
function filtered(rows, wanted, main) {
  const metric = wanted.metric || main;
  const q = wanted.q.toLowerCase();
  const labels = Object.entries(wanted.labels);
  const cell = wanted.cell ? cellCases(wanted.cell) : null;
  return rows.filter(
    (row) =>
      (!wanted.outcome.length || wanted.outcome.includes(outcomeOf(row))) &&
      (!wanted.system || systemName(row.entry) === wanted.system) &&
      labels.every(([name, value]) => (labelOf(row, name) ?? "(none)") === value) &&
      inRange(scoreOf(row, metric), wanted.min, wanted.max) &&
      (!wanted.repeats || decoded(indexes[row.entry].statuses, row.place) === wanted.repeats) &&
      (!wanted.change || isChange(changeOf(row, metric), wanted.change)) &&
      (!wanted.alike || alikeOf(row) === wanted.alike) &&
      (!cell || (cell.entry === row.entry && cell.ids.has(idOf(row)))) &&
      (!q || holds(row, wanted, q)),
  );
}

/** @param {string} change @param {string} wanted @returns {boolean} */
function isChange(change, wanted) {
  if (wanted === "changed") return change !== "equal" && change !== "new";
  return change === wanted;
}

/** @param {number|null} score @param {string} min @param {string} max @returns {boolean} */
function inRange(score, min, max) {
  const [low, high] = [min, max].map((each) => (each.trim() === "" ? NaN : Number(each)));
  if (Number.isNaN(low) && Number.isNaN(high)) return true;
  return score !== null && !(score < low) && !(score > high);
}

/**
 * Return the cases behind a cell of a matrix.
 * @param {string} cell Entry, table, row and column, with dots between them.
 * @returns {{entry: number, ids: Set<string>}|null}
 */
function cellCases(cell) {
  const [entry, table, row, column] = cell.split(".").map(Number);
  const cells = head.entries[entry]?.tables?.[table]?.cases || [];
  const found = cells.find((each) => each[0] === row && each[1] === column);
  return found ? { entry, ids: new Set(found[2]) } : null;
}

const OUTCOME_ORDER = ["errored", "failed", "known_failure", "xfailed", "not_scored", "not_run", "skipped", "scored", "passed"];

/** @param {Row} row @param {string} metric @returns {number} New failures are first, then others, then cases that moved, then the rest. */
function urgencyOf(row, metric) {
  const change = counterpart(row) ? changeOf(row, metric) : "";
  if (BAD.has(outcomeOf(row))) return ["regressed", ""].includes(change) ? 0 : 1;
  return ["equal", ""].includes(change) ? 3 : 2;
}

/** @param {Row} row @returns {string} The failure that a case shares with others of its suite; empty for none. */
function alikeOf(row) {
  const code = indexes[row.entry].alike[row.place];
  return code < 0 ? "" : `${row.entry}.${code}`;
}

/**
 * Keep the first of the cases that fail alike and changed alike.
 * @param {Row[]} rows
 * @param {string} metric
 * @returns {Map<Row, number>} The cases that are kept, and how many each stands for.
 */
function withoutEqual(rows, metric) {
  const firsts = new Map();
  const times = new Map();
  for (const row of rows) {
    const alike = alikeOf(row);
    const key = alike && `${alike} ${urgencyOf(row, metric)}`;
    const first = (key && firsts.get(key)) || row;
    if (key) firsts.set(key, first);
    times.set(first, (times.get(first) || 0) + 1);
  }
  return times;
}

/**
 * Sort cases; those without a value come last, and equal ones stay in the order of the file.
 * @param {Row[]} rows
 * @param {string} by A metric, `outcome`, `id`, `seconds`, or `change` of the metric of the filter; `-` for the largest first.
 * @param {string} metric
 * @returns {Row[]}
 */
function sorted(rows, by, metric) {
  if (!by) return rows.map((row) => ({ row, key: urgencyOf(row, metric) })).sort((a, b) => a.key - b.key).map((each) => each.row);
  const turned = by.startsWith("-") ? -1 : 1;
  const name = by.replace(/^-/, "");
  const value = {
    id: (row) => idOf(row),
    outcome: (row) => OUTCOME_ORDER.indexOf(outcomeOf(row)),
    seconds: (row) => indexes[row.entry].seconds[row.place],
    change: (row) => gainOf(row, metric),
  }[name.replace(/^@/, "")];
  const read = name.startsWith("@") && value ? value : (row) => scoreOf(row, name);
  const keyed = rows.map((row, place) => ({ row, place, key: read(row) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null) || a.place - b.place;
    return (a.key < b.key ? -turned : a.key > b.key ? turned : 0) || a.place - b.place;
  });
  return keyed.map((each) => each.row);
}

/**
 * Look for a text in the texts of the cases, piece by piece, so that the page stays responsive.
 * @param {Group} group
 * @param {string} q
 * @param {() => void} found Called after a piece that brought new cases.
 */
async function searchTexts(group, q, found) {
  if (searched.q === q) return;
  searched.q = q;
  searched.hits = new Map();
  const small = q.toLowerCase();
  for (const entry of group.shown) {
    const hits = new Set();
    searched.hits.set(entry, hits);
    let first = 0;
    for (const [piece, count] of head.entries[entry].chunks.entries()) {
      const texts = await unpack(`s${entry}c${piece}`);
      if (searched.q !== q) return;
      const before = hits.size;
      texts.forEach((each, place) => {
        if (JSON.stringify(Object.values(each)).toLowerCase().includes(small)) hits.add(first + place);
      });
      if (hits.size > before) found();
      first += count;
    }
  }
}
