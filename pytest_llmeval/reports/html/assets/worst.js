const CONTEXT = 60;
const SHOWN_TEXT = 320;
/** The share of two texts that both have, from which their differences are marked. */
const ALIKE = 0.4;

/**
 * Draw the cases that broke, the worst first, or else those that moved most.
 * @param {number} entry
 * @param {number} place Of its group.
 * @returns {Promise<Element|null>} Null where no case is in the report.
 */
async function drawWorst(entry, place) {
  const { worst } = head.entries[entry];
  if (!worst || !head.entries[entry].cases) return null;
  const texts = worst.cases.length ? await unpack(`s${entry}w`) : [];
  const asked = texts.map(({ now, before }) => excerptOf(now, before));
  const names = new Set(asked.map(namesOf).filter(Boolean));
  const drawn = (still) => {
    const items = worst.cases.map((each, at) => ((each.kind === "still_failing") === still ? brokenCase(each, texts[at].now, asked[at], names.size > 1, { entry, place }) : null)).filter(Boolean);
    return items.length ? h("ol", { class: "broken" }, items) : null;
  };
  return h(
    "section",
    { class: "worst" },
    h("h3", {}, worstTitle(worst), names.size === 1 ? [" ", h("small", { class: asked.some((each) => namesOf(each) && each.old === null) ? "legend wanted" : "legend" }, legend(...[...names][0].split("/")))] : null),
    drawn(false),
    drawRest(worst, entry, place),
    worst.failing ? drawCommand(`pytest --llmeval ${quoted(head.entries[entry].path)} --lf -v`) : null,
    worst.still ? h("details", { class: "still" }, h("summary", {}, counted(worst.still, "{n} case failed before as well", "{n} cases failed before as well")), drawn(true)) : null,
  );
}

/** @param {any} worst @returns {string} */
function worstTitle({ failing, still, fell, rose, compared, cases }) {
  if (failing) return t("What broke");
  if (still) return fell || rose ? t("No new failure. What moved most:") : t("No new failure.");
  if (fell || rose) return t("No case failed. What moved most:");
  return compared && !cases.length ? t("No case failed, and no score moved.") : t("No case failed.");
}

/** @param {any} worst @param {number} entry @param {number} place @returns {Element|null} How many more cases there are, and the way to them. */
function drawRest({ failing, fell, cases, compared }, entry, place) {
  const listed = cases.filter((each) => each.kind !== "rose" && each.kind !== "still_failing");
  const rest = failing + fell - listed.reduce((sum, each) => sum + 1 + (each.times || 0), 0);
  if (rest <= 0) return null;
  const filter = failing ? { outcome: ["failed", "errored"], sort: "", change: compared ? "regressed" : "" } : { change: "worse", sort: "@change" };
  return h("p", { class: "quiet" }, h("a", { href: linkTo({ ...NO_FILTERS, view: "cases", suite: place, system: systemOf(entry), ...filter }) }, t("{n} more cases failed or declined", { n: rest })));
}

const MOVES = {
  new_failure: "new failure",
  failing: "failed",
  still_failing: "failed before as well",
  fell: "declined",
  rose: "improved",
};

/**
 * Draw a case that broke or moved.
 * @param {any} found
 * @param {any} now Its texts.
 * @param {any} asked What is shown of these.
 * @param {boolean} named Whether the marks of its difference have a legend.
 * @param {{entry: number, place: number}} where Its suite, and the place of the group of the suite.
 * @returns {Element}
 */
function brokenCase(found, now, asked, named, { entry, place }) {
  const row = { entry, place: found.place };
  const bad = BAD.has(outcomeOf(row));
  const kind = found.kind === "rose" ? "rose" : bad ? outcomeOf(row) : "fell";
  const name = found.kind === "failing" ? outcomeName(outcomeOf(row)) : t(MOVES[found.kind]);
  const scores = found.metric
    ? h("span", { class: "figure" }, `${found.metric} `, typeof found.before === "number" ? [figure(found.before), " → "] : null, figure(found.now), found.gated || bad ? null : h("small", {}, ` (${t("no gate looks at it")})`))
    : null;
  return h(
    "li",
    { class: "broke", "data-kind": found.kind },
    h("p", { class: "top" }, h("span", { class: `kind ${kind === "rose" ? "rose" : "fell"}` }, sign(kind, name), " ", name), caseLink(entry, idOf(row), place), head.entries[entry].variant ? h("small", { class: "quiet" }, head.entries[entry].variant) : null, scores),
    asked.turn ? h("p", { class: "quiet" }, t("turn {n}", { n: asked.turn })) : null,
    asked.question ? h("p", { class: "question", dir: "auto" }, shortText(asked.question)) : null,
    drawOldAndNew(asked, named),
    now.reason ? h("p", { class: "why" }, shortText(now.reason)) : null,
    found.times ? h("p", { class: "why" }, counted(found.times, "the same in {n} more case", "the same in {n} more cases"), ": ", found.alike.map((other, at) => [at ? ", " : "", caseLink(entry, idOf({ entry, place: other }), place)]), found.times > found.alike.length ? " …" : null) : null,
  );
}

/**
 * Question and answers of a case; of a conversation those of the turn that is wrong, or else that differs.
 * @param {any} now
 * @param {any} before
 * @returns {{question: string, old: string|null, answer: string|null, expected: string|null, turn: number}}
 */
function excerptOf(now, before) {
  const turns = turnsOf(now.prediction);
  const earlier = turnsOf(before.prediction);
  if (!turns) {
    const answer = now.prediction === undefined ? null : textOf(now.prediction);
    const wanted = now.expected === undefined ? null : answer === null ? textOf(now.expected) : nearest(expectedPart(now.expected, now.prediction), answer);
    return { question: now.input === undefined ? "" : textOf(now.input), old: before.prediction === undefined ? null : textOf(before.prediction), answer, expected: typeof wanted === "string" ? wanted : null, turn: 0 };
  }
  const wrong = [...turnLines(now.lines).keys()][0];
  const differing = earlier ? firstDifference([earlier, turns]) : 0;
  const at = Math.min(turns.length, wrong || differing || turns.length);
  const said = (turn) => (turn ? replyOf(turn) : null);
  const wanted = now.expected?.turns?.[at - 1];
  return { question: textOf(turns[at - 1].messages.find((each) => each.role === "user")?.content ?? ""), old: earlier ? said(earlier[at - 1]) : null, answer: said(turns[at - 1]), expected: typeof wanted === "string" ? wanted : null, turn: at };
}

/** @param {any} asked @returns {string} What is compared: names of both sides, or nothing if there is no difference. */
function namesOf({ old, answer, expected }) {
  const from = old ?? expected;
  if (answer === null || from === null || from === answer) return "";
  return old === null ? `${t("expected")}/${t("answered")}` : `${t("before")}/${t("now")}`;
}

/** @param {any} asked @param {boolean} named @returns {any} The old answer and the new one with the words in which they differ. */
function drawOldAndNew({ old, answer, expected }, named) {
  if (answer === null && expected !== null) return h("p", { class: "answer", dir: "auto" }, h("small", { class: "quiet" }, t("expected"), ": "), shortText(expected));
  if (answer === null) return h("p", { class: "empty" }, t("no text in the report"));
  const from = old ?? expected;
  if (from === null) return h("p", { class: "answer", dir: "auto" }, shortText(answer));
  if (from === answer) return h("p", { class: "answer", dir: "auto" }, shortText(answer), h("small", { class: "quiet" }, ` (${old === null ? t("as expected") : t("the same answer")})`));
  const differing = joined(difference(words(from), words(answer)));
  const shared = differing.reduce((sum, { kind, parts }) => sum + (kind === "same" ? parts.join("").length : 0), 0);
  const wanted = old === null ? "wanted" : "";
  // The mixture of two texts that share little is harder to read than both.
  if (2 * shared < ALIKE * (from.length + answer.length)) return h("div", { class: wanted }, h("p", { class: "answer", dir: "auto" }, h("del", {}, shortText(from))), h("p", { class: "answer", dir: "auto" }, h("ins", {}, shortText(answer))));
  const runs = shortRuns(differing);
  const marks = { same: "span", removed: "del", added: "ins" };
  return h("p", { class: `answer ${wanted}`, dir: "auto" }, named ? h("small", { class: "legend" }, legend(...namesOf({ old, answer, expected }).split("/")), " ") : null, runs.map((each) => h(marks[each.kind], {}, each.text)));
}

/**
 * Cut what two texts share to the words around their differences, and long differences to their beginnings.
 * @param {{kind: "same"|"removed"|"added", parts: string[]}[]} runs
 * @returns {{kind: "same"|"removed"|"added", text: string}[]}
 */
function shortRuns(runs) {
  return runs.map(({ kind, parts }, at) => {
    const text = parts.join("");
    if (kind !== "same") return { kind, text: text.length <= SHOWN_TEXT ? text : `${text.slice(0, SHOWN_TEXT)} …` };
    const [begins, ends] = [at > 0 ? text.slice(0, CONTEXT) : "", at < runs.length - 1 ? text.slice(-CONTEXT) : ""];
    return { kind, text: text.length <= begins.length + ends.length + 10 ? text : `${begins} … ${ends}` };
  });
}

/** @param {string} text @returns {string} */
function shortText(text) {
  const whole = text.replace(/\s+/g, " ").trim();
  return whole.length <= SHOWN_TEXT ? whole : `${whole.slice(0, SHOWN_TEXT)} …`;
}

/** @param {any} value What was asked or answered. @returns {string} Its text: of an object the field that says it. */
function textOf(value) {
  if (typeof value === "string") return value;
  if (isMedium(value)) return mediumLine(value);
  if (isConversation(value)) return textOf(value.findLast((each) => each.role === "user")?.content ?? "");
  for (const name of ["question", ...ANSWER_FIELDS, "prompt", "query"]) {
    if (typeof value?.[name] === "string" || isMedium(value?.[name])) return textOf(value[name]);
  }
  return JSON.stringify(value) ?? "";
}
