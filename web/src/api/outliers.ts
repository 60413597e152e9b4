// Which values are odd among others; src/view/trend/trend_cells.cc does the same for what a server sorts.

const CONSISTENT = 1.4826; // a median deviation in standard deviations, of normal values
const EQUAL = 1e-6; // of the size: what is nearer than that is no deviation

function median(sorted: number[]): number {
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/**
 * How many standard deviations each value is from the median of its line, which an odd one does not widen. What is not
 * finite stays as it is.
 */
export function deviationsOf(line: (number | null)[]): (number | null)[] {
  const finite = line.filter((value): value is number => value !== null && Number.isFinite(value)).sort((a, b) => a - b);
  const middle = finite.length > 0 ? median(finite) : 0;
  const spread = finite.map((value) => Math.abs(value - middle)).sort((a, b) => a - b);
  const least = EQUAL * Math.max(Math.abs(finite[0] ?? 0), Math.abs(finite.at(-1) ?? 0));
  const sigma = Math.max(spread.length > 0 ? CONSISTENT * median(spread) : 0, least);
  return line.map((value) => {
    if (value === null || !Number.isFinite(value)) return value;
    return Math.abs(value - middle) <= least ? 0 : (value - middle) / sigma;
  });
}

/** A value of a map's line, by the number of the line and the place in it. */
export function linesOf(values: (number | null)[], columns: number, along: 'row' | 'column') {
  const rows = columns > 0 ? values.length / columns : 0;
  const place = (line: number, at: number) => (along === 'row' ? line * columns + at : at * columns + line);
  const [lines, length] = along === 'row' ? [rows, columns] : [columns, rows];
  return { lines, place, line: (line: number) => Array.from({ length }, (_, at) => values[place(line, at)] ?? null) };
}

/** Rows, the one first whose farthest value is farthest; before them those of which some values are finite and some are not. */
export function outlierOrder(values: (number | null)[], columns: number, along: 'row' | 'column'): number[] {
  const { lines, place, line } = linesOf(values, columns, along);
  const scores = new Array<number>(columns > 0 ? values.length / columns : 0).fill(0);
  for (let i = 0; i < lines; i++) {
    const own = line(i);
    if (!own.some((value) => value !== null && Number.isFinite(value))) continue;
    deviationsOf(own).forEach((far, at) => {
      const row = Math.floor(place(i, at) / columns);
      if (far !== null) scores[row] = Math.max(scores[row]!, Number.isFinite(far) ? Math.abs(far) : Infinity);
    });
  }
  return scores.map((_, row) => row).sort((a, b) => (scores[a] === scores[b] ? a - b : scores[b]! - scores[a]!));
}
