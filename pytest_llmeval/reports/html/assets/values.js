const LONGEST = 20000;

/** @param {any} value @returns {boolean} Whether a value is a list of messages, as chats have them. */
function isConversation(value) {
  return Array.isArray(value) && value.length > 0 && value.every((each) => each && typeof each === "object" && typeof each.role === "string");
}

/** @param {any} value @returns {any} A value as people read it: text as it is, messages as turns, anything else as JSON. */
function drawValue(value) {
  if (typeof value === "string") return drawText(value, "text");
  if (isConversation(value)) return drawTurns(value);
  if (isConversation(value?.messages)) {
    const { messages, ...others } = value;
    return [drawTurns(messages), Object.keys(others).length ? h("details", {}, h("summary", {}, t("everything")), drawText(JSON.stringify(value, null, 2), "text json")) : null];
  }
  return drawText(JSON.stringify(value, null, 2), "text json");
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

/** @param {any[]} messages @returns {Element} */
function drawTurns(messages) {
  return h(
    "ol",
    { class: "turns" },
    messages.map((each) =>
      h(
        "li",
        { class: each.role === "user" ? "user" : "other" },
        h("span", { class: "role" }, each.role),
        each.content === undefined || each.content === null || each.content === "" ? null : drawValue(each.content),
        Array.isArray(each.tool_calls) && each.tool_calls.length ? drawCalls(each.tool_calls) : null,
      ),
    ),
  );
}

/** @param {any[]} calls @returns {Element} Calls of tools, one after the other. */
function drawCalls(calls) {
  return h(
    "ol",
    { class: "timeline" },
    calls.map((call) => {
      const asked = call?.function && typeof call.function === "object" ? call.function : call;
      const failed = ["error", "failed"].includes(call?.status) || call?.error;
      return h(
        "li",
        { class: failed ? "call bad" : "call" },
        h("code", { class: "tool" }, String(asked?.name ?? asked?.tool ?? t("call"))),
        failed ? h("span", { class: "kind fell" }, sign("failed"), " ", String(call.status || t("error"))) : null,
        asked?.arguments === undefined ? null : drawValue(readJson(asked.arguments)),
        [call?.result, call?.output, call?.error].filter((each) => each !== undefined && each !== null).map((each) => [h("span", { class: "role" }, t("result")), drawValue(each)]),
      );
    }),
  );
}

/** @param {any} prediction @returns {any[]} */
function toolCalls(prediction) {
  const found = prediction?.tool_calls;
  return Array.isArray(found) ? found : [];
}
