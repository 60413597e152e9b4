"""Search in Chinese pages without a dictionary: runs of ideographs are indexed, and searched, as pairs of neighbours."""

import re

from sphinx.search import SearchLanguage

_PIECE = re.compile(r"[A-Za-z0-9_]+|[\u4e00-\u9fff]+")

# The same cut in the browser, for what is typed into the search box.
_IN_BROWSER = r"""
function splitQuery(query) {
  const words = [];
  for (const piece of query.match(/[A-Za-z0-9_]+|[\u4e00-\u9fff]+/g) || []) {
    if (!/[\u4e00-\u9fff]/.test(piece) || piece.length === 1) words.push(piece);
    else for (let i = 0; i + 1 < piece.length; i++) words.push(piece.slice(i, i + 2));
  }
  return words;
}
"""


class ChineseBigrams(SearchLanguage):
    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = _IN_BROWSER

    def split(self, text):
        words = []
        for piece in _PIECE.findall(text):
            if piece[0] < "\u4e00":
                words.append(piece)
            else:
                words += [piece[i : i + 2] for i in range(len(piece) - 1)] + list(piece)
        return words

    def word_filter(self, word):
        return True
