const app = document.getElementById("app");
const WORDS = { yes: "Yes", no: "No" };
const ENDS = DATA.scale === "1-5" ? " 1 is worst, 5 is best." : "";

let annotator = "";
let place = 0;
let unsaved = 0;
let managing = false;

const done = () => DATA.items.filter((_, each) => entriesOf(annotator)[each]?.done).length;
const status = h("p", { class: "status", role: "status" });

/** @param {string} text @param {boolean} [wrong] */
function tell(text, wrong = false) {
  status.className = wrong ? "status wrong" : "status";
  fill(status, text);
}

/** @returns {number} The first item from here on that is not done, or the number of items. */
function nextOpen() {
  const open = (each) => !entriesOf(annotator)[each]?.done;
  const order = [...DATA.items.keys()];
  return order.slice(place).find(open) ?? order.find(open) ?? DATA.items.length;
}

/** Keep the labels here, and at the server if there is one. */
function save() {
  const kept = keep(annotator);
  if (DATA.served) {
    saveThere();
  } else if (kept) {
    tell(`Kept in this browser. Export the labels${DATA.modes ? " and notes" : ""} when you are done.`);
  } else {
    tell("This browser keeps nothing: export the labels before you close the page.", true);
  }
}

/** Send the labels, and say so once all are there. */
async function saveThere() {
  unsaved += 1;
  tell("Saving.");
  const failed = await sent(annotator).then(() => "", (error) => error.message || String(error));
  unsaved -= 1;
  if (failed) tell(`Not saved: ${failed}. Labels stay in this page; export them before you close it.`, true);
  else if (!unsaved) tell("Saved.");
}

/** @param {string | number | null} label What is said of the answer; null where the person cannot tell. */
function choose(label) {
  if (place >= DATA.items.length) return;
  change(place, { label, done: true });
  if (DATA.modes && label === "no") {
    save();
    draw();
    document.getElementById("note").focus();
    return;
  }
  if (label === "yes") change(place, { modes: [] });
  place += 1;
  save();
  draw();
}

/** Continue from an answer; one with a note or a mode is done. */
function advance() {
  const entry = entriesOf(annotator)[place];
  if (entry && (entry.note || entry.modes?.length) && !(entry.done && !entry.unsent)) {
    change(place, { label: entry.label ?? "no", done: true });
    save();
  }
  move(1);
}

function manage() {
  managing = !managing;
  draw();
}

/** @param {number} step */
function move(step) {
  place = Math.min(Math.max(place + step, 0), DATA.items.length);
  draw();
}

/** @param {string} title @param {string} text @param {any[]} media Of the text. @param {string} [kind] @returns {any[]} */
function passage(title, text, media, kind = "") {
  const says = media.length !== 1 || text !== mediumLine(media[0]);
  return [
    h("h2", {}, title),
    says ? h("p", { class: `text ${kind}`.trim(), dir: "auto", id: `text-${kind || title}` }, text) : null,
    media.length ? h("div", { class: "media", id: `media-${kind || title}` }, media.map(drawMedium)) : null,
  ];
}

/** @param {any} label @returns {string} The key that gives it. */
function keyOf(label) {
  return String(label)[0];
}

function choices(entry) {
  const button = (label) =>
    h(
      "button",
      { type: "button", "data-label": label, "aria-pressed": String(Boolean(entry?.done && entry.label === label)), click: () => choose(label) },
      WORDS[label] || String(label),
      DATA.scale === "yesno" ? h("kbd", { "aria-hidden": true }, keyOf(label)) : null,
    );
  const shown = DATA.scale === "yesno" ? [...DATA.labels].reverse() : DATA.labels;
  return h("div", { class: "choices" }, shown.map(button));
}

function itemView() {
  const item = DATA.items[place];
  const entry = entriesOf(annotator)[place];
  const note = h("textarea", { rows: 2, id: "note", maxlength: 4000 });
  note.value = entry?.note || "";
  note.addEventListener("input", () => {
    change(place, { note: note.value });
    keep(annotator);
  });
  note.addEventListener("change", save);
  return [
    item.question ? passage("Question", item.question, item.media.question) : null,
    item.reference ? passage("Right answer", item.reference, item.media.reference) : null,
    item.more.map(([name, text]) => h("details", { open: Boolean(DATA.modes) }, h("summary", {}, name), h("p", { class: "text", dir: "auto" }, text))),
    passage("Answer to label", item.answer, item.media.answer, "answer"),
    drawPictureDifference(item.media.reference, item.media.answer),
    h("fieldset", {}, h("legend", {}, DATA.ask, h("span", {}, ENDS)), choices(entry)),
    h("label", { class: "note" }, DATA.modes ? "What went wrong first " : "Note ", h("kbd", { "aria-hidden": true }, "c"), note),
    DATA.modes ? modesView() : null,
    h(
      "div",
      { class: "moves" },
      h("button", { type: "button", id: "back", disabled: place === 0, click: () => move(-1) }, "Back", h("kbd", { "aria-hidden": true }, "b")),
      h("button", { type: "button", id: "skip", "aria-pressed": String(Boolean(entry?.done && entry.label === null)), click: () => choose(null) }, "Skip", h("kbd", { "aria-hidden": true }, "s")),
      DATA.modes ? h("button", { type: "button", id: "next", click: advance }, "Continue", h("kbd", { "aria-hidden": true }, "Enter")) : null,
      DATA.modes ? h("button", { type: "button", id: "manage", click: manage }, "Rename, merge, split", h("kbd", { "aria-hidden": true }, "e")) : null,
    ),
  ];
}

function endView() {
  const open = DATA.items.length - done();
  const skipped = Object.values(entriesOf(annotator)).filter((entry) => entry.done && entry.label === null).length;
  const left = open ? `${open} of ${DATA.items.length} answers have no label yet.` : "Every answer is done.";
  return [
    h("h2", {}, "The end"),
    h("p", { id: "end" }, `${left}${skipped ? ` You skipped ${skipped}.` : ""}`),
    h(
      "div",
      { class: "moves" },
      open ? h("button", { type: "button", class: "main", click: () => { place = nextOpen(); draw(); } }, "Continue") : null,
      h("button", { type: "button", id: "back", click: () => move(-1) }, "Back", h("kbd", { "aria-hidden": true }, "b")),
    ),
  ];
}

const SECONDS = DATA.modes ? 40 : 20; // of one answer, about
const MINUTES = Math.max(1, Math.round((DATA.items.length * SECONDS) / 60));
const FACTS = [
  ["How many", `${DATA.items.length} of ${DATA.total} answers`],
  ["How long", `about ${MINUTES} ${MINUTES === 1 ? "minute" : "minutes"}, ${SECONDS} seconds each; you can stop and come back`],
  ["Scale", `${DATA.ask} ${DATA.scale === "1-5" ? "1 (worst) to 5 (best)" : "yes or no"}`],
  [
    "Keys",
    DATA.modes
      ? "y right; n wrong, then a note, and Enter; 1 to 0 failure modes, m one by name; Enter goes on; s skip; b back; e rename, merge or split modes"
      : `${DATA.scale === "1-5" ? "1 to 5" : "y and n"} label; c note; s skip; b back`,
  ],
];

function startView() {
  const name = h("input", { type: "text", id: "name", required: true, maxlength: 80, autocomplete: "off" });
  const start = (event) => {
    event.preventDefault();
    if (name.value.trim()) begin(name.value.trim());
  };
  return h(
    "form",
    { submit: start },
    h("p", { id: "intro" }, `${DATA.items.length === 1 ? "One answer waits" : `${DATA.items.length} answers wait`} for your labels, which are stored under your name.`),
    h("dl", { class: "facts" }, FACTS.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
    h("label", {}, "Your name, as the labels have it", name),
    h("button", { type: "submit", class: "main" }, "Start"),
    h("p", { class: "quiet" }, DATA.served ? "Labels go to the file of whoever gave you this address, and nowhere else." : "Labels stay in this browser until you export them."),
  );
}

/** @param {string} text Of a file of labels. */
function load(text) {
  const { taken, others, annotators } = takeOver(text);
  if (annotators.size === 1 && !annotator) [annotator] = annotators;
  place = 0;
  place = annotator ? nextOpen() : 0;
  save();
  draw();
  tell(`${taken} labels loaded${others ? `, ${others} lines are not of this review` : ""}.`, others > 0);
}

/** @param {string} file @param {string} lines */
function exported(file, lines) {
  const address = URL.createObjectURL(new Blob([lines], { type: "application/jsonl" }));
  h("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  tell(`Exported as ${file}.`);
}

function footer() {
  const file = h("input", { type: "file", id: "load", accept: ".jsonl" });
  file.addEventListener("change", async () => file.files.length && load(await file.files[0].text()));
  return h(
    "footer",
    {},
    h("button", { type: "button", id: "export", click: () => exported("labels.jsonl", linesOf(Object.keys(known))) }, "Export labels"),
    DATA.modes ? h("button", { type: "button", id: "export-notes", click: () => exported("modes.jsonl", noteLines()) }, "Export notes") : null,
    h("label", { class: "file" }, "Load labels", file),
    annotator ? h("button", { type: "button", id: "change", click: () => { annotator = ""; draw(); } }, "Another person") : null,
    status,
  );
}

function draw() {
  const main = h("main", { tabindex: -1 }, !annotator ? startView() : managing ? manageView() : place < DATA.items.length ? itemView() : endView());
  const count = DATA.items.length;
  const counter = annotator ? h("output", { id: "count" }, `${annotator}: ${done()} of ${count} done`) : null;
  const bar = annotator ? h("progress", { max: count, value: done(), "aria-label": "Progress" }) : null;
  const heading = annotator && managing ? "Failure modes" : annotator && place < count ? `Answer ${place + 1} of ${count}` : "Review of answers";
  fill(
    app,
    h("header", {}, h("h1", {}, heading), counter, bar),
    main,
    footer(),
  );
  document.body.dataset.ready = "true";
  (annotator ? main : document.getElementById("name")).focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** @param {string} name Who labels from now on. */
async function begin(name) {
  annotator = name;
  let missed = "";
  if (DATA.served) await fetched(name).catch((error) => (missed = String(error.message || error)));
  place = 0;
  place = nextOpen();
  keep(annotator);
  draw();
  if (missed) tell(`Cannot read the labels that were saved before: ${missed}`, true);
  else if (DATA.served && done()) save(); // what an earlier page could not send
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !annotator) return;
  const focused = /** @type {Element} */ (event.target);
  if (focused.closest("textarea, input, select")) {
    const leaves = event.key === "Escape" || (DATA.modes && event.key === "Enter" && !event.shiftKey && focused.id === "note");
    if (leaves) {
      event.preventDefault();
      app.querySelector("main").focus();
    }
    return;
  }
  if (DATA.modes && modeKeys(event)) return event.preventDefault();
  if (managing) return;
  const label = DATA.labels.find((each) => keyOf(each) === event.key.toLowerCase());
  const moves = { s: () => choose(null), b: () => move(-1), ArrowLeft: () => move(-1), ArrowRight: () => move(1) };
  if (label !== undefined) choose(label);
  else if (event.key === "c" && place < DATA.items.length) document.getElementById("note").focus();
  else if (Object.hasOwn(moves, event.key)) moves[event.key]();
  else return;
  event.preventDefault();
});

/** @param {KeyboardEvent} event @returns {boolean} Whether it is a key of failure modes. */
function modeKeys(event) {
  if (event.key === "e") manage();
  if (event.key === "e" || managing) return event.key === "e";
  if (place >= DATA.items.length || (event.key === "Enter" && event.target.closest("button, summary"))) return false;
  const { names } = modeNames();
  const name = names.find((_, number) => modeKey(number) === event.key);
  if (name !== undefined) toggle(name);
  else if (event.key === "m") document.getElementById("mode").focus();
  else if (event.key === "Enter") advance();
  else return false;
  return true;
}

addEventListener("storage", (event) => {
  if (event.key !== KEY) return;
  restore();
  if (annotator && !document.activeElement?.closest("textarea, input, select")) draw();
});

const last = restore();
if (DATA.annotator || last) begin(DATA.annotator || last);
else draw();
