/** Width of a text; the canvas measures it, tests count letters. */
export type Measure = (text: string) => number;

/** Cuts the middle out of a text that is too wide: both ends of a name tell it apart. */
export function fitText(text: string, width: number, measure: Measure): string {
  if (width <= 0) return '';
  if (measure(text) <= width) return text;
  let low = 0;
  let high = text.length - 1;
  while (low < high) {
    const keep = (low + high + 1) >>> 1;
    if (measure(cut(text, keep)) <= width) low = keep;
    else high = keep - 1;
  }
  return low === 0 ? '…' : cut(text, low);
}

function cut(text: string, keep: number): string {
  const head = Math.ceil(keep / 2);
  const tail = keep - head;
  return `${text.slice(0, head)}…${tail ? text.slice(-tail) : ''}`;
}
