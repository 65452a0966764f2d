/** A message of a user, and everything up to the next one. @typedef {{number: number, messages: any[]}} Turn */

const FOLDED_FROM = 4;

/** @param {any} prediction @returns {Turn[]|null} The turns of a conversation; what comes before the first message of the user is part of the first. */
function turnsOf(prediction) {
  const messages = isConversation(prediction?.messages) ? prediction.messages : isConversation(prediction) ? prediction : null;
  if (!messages || !messages.some((each) => each.role === "user")) return null;
  const turns = [];
  for (const each of messages) {
    const replied = turns.length && turns.at(-1).messages.some((other) => other.role === "user");
    if (!turns.length || (each.role === "user" && replied)) turns.push({ number: turns.length + 1, messages: [each] });
    else turns.at(-1).messages.push(each);
  }
  return turns;
}

/** @param {Object<string, string[]>|undefined} lines @returns {Map<number, [string, string][]>} Turn to what evaluators find wrong in it. */
function turnLines(lines) {
  const found = new Map();
  for (const [label, said] of Object.entries(lines || {})) {
    for (const line of said) {
      const number_ = Number(/^turn (\d+)\b/.exec(line)?.[1] || 0);
      if (number_) found.set(number_, [...(found.get(number_) || []), [label, line.replace(/^turn \d+:?\s*/, "")]]);
    }
  }
  return new Map([...found].sort(([one], [other]) => one - other));
}

/** @param {Turn} turn @returns {string} What the assistant says in it. */
function replyOf(turn) {
  return turn.messages.filter((each) => each.role === "assistant").map((each) => textOf(each.content ?? "")).filter(Boolean).join("\n");
}

/** @param {(Turn[]|null)[]} columns @returns {number} The first turn that is not the same in all, or 0. */
function firstDifference(columns) {
  const most = Math.max(...columns.map((each) => each?.length || 0));
  for (let at = 0; at < most; at += 1) {
    if (new Set(columns.map((each) => JSON.stringify(each?.[at]?.messages ?? null))).size > 1) return at + 1;
  }
  return 0;
}

/** @param {Object<string, string[]>} [lines] @param {string} [reason] @returns {string[]} What is wrong with a case, a line each: what evaluators say, and the parts of the reason. */
function findingsOf(lines, reason) {
  return [...Object.values(lines || {}).flat(), ...(reason || "").split(/; |(?<=\w): (?=turn \d|found )/)];
}

/** @param {any} prediction @param {Object<string, string[]>} [lines] @param {string} [reason] @returns {Element|null} A conversation turn by turn; those in which something is wrong are open and marked. */
function drawTranscript(prediction, lines, reason) {
  const turns = turnsOf(prediction);
  if (!turns) return null;
  const findings = findingsOf(lines, reason);
  const parts = findingsOf({}, reason).filter((line) => !findingsOf(lines).includes(line));
  const wrong = turnLines({ ...lines, [t("reason")]: parts });
  return h("div", { class: "transcript" }, turns.map((turn) => drawTurn(turn, wrong.get(turn.number), !wrong.size || turns.length < FOLDED_FROM || wrong.has(turn.number), findings)));
}

/** @param {Turn} turn @param {[string, string][]|undefined} wrong @param {boolean} open @param {string[]} findings Of the case. @returns {Element} */
function drawTurn(turn, wrong, open, findings) {
  const asked = turn.messages.find((each) => each.role === "user");
  return h(
    "details",
    { class: wrong ? "turn wrong" : "turn", open, "data-turn": turn.number },
    h("summary", {}, wrong ? [sign("failed", t("something is wrong in this turn")), " "] : null, h("b", {}, t("turn {n}", { n: turn.number })), h("span", { class: "quiet begin", dir: "auto" }, shortText(textOf(asked?.content ?? "")))),
    wrong ? h("ul", { class: "finding" }, wrong.map(([label, line]) => h("li", {}, h("code", {}, label), " ", line))) : null,
    drawTurns(turn.messages, undefined, findings.filter((line) => Number(/^turn (\d+)/.exec(line)?.[1] ?? turn.number) === turn.number).map((line) => line.replace(/^turn \d+:?\s*/, ""))),
  );
}

/** @param {number} number_ Opens a turn of the transcript, and goes to it. */
function goToTurn(number_) {
  const turn = document.querySelector(`.transcript [data-turn="${number_}"]`);
  if (!turn) return;
  turn.open = true;
  turn.scrollIntoView({ block: "center" });
  turn.querySelector("summary").focus({ preventScroll: true });
}

/**
 * Answers of several repeats, systems or runs side by side; conversations are aligned turn by turn.
 * @typedef {{title: any, value: any, text: string}} Column
 * @param {Column[]} columns
 * @param {string} caption
 * @returns {Element}
 */
function drawSideBySide(columns, caption) {
  const turns = columns.map((each) => turnsOf(each.value));
  const rows = turns.every((each) => each) ? alignedTurns(turns, columns) : [{ title: null, cells: columns.map((each, at) => answerCell(each.value, at ? columns[0].value : undefined)) }];
  return h(
    "div",
    { class: "scroll beside", tabindex: 0, role: "region", "aria-label": caption },
    h("div", { class: "aligned", "data-columns": Math.min(columns.length, 6) }, h("div", { class: "aligned-row heads" }, columns.map((each) => h("div", {}, h("h3", {}, each.title)))), rows.map((row) => alignedRow(row, columns))),
  );
}

/** @param {{title: any, cells: any[], same?: boolean, first?: boolean}} row @param {Column[]} columns @returns {any} */
function alignedRow({ title, cells, same, first }, columns) {
  const body = h("div", { class: "aligned-row" }, (same ? cells.slice(0, 1) : cells).map((cell, at) => h("div", { class: same ? "whole" : "" }, same ? null : h("p", { class: "which" }, columns[at].text), cell)));
  if (title === null) return body;
  return h("details", { class: first ? "step first" : "step", open: !same }, h("summary", {}, title, " ", first ? h("span", { class: "kind unclear" }, sign("within_chance", t("differs")), " ", t("the first turn that differs")) : same ? h("span", { class: "quiet" }, t("the same in all")) : null), body);
}

/** @param {Turn[][]} turns @param {Column[]} columns @returns {{title: any, cells: any[], same: boolean, first: boolean}[]} */
function alignedTurns(turns, columns) {
  const first = firstDifference(turns);
  const most = Math.max(...turns.map((each) => each.length));
  const written = (values) => new Set(values.map((each) => JSON.stringify(each ?? null))).size;
  return Array.from({ length: most }, (_, at) => {
    const messages = turns.map((each) => each[at]?.messages);
    const asked = messages.filter(Boolean).map((each) => each.filter((one) => one.role === "user"));
    const alike = written(asked) === 1;
    const cells = columns.map((_column, column) => {
      const own = messages[column];
      if (!own) return h("p", { class: "empty" }, t("ended before this turn"));
      return drawTurns(alike ? own.filter((each) => each.role !== "user") : own, column ? messages[0] : undefined);
    });
    const question = alike ? h("span", { class: "quiet begin", dir: "auto" }, shortText(textOf(asked[0][0]?.content ?? ""))) : null;
    return { title: [h("b", {}, t("turn {n}", { n: at + 1 })), question], cells, same: written(messages) === 1, first: at + 1 === first };
  });
}

/** @param {any} value @param {any} [reference] What it is compared with. @returns {any} */
function answerCell(value, reference) {
  if (value === undefined) return h("p", { class: "empty" }, t("no text in the report"));
  return (reference !== undefined && drawChange(reference, value)) || drawPrediction(value);
}
