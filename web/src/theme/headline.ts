/** "Origin: fc.weight differs (rank 0, step 1)" -> the sentence, and where in the run; the latter is "" where none is named. */
export function splitPlace(headline: string): [sentence: string, place: string] {
  const found = /\s*[(（]((?:ranks? [^()（）]*|step \d+))[)）]$/.exec(headline);
  return found ? [headline.slice(0, found.index), found[0]] : [headline, ''];
}
