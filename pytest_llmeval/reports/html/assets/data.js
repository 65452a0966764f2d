/**
 * A row of the table of cases: a suite of a run, and the place of the case in it.
 * @typedef {{entry: number, place: number}} Row
 */

const head = JSON.parse(document.getElementById("head").textContent);

/** @returns {Object<string, {piece?: string, href?: string}>} Digest to where a content is. */
function pageMedia() {
  return head.media || {};
}

/** Columns of the cases of each entry, once they are unpacked. @type {any[]} */
const indexes = [];
/** Case id to place, for each entry that others are compared with. @type {Map<number, Map<string, number>>} */
const places = new Map();
/** Pieces that were unpacked, by name. @type {Map<string, Promise<any>>} */
const unpacked = new Map();

/**
 * Suites that belong together: the systems of a suite, and its runs.
 * @typedef {{name: string, path: string, entries: number[], shown: number[]}} Group
 * @type {Group[]}
 */
const groups = [];

/**
 * Unpack a part of the data, once.
 * @param {string} name Id of the element that has it.
 * @returns {Promise<any>}
 */
function unpack(name) {
  if (!unpacked.has(name)) {
    const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(name, new Response(stream).json());
  }
  return unpacked.get(name);
}

/** Unpack the columns of all cases, and group the suites. The texts stay packed. */
async function loadIndexes() {
  indexes.push(...(await Promise.all(head.entries.map((_, number) => unpack(`s${number}i`)))));
}

function groupSuites() {
  const found = new Map();
  head.entries.forEach((entry, number) => {
    const key = JSON.stringify([entry.path, entry.name]);
    if (!found.has(key)) found.set(key, { name: entry.name, path: entry.path, entries: [], shown: [] });
    const group = found.get(key);
    group.entries.push(number);
    if (!head.runs[entry.run].baseline) group.shown.push(number);
  });
  groups.push(...[...found.values()].filter((each) => each.shown.length));
}

/** @param {Row} row @returns {Promise<any>} The texts of a case; only its piece is unpacked. */
async function textsOf({ entry, place }) {
  let piece = 0;
  let first = 0;
  for (const count of head.entries[entry].chunks) {
    if (place < first + count) break;
    first += count;
    piece += 1;
  }
  return (await unpack(`s${entry}c${piece}`))[place - first];
}

/** @param {Row} row @returns {string} */
const idOf = (row) => indexes[row.entry].ids[row.place];

/** @param {{values: string[], codes: number[]}} column @param {number} place @returns {string|null} */
const decoded = (column, place) => (column.codes[place] < 0 ? null : column.values[column.codes[place]]);

/** @param {Row} row @returns {string} */
const outcomeOf = (row) => decoded(indexes[row.entry].outcomes, row.place) || "not_run";

/** @param {Row} row @param {string} metric @returns {number|null} */
function scoreOf(row, metric) {
  const column = indexes[row.entry].metrics[metric];
  return column ? column[row.place] : null;
}

/** @param {Row} row @param {string} label @returns {string|null} */
function labelOf(row, label) {
  const column = indexes[row.entry].labels[label];
  return column ? decoded(column, row.place) : null;
}

/** @param {number} entry @param {string} id @returns {Row|null} */
function find(entry, id) {
  if (!places.has(entry)) places.set(entry, new Map(indexes[entry].ids.map((each, place) => [each, place])));
  const place = places.get(entry).get(id);
  return place === undefined ? null : { entry, place };
}

/** @param {Row} row @returns {Row|null} The same case in the run that its suite is compared with. */
function counterpart(row) {
  const pair = head.entries[row.entry].pair;
  return pair === null || pair === undefined ? null : find(pair, idOf(row));
}

/** @param {number} entry @returns {string} What tells a suite from the others of its group: its run and its system. */
function sourceName(entry) {
  const { run, variant } = head.entries[entry];
  return [head.runs[run].label, variant].filter(Boolean).join(" · ") || t("this run");
}

/** @param {number} entry @returns {string} What tells a suite from the others that are shown with it: its system, where all are of one run. */
function systemName(entry) {
  const group = groups.find((each) => each.entries.includes(entry));
  const runs = new Set(group.shown.map((each) => head.entries[each].run));
  return (group.shown.includes(entry) && runs.size === 1 && head.entries[entry].variant) || sourceName(entry);
}

/** @param {number} entry @param {string} metric @returns {boolean} */
function lowerIsBetter(entry, metric) {
  return (head.entries[entry].lower_is_better || []).includes(metric);
}

const BAD = new Set(["failed", "errored"]);
const TIE = 1e-9;

/**
 * How a case differs from its counterpart: by outcome first, then by a metric.
 * @param {Row} row
 * @param {string} metric
 * @returns {"regressed"|"now passing"|"worse"|"better"|"equal"|"new"}
 */
function changeOf(row, metric) {
  const other = counterpart(row);
  if (!other) return "new";
  const [bad, was] = [BAD.has(outcomeOf(row)), BAD.has(outcomeOf(other))];
  if (bad !== was) return bad ? "regressed" : "now passing";
  const gain = gainOf(row, metric);
  if (gain === null || Math.abs(gain) <= TIE) return "equal";
  return gain > 0 ? "better" : "worse";
}

/** @param {Row} row @param {string} metric @returns {number|null} By how much better a case is than its counterpart. */
function gainOf(row, metric) {
  const other = counterpart(row);
  const [now, then] = [scoreOf(row, metric), other && scoreOf(other, metric)];
  if (now === null || then === null) return null;
  return lowerIsBetter(row.entry, metric) ? then - now : now - then;
}

/** @param {Row} row @returns {string} The case on a command line of pytest. */
function nodeOf(row) {
  const { path, variant } = head.entries[row.entry];
  return quoted(`${path}::${idOf(row)}${variant ? `[${variant}]` : ""}`);
}

/** @param {string} node @returns {string} A text as a word of a shell. */
function quoted(node) {
  return /^[\w./:@%+=-]+$/.test(node) ? node : `'${node.replaceAll("'", `'\\''`)}'`;
}
