// Filtering and sorting the rows of the table; 10,000 of them take some milliseconds.
import type { RowEntry } from './data';
import { compareCells } from './format';

export interface Wish {
  search: string;
  verdicts: string[];
  column: number; // -1: the order of the table, -2: the worst first
  descending: boolean;
}

export function selectRows(rows: RowEntry[], columns: string[], wish: Wish): RowEntry[] {
  const result = columns.indexOf('Result');
  const searched = ['NPU Name', 'Bench Name', 'Err_message', 'NPU Dtype', 'Bench Dtype'].map((name) => columns.indexOf(name)).filter((at) => at >= 0);
  const words = wish.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    if (result >= 0 && !wish.verdicts.includes(row[3][result] ?? '')) return false;
    if (!words.length) return true;
    const text = searched.map((at) => row[3][at]).join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
  if (wish.column === -2) {
    const ruler = columns.indexOf('Ruler Verdict');
    // What begins a difference comes first, whatever the old rule says of it.
    const badness = (row: RowEntry) => 4 * (['suspicious', 'bug'].indexOf(row[3][ruler] ?? '') + 1) + ['pass', 'warning', 'error'].indexOf(row[3][result] ?? '');
    const size = (row: RowEntry) => (row[1] === null ? Infinity : row[1]);
    return found.sort((a, b) => badness(b) - badness(a) || (size(a) === size(b) ? a[0] - b[0] : size(b) - size(a)));
  }
  if (wish.column < 0) return wish.descending ? found.reverse() : found;
  const sign = wish.descending ? -1 : 1;
  return found.sort((a, b) => compareCells(a[3][wish.column] ?? '', b[3][wish.column] ?? '', sign) || a[0] - b[0]);
}

/** The columns that are shown first; the others on wish. */
export function mainColumns(columns: string[]): number[] {
  const wanted = ['NPU Name', 'Ruler Verdict', 'Result', 'Ruler Note', 'NPU Dtype', 'NPU Tensor Shape', 'NPU MD5', 'BENCH MD5', 'MaxRelativeErr', 'NormRelativeErr', 'MeanRelativeErr', 'Cosine', 'MaxAbsErr', 'One Thousandth Err Ratio', 'Err_message'];
  return wanted.map((name) => columns.indexOf(name)).filter((at) => at >= 0);
}
