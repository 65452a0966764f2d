const DATA = JSON.parse(document.getElementById("data").textContent);

/** @returns {Object<string, {piece?: string, href?: string}>} Digest to where a content is. */
function pageMedia() {
  return DATA.media || {};
}

/** @param {string} text @returns {string} This page is in English only. */
function t(text) {
  return text;
}

const KEY = `llmeval review ${DATA.review}`;

/** Annotator to entries by number of the item: {label, note, modes, at, done, unsent}. Without a prototype: people are called anything. */
const known = Object.create(null);

/** @param {string} annotator @returns {Object<string, any>} The entries of a person. */
function entriesOf(annotator) {
  return (known[annotator] ??= Object.create(null));
}

/** Read what this browser keeps, of other windows also; what is newer counts. @returns {string} Who labelled last. */
function restore() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) || "{}");
    for (const [annotator, entries] of kept.people || []) {
      const own = entriesOf(annotator);
      for (const [place, entry] of entries) if (!own[place] || (entry.at || "") > (own[place].at || "")) own[place] = entry;
    }
    (kept.events || []).forEach(addEvent);
    (kept.unsent || []).forEach((line) => unsentEvents.add(line));
    return kept.last || "";
  } catch {
    return "";
  }
}

/** Keep the review in this browser. @param {string} last Who labels. @returns {boolean} Whether it could be kept. */
function keep(last) {
  restore();
  try {
    const people = Object.entries(known).map(([annotator, entries]) => [annotator, Object.entries(entries)]);
    localStorage.setItem(KEY, JSON.stringify({ last, people, events, unsent: [...unsentEvents] }));
    return true;
  } catch {
    return false;
  }
}

/** Change what a person says of an answer. @param {number} place @param {any} said @returns {any} The entry. */
function change(place, said) {
  const entries = entriesOf(annotator);
  entries[place] = { label: null, note: "", done: false, ...entries[place], ...said, at: now(), unsent: true };
  return entries[place];
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
 * Take over exported labels and notes; those that are here already stay, unless a note is newer.
 * @param {string} text The lines of a file.
 * @returns {{taken: number, others: number, annotators: Set<string>}} How many lines are new, and are not of this review.
 */
function takeOver(text) {
  const places = new Map(DATA.items.map(({ line }, place) => [`${line.question} ${line.answer} ${line.reference}`, place]));
  const found = { taken: 0, others: 0, annotators: new Set() };
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const label = parsed(line);
    if (label?.event && label.event !== "note") {
      addEvent(label);
      continue;
    }
    const place = label && places.get(`${label.question} ${label.answer} ${label.reference}`);
    if (label?.event && place !== undefined && label.review === DATA.review && typeof label.by === "string") {
      noteTaken(label, place);
      found.annotators.add(label.by);
      continue;
    }
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

/** @param {any} line A note. @param {number} place */
function noteTaken(line, place) {
  const { note = "", modes = [], at } = line;
  const entries = entriesOf(line.by);
  const here = entries[place];
  if (here?.at && here.at >= at) return;
  const label = here?.done ? here.label : note || modes.length ? "no" : "yes";
  entries[place] = { label, note, modes, at, done: true };
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

/** Send what the server has not got of a person, one request after the other. @param {string} annotator */
function sent(annotator) {
  const send = async () => {
    const entries = Object.entries(entriesOf(annotator)).filter(([, entry]) => entry.done && entry.unsent);
    const said = ([place, { label, note, modes, at }]) => ({ item: Number(place), label, note: note || "", ...(DATA.modes ? { modes, at } : {}) });
    const lines = [...unsentEvents];
    if (!entries.length && !lines.length) return;
    const body = JSON.stringify({ annotator, labels: entries.map(said), events: lines.map((line) => JSON.parse(line)) });
    const keepalive = body.length < 20_000; // such a request outlives the page; longer ones may not
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch("labels", { method: "POST", headers, body, keepalive });
    if (!reply.ok) throw new Error(await reply.text());
    for (const [place, { at }] of entries) if (entriesOf(annotator)[place].at === at) entriesOf(annotator)[place].unsent = false;
    lines.forEach((line) => unsentEvents.delete(line));
    keep(annotator);
  };
  sending = sending.catch(() => {}).then(send);
  return sending;
}
