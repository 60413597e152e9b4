// Results of acc_check: what the page makes of the rows of its table.
import type { AccuracyRow } from './data';
import { cellNumber } from './format';

export const JUDGED = ['wrong', 'suspicious', 'round-off', 'right', 'unknown'] as const;
/** Elements up to so many ulp away; the last class is further. */
export const ULP_CLASSES = [0.5, 1, 2, 4, 16, 256] as const;

// Columns of the table.
export const [NAME, DTYPE, VERDICT, KNOWN, HISTOGRAM] = [0, 1, 2, 5, 14];
const CELLS = 2; // they stand behind the badness and the function

export function cellOf(row: AccuracyRow, column: number): string {
  return String(row[column + CELLS] ?? '');
}

export type Magnitudes = Record<string, number[]>;

/** "2^-4:9/1/0/0/0/0/0 2^0:.." of a cell, by magnitude. */
export function parseHistogram(cell: string): Magnitudes {
  const found: Magnitudes = {};
  for (const part of cell.split(' ')) {
    const [magnitude, counts] = part.split(':');
    if (magnitude && counts) found[magnitude] = counts.split('/').map(Number);
  }
  return found;
}

/** Elements by distance, of all magnitudes together. */
export function distances(histogram: Magnitudes): number[] {
  const sums = Array.from({ length: ULP_CLASSES.length + 1 }, () => 0);
  for (const counts of Object.values(histogram)) counts.forEach((count, i) => (sums[i] = (sums[i] ?? 0) + count));
  return sums;
}

/** The magnitudes from small to large: 0, 2^-8, 2^-4 ... */
export function magnitudesOf(histogram: Magnitudes): string[] {
  const power = (name: string) => (name === '0' ? -Infinity : Number(name.slice(2)));
  return Object.keys(histogram).sort((a, b) => (power(a) === power(b) ? 0 : power(a) - power(b)));
}

export interface AccuracyOrder {
  column: number; // of the table; -1: badness
  descending: boolean;
}

/** The rows as wanted. They come sorted by badness, the worst first. */
export function accuracyRows(rows: AccuracyRow[], { search, verdicts, column, descending }: AccuracyOrder & { search: string; verdicts: readonly string[] }): AccuracyRow[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    const text = row.slice(1, CELLS + HISTOGRAM).join(' ').toLowerCase();
    return verdicts.includes(cellOf(row, VERDICT)) && words.every((word) => text.includes(word));
  });
  if (column < 0) return descending ? found.reverse() : found;
  const sign = descending ? -1 : 1;
  const cell = (row: AccuracyRow) => cellOf(row, column);
  return found.sort((a, b) => {
    const [x, y] = [cellNumber(cell(a)), cellNumber(cell(b))];
    if (Number.isNaN(x) && Number.isNaN(y)) return sign * cell(a).localeCompare(cell(b));
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1; // blank cells last
    return x === y ? 0 : sign * (x - y);
  });
}

/** The op of the dump that a result belongs to: Torch.mul.0.forward of Torch.mul.0.forward.output.0. */
export function opOf(name: string): string {
  return name.replace(/\.output\.\d+$/, '');
}

/** Of a page that shows a graph, the address at which it shows this op; "" if the text is no such address. */
export function graphAddress(address: string, op: string): string {
  let url: URL;
  try {
    url = new URL(address.trim());
  } catch {
    return '';
  }
  const query = new URLSearchParams(url.hash.replace(/^#/, ''));
  if (!['http:', 'https:'].includes(url.protocol) || !query.get('file')) return '';
  query.set('side', query.get('side') ?? 'NPU');
  query.set('node', op);
  query.delete('tab');
  url.hash = String(query);
  return url.href;
}
