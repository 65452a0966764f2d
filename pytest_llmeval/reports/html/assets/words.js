/** The language of the interface: Chinese where the browser prefers it, else English. */
const chinese = (navigator.language || "en").toLowerCase().startsWith("zh");

/**
 * Say a text of the interface in the reader's language.
 * @param {string} text In English, with names in braces for what is put in.
 * @param {Object<string, string|number>} [values] What is put in.
 * @returns {string}
 */
function t(text, values = {}) {
  const said = (chinese && inChinese[text]) || text;
  return said.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Sentences that come with the data of the page, the longer of two alike first. */
const SENTENCES = [
  "texts are left out, because the page would be too large",
  "texts of cases that passed are left out, because the page would be too large",
  "texts are cut to their beginnings, because the page would be too large",
  "this page has {n} MB",
  "not evaluated: judges are off",
  "not evaluated: {n} of {all} cases ran",
  "{n} case only in this run, or edited",
  "{n} cases only in this run, or edited",
  "{n} case only in the approved run, or edited",
  "{n} cases only in the approved run, or edited",
  "nothing failed, but {n} of {all} gates could not decide",
  "nothing failed, but {n} of {all} gate could not decide",
  "no limit, check, gate or approved score can fail",
  "{n} cases, {all} gates passed",
  "{n} cases, {all} gate passed",
  "{n} cases passed",
  "{metric} is {value}, expected {limit}",
  "{metric} is {value}",
];
const PLACEHOLDERS = { n: "\\d+", all: "\\d+", metric: ".+?", value: "-?[\\d.]+", limit: "[<>=]+ -?[\\d.]+" };

/** @param {string} sentence From the data. @returns {string} In the reader's language, if it is a known one. */
function translated(sentence) {
  for (const each of chinese ? SENTENCES : []) {
    const pattern = each.replace(/\{(\w+)\}/g, (_, name) => `(?<${name}>${PLACEHOLDERS[name]})`);
    const found = new RegExp(`^${pattern}$`, "u").exec(sentence);
    if (found) return t(each, found.groups);
  }
  return sentence;
}

/** @param {number} count @param {string} one @param {string} many @returns {string} */
function counted(count, one, many) {
  return t(count === 1 ? one : many, { n: count });
}

/** @param {number} value In seconds. @returns {string} */
function duration(value) {
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`;
}

/** Outcome of a case, verdict of a gate or kind of a change to its sign and name: never colour alone. */
const SIGNS = {
  passed: "✓",
  failed: "✗",
  errored: "!",
  xfailed: "x",
  known_failure: "k",
  scored: "·",
  not_scored: "–",
  flaky: "~",
  skipped: "–",
  not_run: "○",
  not_needed: "·",
  not_judged: "○",
  undecided: "?",
  within_chance: "≈",
  fell: "▼",
  rose: "▲",
  unclear: "≈",
  untold: "?",
  same: "=",
  new: "+",
  vanished: "−",
};

/** Outcomes whose name is not their key. */
const OUTCOME_NAMES = { within_chance: "not significant", not_judged: "not evaluated" };

/** @param {string} outcome @returns {string} */
function outcomeName(outcome) {
  return t(OUTCOME_NAMES[outcome] || outcome.replaceAll("_", " "));
}
