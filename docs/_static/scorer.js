// Replaces the scores of Sphinx's search: a page whose title has all words of the query comes first.
const wordsOfQuery = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);

var Scorer = {
  score: ([, title, anchor, , score]) =>
    score + (!anchor && wordsOfQuery.every(word => title.toLowerCase().includes(word)) ? 20 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
