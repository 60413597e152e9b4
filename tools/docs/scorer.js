// Orders the results of the search: what answers a question first, what is about the project itself last.
var Scorer = {
  score: ([docname, , , , score]) => {
    if (/\/symptoms$/.test(docname)) return score + 20;
    if (/\/(faq|tutorial|guide)$/.test(docname)) return score + 12;
    if (/^(CHANGELOG|CONTRIBUTING)$|^docs\/(HACKING|architecture|testing|compatibility|performance|page_api|dependencies)$/.test(docname)) return score - 12;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
