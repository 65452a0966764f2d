const MOST_DECIMALS = 6;
/** Decimals of numbers whose interval is not known, as in the other reports. */
const USUAL_DECIMALS = 4;

/**
 * Decimals that say something: so many that the width of the interval has two significant digits.
 * @param {number|null|undefined} low
 * @param {number|null|undefined} high
 * @returns {number|null} Null where there is no interval, or one without width.
 */
function decimals(low, high) {
  if (typeof low !== "number" || typeof high !== "number") return null;
  const width = Math.abs(high - low);
  if (!(width > 1e-12) || !Number.isFinite(width)) return null;
  const exponent = Number(width.toExponential(1).split("e")[1]);
  return Math.max(0, Math.min(MOST_DECIMALS, 1 - exponent));
}

/**
 * Decimals that write all of some numbers as exactly as four do, and no more of them than that takes.
 * @param {(number|null|undefined)[]} values
 * @returns {number} From 2 to 4.
 */
function decimalsFor(values) {
  let most = 2;
  for (const each of values) {
    if (typeof each !== "number") continue;
    while (most < USUAL_DECIMALS && Number(each.toFixed(most)) !== Number(each.toFixed(USUAL_DECIMALS))) most += 1;
    if (most === USUAL_DECIMALS) break;
  }
  return most;
}

/**
 * Write a number; an absent one as n/a.
 * @param {number|null|undefined} value
 * @param {number} [digits] Decimals; of numbers from 1000 on at most one.
 * @returns {string}
 */
function number(value, digits = USUAL_DECIMALS) {
  if (value === null || value === undefined) return "n/a";
  const text = value.toFixed(Math.abs(value) < 1000 ? digits : Math.min(1, digits));
  return /^-[0.]+$/.test(text) ? text.slice(1) : text;
}

/** @param {number|null|undefined} value @param {number} [digits] @returns {string} A difference, with its sign. */
function signed(value, digits) {
  const text = number(value, digits);
  return value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** @param {number|null|undefined} low @param {number|null|undefined} high @param {number} [digits] @returns {string} */
function interval(low, high, digits) {
  return low === null || low === undefined || high === null || high === undefined ? "n/a" : `${number(low, digits)}..${number(high, digits)}`;
}

/**
 * Show a rounded number: the exact one is its title, and is what gets copied.
 * @param {string} text As it is shown.
 * @param {string} exact
 * @returns {Element}
 */
function rounded(text, exact) {
  return h("span", { class: "num", title: exact === text ? null : exact, "data-exact": exact }, text);
}

/** @param {number|null|undefined} value @param {number} [digits] @returns {Element|string} */
function figure(value, digits) {
  return typeof value === "number" ? rounded(number(value, digits), String(value)) : "n/a";
}

/** @param {number|null|undefined} value @param {number} [digits] @returns {Element|string} A difference. */
function signedFigure(value, digits) {
  return typeof value === "number" ? rounded(signed(value, digits), value > 0 ? `+${value}` : String(value)) : "n/a";
}

/** @param {number|null|undefined} low @param {number|null|undefined} high @param {number} [digits] @returns {Element|string} */
function intervalFigure(low, high, digits) {
  return typeof low === "number" && typeof high === "number" ? rounded(interval(low, high, digits), `${low}..${high}`) : "n/a";
}

/** Decimals of the metrics of each entry, once they are asked for. @type {Map<string, number>} */
const knownDecimals = new Map();

/**
 * Decimals of a metric of a suite: the same in every view, for all its systems, cases and groups.
 * @param {number} entry
 * @param {string} metric
 * @returns {number}
 */
function digitsOf(entry, metric) {
  const group = groups.find((each) => each.entries.includes(entry));
  const key = `${group ? groups.indexOf(group) : -1 - entry} ${metric}`;
  if (!knownDecimals.has(key)) knownDecimals.set(key, Math.max(...(group ? group.shown : [entry]).map((each) => ownDigits(each, metric))));
  return knownDecimals.get(key);
}

/** @param {number} entry @param {string} metric @returns {number} */
function ownDigits(entry, metric) {
  const suite = head.entries[entry];
  const found = metric === "pass_rate" ? suite.pass_rate : suite.metrics?.[metric];
  const scores = indexes[entry]?.metrics[metric] || [];
  return decimals(found?.low, found?.high) ?? decimalsFor([found?.value, found?.mean, ...scores]);
}

/** @param {[number|null|undefined, number][]} cells Values of a column with their decimals. @returns {number[]} Decimals of each: the same for all shares. */
function columnDigits(cells) {
  const share = ([value]) => typeof value === "number" && Math.abs(value) <= 1;
  const most = Math.max(0, ...cells.filter(share).map(([, digits]) => digits));
  return cells.map((each) => (share(each) ? most : each[1]));
}

/**
 * Write the numbers of a sentence as the page shows them elsewhere; others stay as they are.
 * @param {string} sentence From the data, with numbers of four or six decimals.
 * @param {[number|null|undefined, number, string?][]} known Numbers that the page shows, with their decimals and the
 *   name of their metric.
 * @returns {(string|Element)[]}
 */
function withFigures(sentence, known) {
  const parts = [];
  let done = 0;
  for (const found of sentence.matchAll(/(?<![\w-]|(?<!\.)\.|(?<!-)[<>=] )-?\d+(?:\.\d+)?(?![\w])(?!\.\d)/g)) {
    const text = found[0];
    const places = (text.split(".")[1] || "").length;
    const all = known.filter(([value]) => typeof value === "number" && places > 2 && (number(value, places) === text || String(Number(value.toFixed(6))) === text));
    // Several metrics may have this value: it is that of the one that the sentence named last.
    const named = all.map(([, , name]) => (name ? sentence.lastIndexOf(name, found.index) : -1));
    const same = all[named.indexOf(Math.max(...named))];
    if (!same || same[1] >= places) continue;
    parts.push(sentence.slice(done, found.index), figure(same[0], same[1]));
    done = found.index + text.length;
  }
  return [...parts, sentence.slice(done)];
}

/** Put exact numbers on the clipboard in place of those that are shown. @param {ClipboardEvent} event */
function copied(event) {
  const chosen = getSelection();
  if (!chosen.rangeCount || chosen.isCollapsed || document.activeElement?.matches("input, textarea")) return;
  const range = chosen.getRangeAt(0);
  const inside = (range.commonAncestorContainer.nodeType === Node.TEXT_NODE ? range.commonAncestorContainer.parentElement : range.commonAncestorContainer).closest?.("[data-exact]");
  const holder = h("div", { class: "copying" });
  holder.append(inside ? inside.cloneNode(true) : range.cloneContents());
  const numbers = holder.querySelectorAll("[data-exact]");
  if (!numbers.length) return;
  for (const each of numbers) each.textContent = each.dataset.exact;
  document.body.append(holder);
  event.clipboardData.setData("text/plain", holder.innerText);
  holder.remove();
  event.preventDefault();
}
