// Finds what is still English on a page in Chinese.

/** In the page: texts of three and more English words in a row, hidden labels included; code, paths and names are none. */
export function englishSentences() {
  const KEPT = 'code, pre, kbd, script, style, noscript, svg title, [lang=en], [translate=no], .stack, [data-test=search-help] dt';
  const SENTENCE = /\b[A-Za-z]?[a-z]{2,}(?:,? [a-z]{2,}){2,}\b/;
  // Words with digits, dots, underscores, slashes or capitals inside are names.
  const plain = (text) => text.replace(/\S*[\d._/\\:=*()[\]<>|@#-]\S*|\b\w*[a-z][A-Z]\w*/g, ' · ');
  const found = new Set();
  const look = (text) => SENTENCE.test(plain(text)) && found.add(text.trim().slice(0, 160));
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) if (!node.parentElement.closest(KEPT)) look(node.textContent);
  for (const element of document.querySelectorAll('[title], [aria-label], [placeholder], [alt], [aria-description]')) {
    if (element.closest(KEPT)) continue;
    for (const name of ['title', 'aria-label', 'placeholder', 'alt', 'aria-description']) look(element.getAttribute(name) ?? '');
  }
  return [...found];
}
