const DATA = JSON.parse(document.getElementById("data").textContent);
const KEY = `llmeval review ${DATA.review}`;

/** Annotator to entries by number of the item: {label, note, done}. Without a prototype: people are called anything. */
const known = Object.create(null);

/** @param {string} annotator @returns {Object<string, any>} The entries of a person. */
function entriesOf(annotator) {
  return (known[annotator] ??= Object.create(null));
}

/** Read what this browser keeps of the review. @returns {string} Who labelled last; empty for nobody. */
function restore() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) || "{}");
    for (const [annotator, entries] of kept.people || []) Object.assign(entriesOf(annotator), Object.fromEntries(entries));
    return kept.last || "";
  } catch {
    return "";
  }
}

/** Keep the review in this browser. @param {string} last Who labels. @returns {boolean} Whether it could be kept. */
function keep(last) {
  try {
    const people = Object.entries(known).map(([annotator, entries]) => [annotator, Object.entries(entries)]);
    localStorage.setItem(KEY, JSON.stringify({ last, people }));
    return true;
  } catch {
    return false;
  }
}

/** @param {string[]} annotators @returns {string} The lines of a file of labels. */
function linesOf(annotators) {
  const lines = [];
  for (const annotator of annotators) {
    DATA.items.forEach((item, place) => {
      const entry = entriesOf(annotator)[place];
      if (!entry?.done) return;
      const { question, answer, ...chosen } = item.line;
      const note = entry.note ? { note: entry.note } : {};
      const label = { question, answer, annotator, scale: DATA.scale, label: entry.label, ...note, ...chosen };
      lines.push(`${JSON.stringify({ ...label, review: DATA.review })}\n`);
    });
  }
  return lines.join("");
}

/**
 * Take over exported labels; those that are here already stay.
 * @param {string} text The lines of a file.
 * @returns {{taken: number, others: number, annotators: Set<string>}} How many lines are new, and are not of this review.
 */
function takeOver(text) {
  const places = new Map(DATA.items.map(({ line }, place) => [`${line.question} ${line.answer} ${line.reference}`, place]));
  const found = { taken: 0, others: 0, annotators: new Set() };
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const label = parsed(line);
    const place = label && places.get(`${label.question} ${label.answer} ${label.reference}`);
    const fits = label && (label.label === null || DATA.labels.includes(label.label)) && typeof label.annotator === "string";
    if (place === undefined || !fits || !label.annotator || label.review !== DATA.review) {
      found.others += 1;
      continue;
    }
    found.annotators.add(label.annotator);
    const entries = entriesOf(label.annotator);
    if (entries[place]?.done) continue;
    entries[place] = { label: label.label, note: String(label.note || ""), done: true };
    found.taken += 1;
  }
  return found;
}

/** @param {string} line @returns {any} An object, or null for anything else. */
function parsed(line) {
  try {
    const value = JSON.parse(line);
    return value !== null && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** Get what the server has kept for a person. @param {string} annotator */
async function fetched(annotator) {
  const reply = await fetch(`labels?annotator=${encodeURIComponent(annotator)}`, { cache: "no-store" });
  if (!reply.ok) throw new Error(await reply.text());
  takeOver(await reply.text());
}

let sending = Promise.resolve();

/** Send all labels of a person, one request after the other. @param {string} annotator */
function sent(annotator) {
  const send = async () => {
    const entries = Object.entries(entriesOf(annotator)).filter(([, entry]) => entry.done);
    const labels = entries.map(([place, { label, note }]) => ({ item: Number(place), label, note: note || "" }));
    const body = JSON.stringify({ annotator, labels });
    const keepalive = body.length < 20_000; // such a request outlives the page; longer ones may not
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch("labels", { method: "POST", headers, body, keepalive });
    if (!reply.ok) throw new Error(await reply.text());
  };
  sending = sending.catch(() => {}).then(send);
  return sending;
}
