import { deviationsOf, linesOf } from '../api/outliers';

const MOST = 3;
const FEWEST = 3; // values that say what is usual

/**
 * Of a map row by row: against the other values of its row, or of its column where the rows are what is compared, in
 * whole standard deviations from -3 to 3. Values that are not finite stay as they are.
 */
export function deviations(values: (number | null)[], columns: number, along: 'row' | 'column'): (number | null)[] {
  const { lines, place, line } = linesOf(values, columns, along);
  const out: (number | null)[] = new Array(values.length).fill(null);
  for (let i = 0; i < lines; i++) {
    const own = line(i);
    const few = own.filter((value) => value !== null && Number.isFinite(value)).length < FEWEST;
    deviationsOf(own).forEach((far, at) => {
      const shown = far === null || !Number.isFinite(far) ? far : few ? 0 : Math.max(-MOST, Math.min(MOST, Math.round(far)));
      out[place(i, at)] = shown;
    });
  }
  return out;
}
