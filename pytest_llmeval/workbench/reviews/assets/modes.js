/** What people did to the modes in this page and elsewhere, in the order of time. @type {any[]} */
const events = [];
/** Lines of events that the server has not got. @type {Set<string>} */
const unsentEvents = new Set();

let latest = 0;

/** @returns {string} A time of one width, later than every earlier one of this page. */
function now() {
  latest = Math.max(Date.now(), latest + 1);
  return new Date(latest).toISOString();
}

/** @param {any} event Of this page, a file or the server. @returns {boolean} Whether it is new. */
function addEvent(event) {
  const line = JSON.stringify(event);
  if (events.some((each) => JSON.stringify(each) === line)) return false;
  events.push(event);
  events.sort((left, right) => (left.at < right.at ? -1 : left.at > right.at ? 1 : 0));
  return true;
}

/** @returns {{names: string[], now: Map<string, string>}} The modes, and every name that one has had to that of today. */
function modeNames() {
  const today = new Map(DATA.modes.map((name) => [name, name]));
  const made = [...DATA.modes];
  const use = (name) => {
    if (!today.has(name)) {
      today.set(name, name);
      made.push(name);
    }
    return today.get(name);
  };
  const replace = (old, name) => today.forEach((each, key) => each === old && today.set(key, name));
  for (const each of events) {
    if (each.event === "create") use(each.mode);
    else if (each.event === "split") use(each.into);
    else if (each.event === "merge") replace(use(each.mode), use(each.into));
    else if (each.event === "rename") {
      const old = use(each.mode);
      today.set(each.name, each.name);
      replace(old, each.name);
    }
  }
  for (const entries of Object.values(known)) Object.values(entries).forEach((entry) => (entry.modes || []).forEach(use));
  return { names: [...new Set(made.map((name) => today.get(name)))], now: today };
}

/** @param {any} entry @returns {string[]} The modes of an answer, under the names of today. */
function modesOf(entry) {
  const { now: today } = modeNames();
  return [...new Set((entry?.modes || []).map((name) => today.get(name) || name))];
}

/** Record what a person does to a mode. @param {any} event Without who and when. */
function record(event) {
  const line = { event: event.event, by: annotator, at: now(), ...event };
  addEvent(line);
  if (DATA.served) unsentEvents.add(JSON.stringify(line));
  save();
}

/** @param {string} name Of a mode, which is made if there is none. @param {string} [text] What belongs to it. */
function create(name, text = "") {
  const { names, now: today } = modeNames();
  const mode = today.get(name) || name;
  if (!names.includes(mode)) record({ event: "create", mode, ...(text ? { text } : {}) });
  return mode;
}

/** @param {string} mode Put on the answer, or taken from it. */
function toggle(mode) {
  const entry = change(place, {});
  const modes = modesOf(entry);
  entry.modes = modes.includes(mode) ? modes.filter((each) => each !== mode) : [...modes, mode];
  if (entry.modes.length) Object.assign(entry, { label: "no", done: true });
  keep(annotator);
  draw();
}

/** @param {string} mode @returns {number[]} The answers of this review that have it, to whoever uses this page. */
function having(mode) {
  return [...DATA.items.keys()].filter((each) => Object.values(known).some((entries) => modesOf(entries[each]).includes(mode)));
}

/** Move answers from a mode to a new one. @param {string} mode @param {string} into @param {number[]} places */
function split(mode, into, places) {
  const prints = ({ line }) => [line.question, line.answer, line.reference];
  record({ event: "split", mode, into, answers: places.map((each) => prints(DATA.items[each])) });
  for (const entries of Object.values(known)) {
    for (const each of places) {
      const modes = modesOf(entries[each]);
      if (modes.includes(mode)) entries[each] = { ...entries[each], modes: modes.map((name) => (name === mode ? into : name)) };
    }
  }
}

/** @param {number} number Counted from 0. @returns {string} The key of a mode; empty beyond the tenth. */
function modeKey(number) {
  return number < 10 ? String((number + 1) % 10) : "";
}

/** @returns {any} The modes of the answer, by key and by name. */
function modesView() {
  const { names } = modeNames();
  const chosen = modesOf(entriesOf(annotator)[place]);
  const field = h("input", { type: "text", id: "mode", list: "modes", maxlength: 80, autocomplete: "off" });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !field.value.trim()) return;
    event.preventDefault();
    toggle(create(field.value.trim()));
  });
  return h(
    "fieldset",
    { class: "modes" },
    h("legend", {}, "Failure modes"),
    h(
      "div",
      { class: "choices" },
      names.map((name, number) =>
        h(
          "button",
          { type: "button", "data-mode": name, "aria-pressed": String(chosen.includes(name)), click: () => toggle(name) },
          name,
          modeKey(number) ? h("kbd", { "aria-hidden": true }, modeKey(number)) : null,
        ),
      ),
    ),
    h("label", { class: "note" }, "Another mode, by name ", h("kbd", { "aria-hidden": true }, "m"), field),
    h("datalist", { id: "modes" }, names.map((name) => h("option", { value: name }))),
  );
}

/** @returns {any} A page on which modes are renamed, merged, split, and made of what a judge proposed. */
function manageView() {
  const { names } = modeNames();
  const proposed = DATA.proposals.filter(([name]) => !names.includes(name));
  return [
    names.length ? names.map((name) => modeForm(name, names)) : h("p", {}, "There is no mode yet."),
    proposed.length ? h("h2", {}, "Proposed by a judge, and accepted by nobody") : null,
    proposed.map(([name, text]) =>
      h("p", { class: "proposal" }, `${name}${text ? `: ${text} ` : " "}`, h("button", { type: "button", click: () => (create(name, text), draw()) }, "Accept")),
    ),
    h("div", { class: "moves" }, h("button", { type: "button", id: "close", click: manage }, "Back to the answers", h("kbd", { "aria-hidden": true }, "e"))),
  ];
}

function modeForm(name, names) {
  const places = having(name);
  const others = names.filter((each) => each !== name);
  const title = h("input", { type: "text", value: name, maxlength: 80, "aria-label": `New name of ${name}` });
  const into = h("select", { "aria-label": `Merge ${name} into` }, others.map((each) => h("option", { value: each }, each)));
  const part = h("input", { type: "text", maxlength: 80, "aria-label": `Name of a part of ${name}`, placeholder: "Name of the part that is ticked" });
  const boxes = places.map((each) => h("input", { type: "checkbox", value: each }));
  const act = (does) => (event) => {
    event.preventDefault();
    does();
    draw();
  };
  const rename = act(() => title.value.trim() && title.value.trim() !== name && record({ event: "rename", mode: name, name: title.value.trim() }));
  const merge = act(() => into.value && record({ event: "merge", mode: name, into: into.value }));
  const divide = act(() => {
    const chosen = boxes.filter((box) => box.checked).map((box) => Number(box.value));
    if (chosen.length && part.value.trim() && !names.includes(part.value.trim())) split(name, part.value.trim(), chosen);
  });
  const noteOf = (each) => entriesOf(annotator)[each]?.note || DATA.items[each].answer.slice(0, 80);
  return h(
    "details",
    { class: "mode", "data-manage": name },
    h("summary", {}, `${name}: ${places.length} here`),
    h("form", { submit: rename }, title, h("button", { type: "submit" }, "Rename")),
    others.length ? h("form", { submit: merge }, into, h("button", { type: "submit" }, "Merge")) : null,
    places.length
      ? h("form", { submit: divide }, boxes.map((box, number) => h("label", {}, box, ` ${noteOf(places[number])}`)), part, h("button", { type: "submit" }, "Split off"))
      : null,
  );
}

/** @returns {string} The lines of a file of notes, of all people of this page. */
function noteLines() {
  const lines = events.map((each) => JSON.stringify(each));
  for (const by of Object.keys(known)) {
    DATA.items.forEach((item, number) => {
      const entry = entriesOf(by)[number];
      if (!entry?.done || (entry.label === null && !entry.note && !entry.modes?.length)) return;
      const { question, answer, reference, cases, probability } = item.line;
      const said = { modes: modesOf(entry), note: entry.note || "", ...DATA.notes, cases, ...item.notes, probability };
      lines.push(JSON.stringify({ event: "note", by, at: entry.at, question, answer, reference, ...said }));
    });
  }
  return lines.map((each) => `${each}\n`).join("");
}
