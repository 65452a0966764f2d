/** @param {number|null} rate @returns {string} */
function share(rate) {
  return rate === null || rate === undefined ? "–" : `${Math.round(rate * 100)}%`;
}

/** @returns {any[]} What each suite notices of wrong answers. */
function drawMutants() {
  return head.runs[0].mutation.flatMap((suite) => [
    h("section", {},
      h("h2", {}, suite.suite),
      h("p", {}, suite.rate === null ? t("{n} mutants", { n: suite.mutants }) : t("{n} mutants, {share} survive", { n: suite.mutants, share: share(suite.rate) })),
      suite.left_out.length ? h("ul", { class: "faults" }, suite.left_out.map((each) => h("li", {}, each))) : null,
      suite.findings.length ? h("ul", { class: "findings" }, suite.findings.map((each) => h("li", {}, each))) : h("p", { class: "empty" }, suite.rate === null ? t("Nothing is known of what the suite would notice.") : t("Nothing to fix was found.")),
      suite.kinds.length ? drawKinds(t("Wrong answers"), t("survive"), suite.kinds) : null,
      suite.rewrites.length ? drawKinds(t("Equivalent answers, taken for wrong"), t("fail"), suite.rewrites) : null,
      suite.gates.length ? drawGateNotices(suite.gates) : null,
    ),
  ]);
}

/** @param {string} title @param {string} word @param {any[]} kinds @returns {Element} */
function drawKinds(title, word, kinds) {
  const rows = kinds.map((each) => [each.name, each.why, each.mutants, share(each.rate), each.low === null ? "–" : `${share(each.low)}..${share(each.high)}`, each.undecided]);
  return h("div", {}, h("h3", {}, title), table([t("mutant"), t("why"), t("made"), word, t("95% interval"), t("undecided")], rows, { texts: [0, 1], caption: title }));
}

/** @param {any[]} gates @returns {Element} From which share of broken answers on each gate fails. */
function drawGateNotices(gates) {
  const title = t("Broken answers that a gate notices");
  const rows = gates.map((each) => [each.gate, each.unjudged || (each.never ? t("never fails") : share(each.share)), share(each.sure_share)]);
  return h("div", {}, h("h3", {}, title), table([t("gate"), t("half of the time"), t("with 80% power")], rows, { caption: title }));
}
