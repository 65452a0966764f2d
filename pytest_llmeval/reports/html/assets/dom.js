const SVG = "http://www.w3.org/2000/svg";
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;
const JOINS = new Set(["\u200d", "\ufe0f"]);

/**
 * Split a text into what people see and escapes of what they would not see, such as characters that turn the direction.
 * @param {string} text From anywhere.
 * @returns {Node[]}
 */
function visible(text) {
  const nodes = [];
  let done = 0;
  for (const match of text.matchAll(UNSEEN)) {
    const found = match[0];
    if (found === "\n" || found === "\t") continue;
    if (JOINS.has(found) && /\p{Extended_Pictographic}\ufe0f?$/u.test(text.slice(Math.max(0, match.index - 4), match.index))) {
      continue;
    }
    if (match.index > done) nodes.push(document.createTextNode(text.slice(done, match.index)));
    const escape = document.createElement("span");
    escape.className = "escape";
    const code = found.codePointAt(0).toString(16);
    escape.textContent = code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
    nodes.push(escape);
    done = match.index + found.length;
  }
  if (done < text.length || !nodes.length) nodes.push(document.createTextNode(text.slice(done)));
  return nodes;
}

/**
 * Make an element. Texts become text nodes, never markup.
 * @param {string} tag Its name; `svg:` before it for a drawing.
 * @param {Object<string, any>} [attributes] Functions become listeners; null and false leave an attribute out.
 * @param {...any} children Nodes, texts, lists of them; null is left out.
 * @returns {any}
 */
function h(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:")
    ? document.createElementNS(SVG, tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** @param {Node} element @param {any} child */
function append(element, child) {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) child.forEach((each) => append(element, each));
  else if (child instanceof Node) element.appendChild(child);
  else visible(String(child)).forEach((each) => element.appendChild(each));
}

/** @param {Element} element @param {...any} children */
function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** @param {string} kind @param {string} [name] @returns {Element} The sign of an outcome, and its name for screen readers. */
function sign(kind, name = outcomeName(kind)) {
  return h("span", { class: `sign ${kind}`, role: "img", "aria-label": name, title: name }, SIGNS[kind] || "·");
}

/**
 * Make a table whose numbers stand under each other.
 * @param {any[]} headers Names of the columns.
 * @param {any[][]} rows Their cells; one that is an object with `cell` brings attributes with it.
 * @param {{texts?: number[], caption?: string, stacked?: boolean}} [options] Columns of texts: the first unless said
 *   otherwise; whether the cells of a row stand below each other on a narrow screen, with the names of their columns.
 * @returns {Element}
 */
function table(headers, rows, { texts = [0], caption = "", stacked = false } = {}) {
  const side = (place) => (texts.includes(place) ? "text" : "number");
  const names = headers.map((each) => (typeof each === "string" ? each : h("span", {}, each).textContent));
  // Elements that are no longer drawn as a table lose their roles.
  const role = (name) => (stacked ? { role: name } : {});
  const cell = (each, place) => {
    const { cell: content, ...attributes } =
      each !== null && typeof each === "object" && !Array.isArray(each) && "cell" in each ? each : { cell: each };
    const named = stacked ? { role: "cell", "data-label": place ? names[place] : null } : {};
    const kinds = [side(place), attributes.class, content === "n/a" && "absent"].filter(Boolean);
    return h("td", { ...named, ...attributes, class: kinds.join(" ") }, content);
  };
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption || t("table") },
    h(
      "table",
      stacked ? { class: "stacked", role: "table" } : {},
      h("thead", role("rowgroup"), h("tr", role("row"), headers.map((each, place) => h("th", { ...role("columnheader"), class: side(place), scope: "col" }, each)))),
      h("tbody", role("rowgroup"), rows.map((row) => h("tr", role("row"), row.map(cell)))),
    ),
  );
}

/** Mark where a table goes on beyond its edges, when its size or place changes. */
const edges = new ResizeObserver((seen) => seen.forEach(({ target }) => markEdges(target.closest(".scroll, .scroller"))));

/** @param {Element} scroller */
function markEdges(scroller) {
  if (!scroller) return;
  const rest = scroller.scrollWidth - scroller.clientWidth;
  scroller.toggleAttribute("data-more-before", rest > 1 && scroller.scrollLeft > 1);
  scroller.toggleAttribute("data-more-after", rest > 1 && scroller.scrollLeft < rest - 1);
}

/** @param {Element} root Watch all tables in it. */
function watchEdges(root) {
  edges.disconnect();
  for (const each of root.querySelectorAll(".scroll, .scroller")) {
    each.addEventListener("scroll", () => markEdges(each), { passive: true });
    edges.observe(each);
    if (each.firstElementChild) edges.observe(each.firstElementChild);
    markEdges(each);
  }
}

/** @param {string} title @param {...any} children @returns {Element} */
function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), children);
}
