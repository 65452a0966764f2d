/** Decimals of every value and difference, as in the other reports. */
const DECIMALS = 4;

/**
 * Write a number; an absent one as n/a.
 * @param {number|null|undefined} value From 1000 on it has one decimal.
 * @returns {string}
 */
function number(value) {
  if (value === null || value === undefined) return "n/a";
  const text = value.toFixed(Math.abs(value) < 1000 ? DECIMALS : 1);
  return /^-[0.]+$/.test(text) ? text.slice(1) : text;
}

/** @param {number|null|undefined} value @returns {string} A difference, with its sign. */
function signed(value) {
  const text = number(value);
  return value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** @param {number|null|undefined} low @param {number|null|undefined} high @returns {string} */
function interval(low, high) {
  return low === null || low === undefined || high === null || high === undefined ? "n/a" : `${number(low)}..${number(high)}`;
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

/** @param {number|null|undefined} value @returns {Element|string} */
function figure(value) {
  return typeof value === "number" ? rounded(number(value), String(value)) : "n/a";
}

/** @param {number|null|undefined} value @returns {Element|string} A difference. */
function signedFigure(value) {
  return typeof value === "number" ? rounded(signed(value), value > 0 ? `+${value}` : String(value)) : "n/a";
}

/** @param {number|null|undefined} low @param {number|null|undefined} high @returns {Element|string} */
function intervalFigure(low, high) {
  return typeof low === "number" && typeof high === "number" ? rounded(interval(low, high), `${low}..${high}`) : "n/a";
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
