/** "Origin: fc.weight differs (rank 0, step 1)" -> the sentence, and where in the run; the latter is "" where none is named. */
export function splitPlace(headline: string): [sentence: string, place: string] {
  const found = /\s*[(（]((?:ranks? [^()（）]*|step \d+))[)）]$/.exec(headline);
  return found ? [headline.slice(0, found.index), found[0]] : [headline, ''];
}

/** The card as Markdown, for a chat or an issue: the headline, and a point for each line. Names keep their underscores and stars. */
export function markdownOf([headline = '', ...lines]: readonly string[]): string {
  const plain = (text: string) => text.replace(/[\\`*_<>[\]]/g, '\\$&');
  return [`**${plain(headline)}**`, ...(lines.length > 0 ? [''] : []), ...lines.map((line) => `- ${plain(line)}`)].join('\n') + '\n';
}
