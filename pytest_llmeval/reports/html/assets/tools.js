/** What begins a formula in a spreadsheet, as in the other exports. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const MOST_RERUN = 200;

/** @param {() => string} text @param {string} [name] @returns {any[]} A button that copies a text, and says so. */
function copyButton(text, name = t("Copy")) {
  const done = h("span", { role: "status", class: "quiet" });
  const copy = async ({ currentTarget }) => {
    try {
      await navigator.clipboard.writeText(text());
      done.textContent = t("copied");
    } catch {
      const code = currentTarget.parentElement.querySelector("code, pre");
      if (code) getSelection().selectAllChildren(code);
    }
  };
  return [h("button", { type: "button", class: "copy", click: copy }, name), done];
}

/** @param {string} command @returns {Element} */
function drawCommand(command) {
  return h("div", { class: "command" }, h("code", { tabindex: 0 }, command), copyButton(() => command));
}

/** @param {any} value @returns {string} The text that is copied of an input or a prediction. */
function copiedText(value) {
  const part = predictedPart(value);
  return typeof part === "string" ? part : JSON.stringify(value, null, 2);
}

/** @param {any} value @returns {string} A cell of a table for spreadsheets, which find no formula in it. */
function csvCell(value) {
  if (typeof value === "number") return String(value);
  const text = value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const inert = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

/** @param {Row[]} rows @param {Group} group @returns {Promise<string>} The cases as a table: identity, scores, labels and texts. */
async function csvOf(rows, group) {
  const metrics = metricsOf(group);
  const labels = [...new Set(group.shown.flatMap((entry) => Object.keys(indexes[entry].labels)))];
  const lines = [["case", "suite", "system", "outcome", ...metrics, ...labels.map((name) => `label.${name}`), "reason", "input", "expected", "prediction"]];
  for (const row of rows) {
    const texts = await textsOf(row);
    const { name, variant } = head.entries[row.entry];
    lines.push([idOf(row), name, variant || "", outcomeOf(row), ...metrics.map((metric) => scoreOf(row, metric)), ...labels.map((label) => labelOf(row, label)), texts.reason, texts.input, texts.expected, texts.prediction]);
  }
  return `${lines.map((line) => line.map(csvCell).join(",")).join("\n")}\n`;
}

/** @param {Group} group @returns {Element} Ways to take the filtered cases along. */
function drawExport(group) {
  const save = async () => {
    const address = URL.createObjectURL(new Blob([await csvOf(shownCases.found, group)], { type: "text/csv;charset=utf-8" }));
    h("a", { href: address, download: "cases.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };
  const command = h("div", { class: "rerun" });
  const draw = () => {
    const nodes = shownCases.found.map(nodeOf);
    const tooMany = nodes.length > MOST_RERUN ? h("p", { class: "quiet" }, t("Filter to at most {n} cases to get the command that runs them again.", { n: MOST_RERUN })) : null;
    fill(command, command.childNodes.length ? null : tooMany || (nodes.length ? drawCommand(`pytest --llmeval ${nodes.join(" ")}`) : null));
  };
  return h("div", { class: "export" }, h("button", { type: "button", name: "csv", click: save }, t("Save as CSV")), " ", h("button", { type: "button", name: "rerun", click: draw }, t("Run these again")), command);
}

/** Keys and what they do. */
const KEYS = {
  "/": "search",
  "↑ ↓ Page Up Page Down Home End": "move in the table",
  Enter: "open the case",
  "j k": "next, previous case",
  Escape: "back to the table",
  "?": "this help",
};

/** Show what keys do. */
function showKeys() {
  if (document.querySelector("dialog")) return;
  const dialog = h("dialog", { "aria-label": t("Keys"), close: () => dialog.remove() });
  append(dialog, [h("h2", {}, t("Keys")), table([t("key"), t("does")], Object.entries(KEYS).map(([key, does]) => [h("kbd", {}, key), t(does)]), { texts: [0, 1], caption: t("Keys") }), h("button", { type: "button", click: () => dialog.close() }, t("Close"))]);
  document.body.append(dialog);
  dialog.showModal();
}
