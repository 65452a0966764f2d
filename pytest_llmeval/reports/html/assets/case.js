/** @param {string} key Entry and id of a case, as addresses have them. @returns {Row|null} */
function parseCase(key) {
  const [entry, ...id] = key.split("/");
  const number_ = Number(entry);
  return Number.isInteger(number_) && indexes[number_] ? find(number_, id.join("/")) : null;
}

/** @param {Row} row @param {Group} group @returns {Promise<Element>} Everything that is known of a case. */
async function drawCase(row, group) {
  const entry = head.entries[row.entry];
  const other = counterpart(row);
  const [texts, before] = await Promise.all([textsOf(row), other ? textsOf(other) : null]);
  const [wanted, calls] = [toolCalls(texts.expected), toolCalls(texts.prediction)];
  const steps = wanted.length && calls.length ? alignedSteps(wanted, calls) : [];
  const line = indexes[row.entry].lines[row.place];
  return h(
    "article",
    { class: "case" },
    drawSteps(row, group),
    h("h2", { tabindex: -1, id: "case" }, sign(outcomeOf(row)), " ", h("bdi", {}, idOf(row))),
    h("p", { class: "path" }, [entry.suite, `${texts.file || entry.path}${line ? `:${line}` : ""}`, indexes[row.entry].seconds[row.place] ? duration(indexes[row.entry].seconds[row.place]) : null].filter(Boolean).join(" · ")),
    texts.reason ? h("p", { class: `because ${outcomeOf(row)}` }, texts.reason) : null,
    drawCommand(`pytest --llmeval ${nodeOf(row)}`),
    drawLabels(row),
    drawLines(texts.lines, BAD.has(outcomeOf(row)) ? t("What is wrong") : t("What evaluators say"), steps),
    drawAnswers(texts, before, other, steps),
    await drawOtherSystems(row, group),
    drawScores(row, other),
    drawJudging(texts, row),
    drawFurther(texts),
    texts.details ? h("details", {}, h("summary", {}, t("Details")), drawText(JSON.stringify(texts.details, null, 2), "text json")) : null,
  );
}

/** @param {Row} row @param {Group} group @returns {Element} Ways to the table, and to the cases before and after. */
function drawSteps(row, group) {
  const same = (each) => each.entry === row.entry && each.place === row.place;
  const rows = shownCases.rows.some(same) ? shownCases.rows : sorted(filtered(rowsOf(group), { ...state, case: "" }, mainMetric(group)), state.sort, state.metric || mainMetric(group));
  const at = rows.findIndex(same);
  const step = (to, name, key) =>
    rows[to] && at >= 0 ? h("a", { class: "button", href: linkTo({ case: `${rows[to].entry}/${idOf(rows[to])}` }), "data-step": key, title: t("key {key}", { key }) }, name) : h("span", { class: "button off" }, name);
  return h(
    "nav",
    { class: "steps", "aria-label": t("Cases") },
    h("a", { class: "button", href: linkTo({}), "data-step": "Escape" }, `← ${t("All cases")}`),
    step(at - 1, t("Previous"), "k"),
    step(at + 1, t("Next"), "j"),
    at >= 0 ? h("span", { class: "quiet" }, t("{n} of {all}", { n: at + 1, all: rows.length })) : null,
  );
}

/** @param {any} texts @returns {Element|null} Fields of a case that have no other place on the page. */
function drawFurther({ file: _file, reason: _reason, lines: _lines, details: _details, input: _input, expected: _expected, prediction: _prediction, answers: _answers, judgings: _judgings, content: _content, ...further }) {
  const fields = Object.entries(further).map(([name, value]) => [name.replaceAll("_", " "), typeof value === "object" ? JSON.stringify(value) : value]);
  return fields.length ? drawFields(Object.fromEntries(fields)) : null;
}

/** @param {Row} row @returns {Element|null} */
function drawLabels(row) {
  const found = Object.keys(indexes[row.entry].labels).map((name) => [name, labelOf(row, name)]).filter(([, value]) => value !== null);
  return found.length ? h("p", { class: "labels" }, found.map(([name, value]) => h("span", { class: "label" }, `${name}: `, h("bdi", {}, value)))) : null;
}

/** @param {Object<string, string[]>} lines @param {string} title @param {Step[]} steps @returns {Element|null} What evaluators say of the answer. */
function drawLines(lines, title, steps) {
  const found = Object.entries(lines || {}).filter(([, said]) => said.length);
  if (!found.length) return null;
  return section(title, h("dl", { class: "lines" }, found.map(([name, said]) => [h("dt", {}, name), said.map((each) => h("dd", {}, findingOf(each, steps)))])));
}

/** @param {string} line Of an evaluator. @param {Step[]} steps @returns {any} Its text; what it says of a turn or a step leads there. */
function findingOf(line, steps) {
  const turn = /^turn (\d+)\b/.exec(line);
  const at = turn ? -1 : stepOf(line, steps);
  if (at >= 0) return [h("button", { type: "button", class: "to-turn", click: () => goToStep(at) }, t("step {n}", { n: (steps[at].now || steps[at].old).number })), " ", line];
  return turn ? [h("button", { type: "button", class: "to-turn", click: () => goToTurn(Number(turn[1])) }, turn[0]), line.slice(turn[0].length)] : line;
}

/** @param {any} all Texts of the case. @param {any} before @param {Row|null} other @param {Step[]} steps @returns {any} */
function drawAnswers(all, before, other, steps) {
  const texts = steps.length ? { ...all, expected: besideCalls(all.expected), prediction: besideCalls(all.prediction) } : all;
  const has = (name) => texts[name] !== undefined;
  if (!["input", "expected", "prediction"].some(has)) {
    return h("p", { class: "empty" }, t("The report has no texts of this case: run pytest with --llmeval-texts=all to have those of every case."));
  }
  const expected = has("expected") ? expectedPart(texts.expected, texts.prediction) : undefined;
  const whole = expected !== null && typeof expected === "object" && !Array.isArray(expected);
  const answer = whole ? texts.prediction : predictedPart(texts.prediction);
  const difference = has("expected") && has("prediction") && !isMedium(answer) ? drawDifference(nearest(expected, answer), answer) : null;
  const calls = toolCalls(all.prediction);
  const wanted = toolCalls(all.expected);
  const pixels = drawPictureDifference(all.expected, all.prediction);
  const transcript = drawTranscript(texts.prediction, texts.lines, texts.reason);
  const scripted = transcript && isConversation(texts.input);
  return [
    has("input") ? section(t("Input"), copyButton(() => copiedText(texts.input)), scripted ? h("details", {}, h("summary", {}, t("the script of the conversation")), drawValue(texts.input)) : drawValue(texts.input)) : null,
    transcript ? section(t("Transcript"), texts.answers ? h("p", { class: "quiet" }, repeatTitle(texts.answers[0])) : null, transcript, drawOtherFields(texts.prediction)) : null,
    h(
      "div",
      { class: "sides" },
      has("expected") ? section(t("Expected"), drawValue(texts.expected)) : null,
      has("prediction") && !transcript && !(texts.answers?.length > 1) ? section(t("Prediction"), copyButton(() => copiedText(texts.prediction)), texts.answers ? h("p", { class: "quiet" }, repeatTitle(texts.answers[0])) : null, drawPrediction(texts.prediction)) : null,
    ),
    texts.answers?.length > 1 ? drawRepeats(texts.answers) : null,
    steps.length ? section(t("Tool calls"), drawTrajectory(steps)) : null,
    pixels ? section(t("Difference"), pixels) : null,
    difference ? section(t("Difference"), h("div", { class: "wanted" }, h("p", { class: "quiet" }, legend(t("only expected"), t("only predicted"))), difference)) : null,
    !steps.length && (calls.length || wanted.length)
      ? section(t("Tool calls"), h("div", { class: "sides" }, wanted.length ? h("div", {}, h("h3", {}, t("Expected")), drawCalls(wanted)) : null, h("div", {}, h("h3", {}, t("Prediction")), calls.length ? drawCalls(calls, undefined, undefined, findingsOf(texts.lines, texts.reason)) : h("p", { class: "empty" }, t("none")))))
      : null,
    before?.prediction !== undefined ? section(t("Before, in {name}", { name: sourceName(other.entry) }), drawBefore(before.prediction, all.prediction)) : null,
  ];
}

/** @param {any} old @param {any} now @returns {any} How a prediction differs from that of the other run. */
function drawBefore(old, now) {
  const changed = drawChange(old, now);
  if (!changed) return h("p", { class: "quiet" }, t("The same prediction."));
  if (isMedium(old)) return [drawMedium(old), drawPictureDifference(old, now)];
  if (turnsOf(old) && turnsOf(now)) {
    const columns = [[t("before"), old], [t("now"), now]].map(([text, value]) => ({ title: text, text, value }));
    return drawSideBySide(columns, t("Before"));
  }
  return [h("p", { class: "quiet" }, legend(t("only before"), t("only now"))), changed];
}

/** @param {any} prediction @returns {Element|null} What a conversation has besides its messages. */
function drawOtherFields(prediction) {
  const { messages: _, ...others } = Array.isArray(prediction) ? {} : prediction;
  return Object.keys(others).length ? h("details", {}, h("summary", {}, t("everything")), drawText(JSON.stringify(prediction, null, 2), "text json")) : null;
}

/** @param {string} removed @param {string} added @returns {any[]} */
function legend(removed, added) {
  return [h("del", {}, removed), " ", h("ins", {}, added)];
}

/** @param {any} expected @param {any} prediction @returns {any} The part that says the answer, where only one of both has parts. */
function expectedPart(expected, prediction) {
  const parts = expected !== null && typeof expected === "object" && !Array.isArray(expected);
  return parts && "answer" in expected && typeof predictedPart(prediction) === "string" ? expected.answer : expected;
}

/** @param {any} old @param {any} now @returns {Element|null} How two answers to a case differ: in their words, or else in other parts. */
function drawChange(old, now) {
  const [before, after] = [predictedPart(old), predictedPart(now)];
  return (typeof before === "string" && typeof after === "string" && drawDifference(before, after)) || drawDifference(old, now);
}

/** @param {any} answer @returns {any} How often it came, and how often it passed. */
function repeatTitle({ times, passed }) {
  const outcome = passed === undefined ? null : passed === times ? "passed" : passed ? "flaky" : "failed";
  return [outcome ? [sign(outcome), " "] : null, repeatText({ times, passed })];
}

/** @param {any} answer @returns {string} */
function repeatText({ times, passed }) {
  const often = counted(times, "{n} repeat", "{n} repeats");
  return passed === undefined ? often : `${often}: ${passed === times ? t("passed") : passed ? t("{n} passed", { n: passed }) : t("failed")}`;
}

/** @param {any[]} answers @returns {Element} */
function drawRepeats(answers) {
  const columns = answers.map((each) => ({ title: repeatTitle(each), text: repeatText(each), value: each.prediction }));
  return section(t("Repeats side by side"), drawSideBySide(columns, t("Repeats side by side")));
}

/** @param {Row} row @param {Group} group @returns {Promise<any>} The answers of all systems to the same case. */
async function drawOtherSystems(row, group) {
  const others = group.shown.filter((entry) => entry !== row.entry).map((entry) => find(entry, idOf(row))).filter(Boolean);
  if (!others.length) return null;
  const metric = state.metric || mainMetric(group);
  const columns = await Promise.all([row, ...others].map(async (each) => ({ title: systemTitle(each, metric, each === row), text: systemName(each.entry), value: (await textsOf(each)).prediction })));
  return section(t("Systems side by side"), drawSideBySide(columns, t("Systems side by side")));
}

/** @param {Row} row @param {string} metric @param {boolean} own @returns {any} */
function systemTitle(row, metric, own) {
  const name = systemName(row.entry);
  const scored = h("span", { class: "figure" }, `${metric} `, figure(scoreOf(row, metric)));
  return [sign(outcomeOf(row)), " ", own ? name : h("a", { href: linkTo({ case: `${row.entry}/${idOf(row)}` }) }, name), " ", scored];
}

/** @param {Row} row @param {Row|null} other @returns {Element|null} */
function drawScores(row, other) {
  const names = Object.keys(indexes[row.entry].metrics).filter((name) => scoreOf(row, name) !== null || (other && scoreOf(other, name) !== null));
  if (!names.length) return null;
  const rows = names.map((name) => {
    const [now, then] = [scoreOf(row, name), other ? scoreOf(other, name) : null];
    const moved = now !== null && then !== null ? now - then : null;
    const kind = moved === null || Math.abs(moved) <= TIE ? "same" : moved > 0 !== lowerIsBetter(row.entry, name) ? "rose" : "fell";
    return [name, figure(now), ...(other ? [figure(then), moved === null ? "n/a" : h("span", { class: `kind ${kind}` }, kind === "same" ? "" : sign(kind, t(KINDS[kind])), " ", signedFigure(moved))] : [])];
  });
  return section(t("Scores"), table([t("metric"), t("score"), ...(other ? [t("before"), t("difference")] : [])], rows, { caption: t("Scores") }));
}

/** @param {Object<string, string>} fields @returns {Element} */
function drawFields(fields) {
  return h("dl", { class: "lines" }, Object.entries(fields).map(([name, text]) => [h("dt", {}, name), h("dd", {}, drawText(String(text), "text"))]));
}

/** @param {any} texts @param {Row} row @returns {any} Questions to judges with their replies, and how repeats went. */
function drawJudging(texts, row) {
  const judged = (texts.judgings || []).map((each) =>
    h(
      "details",
      { open: true },
      h("summary", {}, [each.evaluator, each.judge, each.mode, `${t("score")} ${number(each.score)}`, typeof each.cost_usd === "number" ? `${each.cost_usd.toFixed(6)} USD` : null].filter(Boolean).join(" · ")),
      h("div", { class: "sides" }, h("div", {}, h("h3", {}, t("Question")), drawFields(each.question)), h("div", {}, h("h3", {}, t("Reply")), drawValue(readJson(each.reply)))),
    ),
  );
  const reasoned = Object.entries(texts.details || {}).filter(([, each]) => typeof each?.reasoning === "string");
  const repeats = texts.details?.repeats;
  return [
    judged.length
      ? section(t("Judge"), judged)
      : reasoned.length
        ? section(t("Judge"), h("dl", { class: "lines" }, reasoned.map(([name, each]) => [h("dt", {}, name), h("dd", {}, each.reasoning)])))
        : null,
    repeats
      ? section(
          t("Repeats"),
          h("p", {}, t("{passed} of {times} passed: {status}", { passed: repeats.passed, times: repeats.times, status: outcomeName(String(repeats.status)) })),
          table([t("metric"), t("least"), t("most"), t("deviation"), t("scores")], Object.entries(repeats.spread || {}).map(([name, each]) => [name, ...[each.min, each.max, each.sd].map((value) => figure(value)), (each.scores || []).map((value) => [figure(value), " "])]), { caption: t("Repeats") }),
        )
      : null,
  ];
}
