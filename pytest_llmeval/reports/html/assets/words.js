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

/** @param {number} count @param {string} one @param {string} many @returns {string} */
function counted(count, one, many) {
  return t(count === 1 ? one : many, { n: count });
}

/**
 * Write a score as the other reports do: with four decimals, an absent one as n/a.
 * @param {number|null|undefined} value
 * @returns {string}
 */
function number(value) {
  if (value === null || value === undefined) return "n/a";
  const text = Math.abs(value) < 1000 ? value.toFixed(4) : value.toFixed(1);
  return /^-[0.]+$/.test(text) ? text.slice(1) : text;
}

/** @param {number|null|undefined} value @returns {string} A difference, with its sign. */
function signed(value) {
  if (value === null || value === undefined) return "n/a";
  const text = number(value);
  return value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** @param {number|null|undefined} low @param {number|null|undefined} high @returns {string} */
function interval(low, high) {
  return low === null || low === undefined || high === null || high === undefined
    ? "n/a"
    : `${number(low)}..${number(high)}`;
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
  skipped: "–",
  not_run: "○",
  not_judged: "?",
  fell: "▼",
  rose: "▲",
  unclear: "?",
  same: "=",
  new: "+",
  vanished: "−",
};

/** @param {string} outcome @returns {string} */
function outcomeName(outcome) {
  return t(outcome.replaceAll("_", " "));
}
