/** Equal steps in a row from this many on are folded. */
const FOLDED_STEPS = 3;

/**
 * A step of two trajectories; the side that lacks it is null.
 * @typedef {{call: any, number: number}} Numbered
 * @typedef {{kind: "same"|"changed"|"removed"|"added", old: Numbered|null, now: Numbered|null}} Step
 */

/** @param {Numbered[]} old @param {Numbered[]} now @param {(one: Numbered) => string} written @returns {Step[]} */
function pairedSteps(old, now, written) {
  let [left, right] = [0, 0];
  return difference(old.map(written), now.map(written)).flatMap(({ kind, parts }) =>
    parts.map(() => {
      const step = { kind, old: kind === "added" ? null : old[left], now: kind === "removed" ? null : now[right] };
      left += Number(kind !== "added");
      right += Number(kind !== "removed");
      return step;
    }),
  );
}

/** @param {any[]} wanted @param {any[]} calls @returns {Step[]} Expected calls beside those that were made; between equal ones, calls of the same tool are one step. */
function alignedSteps(wanted, calls) {
  const numbered = (all) => all.map((call, at) => ({ call, number: at + 1 }));
  const nameOf = ({ call }) => callParts(call).name;
  const written = (each) => JSON.stringify([nameOf(each), ordered(callParts(each.call).given ?? null)]);
  const steps = [];
  let differing = [];
  const close = () => {
    const side = (name) => differing.map((each) => each[name]).filter(Boolean);
    steps.push(...pairedSteps(side("old"), side("now"), nameOf).map((each) => (each.kind === "same" ? { ...each, kind: "changed" } : each)));
    differing = [];
  };
  for (const each of pairedSteps(numbered(wanted), numbered(calls), written)) {
    if (each.kind !== "same") differing.push(each);
    else {
      close();
      steps.push(each);
    }
  }
  close();
  return steps;
}

/** @param {string} line Of an evaluator. @param {Step[]} steps @returns {number} The place of the step that it is about, or -1. */
function stepOf(line, steps) {
  return steps.findIndex(({ kind, old, now }) => kind !== "same" && [now, old].some((each) => each && isNamed(each.call, [line])));
}

/** @param {Step[]} steps @returns {Element} Expected and actual calls in two columns, a step each; equal ones are folded. */
function drawTrajectory(steps) {
  const rows = [];
  for (let at = 0; at < steps.length; at += 1) {
    let end = at;
    while (end < steps.length && steps[end].kind === "same") end += 1;
    const count = end - at;
    if (count < FOLDED_STEPS) rows.push(drawStep(steps[at], at));
    else {
      rows.push(h("details", { class: "equal" }, h("summary", { class: "quiet" }, t("{n} equal", { n: count })), steps.slice(at, end).map((each, more) => drawStep(each, at + more))));
      at = end - 1;
    }
  }
  return h("div", { class: "trajectory wanted" }, h("div", { class: "pair heads" }, h("h3", {}, t("Expected")), h("h3", {}, t("Prediction"))), rows);
}

/** @param {Step} step @param {number} at @returns {Element} */
function drawStep({ kind, old, now }, at) {
  const mark = kind === "same" ? null : [sign("failed", t("something is wrong with this call")), " "];
  return h(
    "div",
    { class: kind === "same" ? "pair" : "pair wrong", "data-step": at, tabindex: kind === "same" ? null : -1 },
    old ? drawStepCall(old, now, "del", now ? null : mark) : h("p", { class: "quiet" }, t("not expected")),
    now ? drawStepCall(now, old, "ins", mark) : h("p", { class: "quiet" }, t("missing")),
  );
}

/** @param {Numbered} own @param {Numbered|null} other The same step of the other side. @param {"del"|"ins"} tag @param {any} mark @returns {Element} A line that opens to all arguments and the result. */
function drawStepCall({ call, number }, other, tag, mark) {
  const { name, given } = callParts(call);
  const found = [call?.result, call?.output, call?.error].filter((each) => each !== undefined && each !== null);
  return h(
    "details",
    { class: "call" },
    h("summary", {}, mark, h("span", { class: "quiet" }, `${number} `), h("code", { class: "tool" }, name), h("code", { class: "given" }, drawArguments(given, other && callParts(other.call).given, tag))),
    given === undefined ? null : drawValue(given),
    found.map((each) => [h("span", { class: "role" }, t("result")), drawValue(each)]),
  );
}

/** @param {any} given @param {any} others Of the same step of the other side, or null. @param {"del"|"ins"} tag @returns {any} Arguments on a line; those that differ are marked. */
function drawArguments(given, others, tag) {
  if (given === undefined) return "()";
  if (given === null || typeof given !== "object" || Array.isArray(given)) return `(${JSON.stringify(given)})`;
  const parts = Object.entries(given).map(([key, value], at) => {
    const text = `${key}=${shortText(JSON.stringify(value)).slice(0, 80)}`;
    const differs = others && typeof others === "object" && JSON.stringify(ordered(others[key])) !== JSON.stringify(ordered(value));
    return [at ? ", " : "", differs ? h(tag, {}, text) : text];
  });
  return ["(", parts, ")"];
}

/** @param {number} at Goes to a step of the trajectory. */
function goToStep(at) {
  const step = document.querySelector(`.trajectory [data-step="${at}"]`);
  if (!step) return;
  step.scrollIntoView({ block: "center" });
  step.focus({ preventScroll: true });
}

/** @param {any} value @returns {any} Without its calls; the answer alone where nothing else is left, and undefined for nothing. */
function besideCalls(value) {
  if (value === null || typeof value !== "object" || !Array.isArray(value.tool_calls)) return value;
  const { tool_calls: _calls, ...others } = value;
  const names = Object.keys(others);
  return names.length > 1 ? others : names.length && ANSWER_FIELDS.includes(names[0]) ? others[names[0]] : names.length ? others : undefined;
}
