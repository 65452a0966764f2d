/** Parts of texts up to this many are compared; of longer ones only their common ends are taken off. */
const MOST_COMPARED = 3000;

/**
 * Compare two sequences: the shortest way from one to the other (Myers 1986).
 * @param {string[]} old
 * @param {string[]} now
 * @returns {{kind: "same"|"removed"|"added", parts: string[]}[]}
 */
function difference(old, now) {
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const [left, right] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const runs = [];
  const push = (kind, parts) => {
    if (!parts.length) return;
    if (runs.length && runs.at(-1).kind === kind) runs.at(-1).parts.push(...parts);
    else runs.push({ kind, parts: [...parts] });
  };
  push("same", old.slice(0, start));
  if (left.length + right.length > MOST_COMPARED) {
    push("removed", left);
    push("added", right);
  } else {
    for (const [kind, part] of shortestWay(left, right)) push(kind, [part]);
  }
  push("same", old.slice(old.length - end));
  return runs;
}

/** @param {string[]} left @param {string[]} right @returns {["same"|"removed"|"added", string][]} */
function shortestWay(left, right) {
  const size = left.length + right.length;
  const reached = new Int32Array(2 * size + 3);
  const at = (diagonal) => diagonal + size + 1;
  const trace = [];
  for (let steps = 0; steps <= size; steps += 1) {
    trace.push(reached.slice(at(-steps) - 1, at(steps) + 2));
    for (let diagonal = -steps; diagonal <= steps; diagonal += 2) {
      const down = diagonal === -steps || (diagonal !== steps && reached[at(diagonal - 1)] < reached[at(diagonal + 1)]);
      let x = down ? reached[at(diagonal + 1)] : reached[at(diagonal - 1)] + 1;
      while (x < left.length && x - diagonal < right.length && left[x] === right[x - diagonal]) x += 1;
      reached[at(diagonal)] = x;
      if (x >= left.length && x - diagonal >= right.length) return walkedBack(left, right, trace);
    }
  }
  return [];
}

/** @param {string[]} left @param {string[]} right @param {Int32Array[]} trace @returns {["same"|"removed"|"added", string][]} */
function walkedBack(left, right, trace) {
  const way = [];
  let [x, y] = [left.length, right.length];
  for (let steps = trace.length - 1; steps >= 0; steps -= 1) {
    const reached = (diagonal) => trace[steps][diagonal + steps + 1];
    const diagonal = x - y;
    const down = diagonal === -steps || (diagonal !== steps && reached(diagonal - 1) < reached(diagonal + 1));
    const before = down ? diagonal + 1 : diagonal - 1;
    const fromX = steps ? reached(before) : 0;
    const fromY = steps ? fromX - before : 0;
    while (x > fromX && y > fromY) {
      way.push(["same", left[x - 1]]);
      x -= 1;
      y -= 1;
    }
    if (steps) way.push(down ? ["added", right[y - 1]] : ["removed", left[x - 1]]);
    [x, y] = [fromX, fromY];
  }
  return way.reverse();
}

/**
 * Join changes that only space keeps apart, so that a phrase that changed is read as one.
 * @param {{kind: "same"|"removed"|"added", parts: string[]}[]} runs
 * @returns {{kind: "same"|"removed"|"added", parts: string[]}[]}
 */
function joined(runs) {
  const found = [];
  let [removed, added] = [[], []];
  const flush = () => {
    if (removed.length) found.push({ kind: "removed", parts: removed });
    if (added.length) found.push({ kind: "added", parts: added });
    [removed, added] = [[], []];
  };
  runs.forEach(({ kind, parts }, at) => {
    const between = kind === "same" && removed.length && added.length && at < runs.length - 1 && !parts.join("").trim();
    if (kind === "removed" || between) removed.push(...parts);
    if (kind === "added" || between) added.push(...parts);
    if (kind === "same" && !between) {
      flush();
      found.push({ kind, parts });
    }
  });
  flush();
  return found;
}

/** @param {string} text @returns {string[]} Words, spaces and signs; each character of scripts without spaces. */
function words(text) {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}\p{M}_]+|\s+|./gsu) || [];
}

/** @param {any} value @returns {any} With the keys of objects in order, so that order alone is no difference. */
function ordered(value) {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, ordered(value[key])]));
}

/** @param {any} value @returns {any} What a text says in JSON, also inside a fence of Markdown; else the value itself. */
function readJson(value) {
  if (typeof value !== "string") return value;
  const text = value.trim().replace(/^```\w*\n([\s\S]*)\n```$/, "$1");
  if (!/^[[{]/.test(text)) return value;
  try {
    return JSON.parse(text);
  } catch {
    return value;
  }
}

/**
 * Draw how one value differs from another: lines of JSON, or words of texts.
 * @param {any} old
 * @param {any} now
 * @returns {Element|null} Nothing where they are equal or cannot be compared.
 */
function drawDifference(old, now) {
  const [left, right] = [readJson(old), readJson(now)];
  if (isMedium(left) && isMedium(right)) return left.sha256 === right.sha256 ? null : drawPictureDifference(left, right) || drawMedium(right);
  const structured = [left, right].every((each) => each !== null && typeof each === "object");
  let runs;
  if (structured) {
    const lines = [left, right].map((each) => JSON.stringify(ordered(each), null, 2).split(/(?<=\n)/));
    runs = difference(lines[0], lines[1]);
  } else if (typeof old === "string" && typeof now === "string") {
    runs = joined(difference(words(old), words(now)));
  } else {
    return null;
  }
  if (runs.every((each) => each.kind === "same")) return null;
  const tags = { same: "span", removed: "del", added: "ins" };
  return h(
    "pre",
    { class: structured ? "diff json" : "diff", dir: "auto" },
    runs.map((each) => h(tags[each.kind], {}, each.parts.join(""))),
  );
}

/** @param {any} expected @param {any} prediction @returns {any} Of several references the one that shares most words. */
function nearest(expected, prediction) {
  if (!Array.isArray(expected) || typeof prediction !== "string") return expected;
  const texts = expected.filter((each) => typeof each === "string");
  if (texts.length !== expected.length || !texts.length) return expected;
  const said = new Set(words(prediction.toLowerCase()));
  const shared = (text) => {
    const own = words(text.toLowerCase()).filter((each) => each.trim());
    return own.filter((each) => said.has(each)).length / Math.max(1, own.length);
  };
  return texts.reduce((best, each) => (shared(each) > shared(best) ? each : best));
}
