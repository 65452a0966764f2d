const LONGEST = 20000;
const CALL_LENGTH = 120;

/** @param {any} value @returns {boolean} Whether a value is a list of messages, as chats have them. */
function isConversation(value) {
  return Array.isArray(value) && value.length > 0 && value.every((each) => each && typeof each === "object" && typeof each.role === "string");
}

/** @param {any} value @returns {any} A value as people read it: text as it is, messages as turns, anything else as JSON. */
function drawValue(value) {
  if (typeof value === "string") return drawText(value, "text");
  if (isMedium(value)) return drawMedium(value);
  if (isConversation(value)) return drawTurns(value);
  if (isConversation(value?.messages)) {
    const { messages, ...others } = value;
    return [drawTurns(messages), Object.keys(others).length ? h("details", {}, h("summary", {}, t("everything")), drawText(JSON.stringify(value, null, 2), "text json")) : null];
  }
  return [drawText(JSON.stringify(value, null, 2), "text json"), mediaIn(value).map(drawMedium)];
}

/** Fields that say the answer, where a prediction is an object. */
const ANSWER_FIELDS = ["answer", "text", "content", "output", "response"];

/** @param {any} prediction @returns {any} The text of the answer, where a field has it. */
function predictedPart(prediction) {
  const name = isConversation(prediction) ? undefined : ANSWER_FIELDS.find((each) => typeof prediction?.[each] === "string");
  return name === undefined ? prediction : prediction[name];
}

/** @param {any} texts Of a case. @returns {string} The answer as text: of a conversation what was said last. */
function answerText({ prediction }) {
  const messages = [prediction, prediction?.messages].find(isConversation);
  const said = messages?.findLast((each) => each.role === "assistant" && textOf(each.content ?? ""));
  return said ? textOf(said.content) : prediction === undefined ? "" : textOf(predictedPart(prediction));
}

/** @param {any} prediction @returns {any} Its answer as text, before its other parts. */
function drawPrediction(prediction) {
  const answer = predictedPart(prediction);
  if (answer === prediction || isConversation(prediction?.messages)) return drawValue(prediction);
  const others = Object.fromEntries(Object.entries(prediction).filter(([name, value]) => value !== answer || !ANSWER_FIELDS.includes(name)));
  return [drawText(answer, "text"), Object.keys(others).length ? drawValue(others) : null];
}

/** @param {string} text @param {string} kind @returns {Element} */
function drawText(text, kind) {
  if (text.length <= LONGEST) return h("pre", { class: kind, dir: "auto" }, text);
  const shown = h("pre", { class: kind, dir: "auto" }, text.slice(0, LONGEST));
  const more = h(
    "button",
    { type: "button", click: () => { fill(shown, text); more.remove(); } },
    t("Show {n} more characters", { n: text.length - LONGEST }),
  );
  return h("div", {}, shown, more);
}

/**
 * Draw messages: who says what, and the calls of tools, folded, with their results.
 * @param {any[]} messages
 * @param {any[]} [reference] Messages of another conversation in the same place, from which differences are marked.
 * @param {string[]} [findings] What is wrong: the calls that it is about are marked.
 * @returns {Element}
 */
function drawTurns(messages, reference, findings = []) {
  const results = new Map(messages.filter((each) => each.role === "tool" && each.tool_call_id !== undefined).map((each) => [each.tool_call_id, each.content]));
  const asked = new Set(messages.flatMap((each) => callsOf(each).map((call) => call?.id)));
  const known = reference && new Set(reference.flatMap(callsOf).map((call) => callLine(call)));
  const before = reference?.findLast((each) => each.role === "assistant")?.content;
  const last = messages.findLast((each) => each.role === "assistant");
  const shown = messages.filter((each) => each.role !== "tool" || !asked.has(each.tool_call_id));
  const said = (each) => (each === last && typeof before === "string" && typeof each.content === "string" && drawDifference(before, each.content)) || drawValue(each.content);
  return h(
    "ol",
    { class: "turns" },
    shown.map((each) =>
      h(
        "li",
        { class: each.role === "user" ? "user" : "other" },
        h("span", { class: "role" }, each.role),
        each.content === undefined || each.content === null || each.content === "" ? null : said(each),
        callsOf(each).length ? drawCalls(callsOf(each), results, known, findings) : null,
      ),
    ),
  );
}

/** @param {any} message @returns {any[]} */
function callsOf(message) {
  return Array.isArray(message?.tool_calls) ? message.tool_calls : [];
}

/** @param {any} call @returns {{name: string, given: any}} Name and arguments, however the call is written. */
function callParts(call) {
  const asked = call?.function && typeof call.function === "object" ? call.function : call;
  return { name: String(asked?.name ?? asked?.tool ?? t("call")), given: readJson(asked?.arguments) };
}

/** @param {any} call @returns {string} Name and arguments on one line. */
function callLine(call) {
  const { name, given } = callParts(call);
  const parts = given !== null && typeof given === "object" && !Array.isArray(given) ? Object.entries(given).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ") : given === undefined ? "" : JSON.stringify(given);
  return `${name}(${parts})`;
}

/**
 * Draw calls of tools, one after the other: name and arguments on a line, which opens to all of them and the result.
 * @param {any[]} calls
 * @param {Map<any, any>} [results] Results that are messages of their own, by the id of the call.
 * @param {Set<string>} [known] Lines of the calls of another conversation; other calls are marked.
 * @param {string[]} [findings] What is wrong: the calls that it is about are marked.
 * @returns {Element}
 */
function drawCalls(calls, results = new Map(), known = undefined, findings = []) {
  return h(
    "ol",
    { class: "timeline" },
    equalCalls(calls, results).map(({ call, first, times }) => {
      const { name, given } = callParts(call);
      const line = callLine(call);
      const wrong = isNamed(call, findings);
      const failed = ["error", "failed"].includes(call?.status) || call?.error;
      const found = [call?.result, call?.output, call?.error, results.get(call?.id)].filter((each) => each !== undefined && each !== null);
      return h(
        "li",
        { class: failed || wrong ? "call bad" : "call" },
        h(
          "details",
          { open: Boolean(failed) },
          h("summary", {}, calls.length > 1 ? h("span", { class: "quiet" }, times > 1 ? `${first}-${first + times - 1} ` : `${first} `) : null, wrong ? [sign("failed", t("something is wrong with this call")), " "] : null, h("code", { class: "tool" }, name), h("code", { class: "given", title: line.slice(0, 1000) }, line.slice(name.length, name.length + 300)), times > 1 ? h("span", { class: "kind" }, ` x ${times}`) : null, failed ? h("span", { class: "kind fell" }, " ", sign("failed"), " ", String(call.status || t("error"))) : null, known && !known.has(line) ? [" ", h("ins", {}, t("only here"))] : null),
          given === undefined ? null : drawValue(given),
          found.map((each) => [h("span", { class: "role" }, t("result")), drawValue(each)]),
        ),
      );
    }),
  );
}

/** @param {any[]} calls @param {Map<any, any>} results @returns {{call: any, first: number, times: number}[]} Calls by their numbers, equal ones that follow each other as one. */
function equalCalls(calls, results) {
  const grouped = [];
  const written = (call) => JSON.stringify([callLine(call), call?.result ?? call?.output ?? call?.error ?? results.get(call?.id) ?? null]);
  calls.forEach((call, at) => {
    const last = grouped.at(-1);
    if (last && written(last.call) === written(call)) last.times += 1;
    else grouped.push({ call, first: at + 1, times: 1 });
  });
  return grouped;
}

/** @param {any} call @param {string[]} findings @returns {boolean} Whether what is wrong is about this call, as evaluators write it. */
function isNamed(call, findings) {
  const { name, given } = callParts(call);
  const whole = `${name}(${given !== null && typeof given === "object" ? spaced(given).slice(1, -1).slice(0, CALL_LENGTH) : ""}`;
  const texts = Object.values(given !== null && typeof given === "object" ? given : {}).filter((each) => typeof each === "string");
  const chosen = texts.length === 1 ? [name, texts[0]] : [name];
  return findings.some((line) => {
    const found = /found (.+), expected (.+)/.exec(line);
    const wrong = found?.index === 0 ? found[1].split(", ").filter((each) => each !== found[2]) : [];
    return line.includes(whole) || line.startsWith(`${name}: `) || chosen.some((each) => wrong.includes(each));
  });
}

/** @param {any} value @returns {string} JSON with spaces after commas and colons. */
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${spaced(each)}`).join(", ")}}`;
}

/** @param {any} prediction @returns {any[]} Its calls, unless they stand in a transcript. */
function toolCalls(prediction) {
  return turnsOf(prediction) ? [] : callsOf(prediction);
}
