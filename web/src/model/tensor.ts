import type { HeatMap, Histogram, TensorQuery, Value } from '../api/tensor';
import type { NodeDetails, Row, Side } from '../api/types';
import { shortNumber } from './format';
import { buildTable, type Pair } from './table';

/** An item of which a tensor was saved, on one side or both. */
export interface SavedItem {
  item: string;
  query: TensorQuery;
  badness: [result: number, error: number]; // of what the file says of it
}

const saved = (row: Row | null) => row !== null && !['', '-1', 'null', undefined].includes(row.values['data_name']);

/** `side` is that of the node itself. */
export function savedItems(details: NodeDetails, side: Side): SavedItem[] {
  const [target, golden] = side === 'Bench' ? [details.partner?.node, details.node] : [details.node, details.partner?.node];
  const items: SavedItem[] = [];
  for (const pair of buildTable(details, side).pairs) {
    if (saved(pair.target) && target) {
      const other = saved(pair.golden) ? pair.golden!.name : undefined;
      items.push({ item: pair.item, query: { side: 'NPU', name: target.name, item: pair.target!.name, partner_item: other }, badness: badnessOf(pair) });
    } else if (saved(pair.golden) && golden) {
      items.push({ item: pair.item, query: { side: 'Bench', name: golden.name, item: pair.golden!.name }, badness: NOT_COMPARED });
    }
  }
  return items;
}

const NOT_COMPARED: SavedItem['badness'] = [-1, 0];
const RESULTS = ['pass', 'warning', 'error'];
const ERRORS = ['MaxRelativeErr', 'NormRelativeErr'];

function badnessOf({ target, golden, result }: Pair): SavedItem['badness'] {
  if (!target || !golden) return NOT_COMPARED;
  const texts = ERRORS.map((column) => target.values[column] ?? '').filter(Boolean);
  // What has no number is different in kind.
  const errors = texts.map((text) => Math.abs(Number(text.replace('%', '')) / (text.endsWith('%') ? 100 : 1))).map((error) => (Number.isNaN(error) ? Infinity : error));
  const cosine = Number(target.values['Cosine'] ?? NaN);
  return [result ? RESULTS.indexOf(result) : -1, Math.max(0, ...errors, Number.isNaN(cosine) ? 0 : 1 - cosine)];
}

/** Which item to show first: what the verdict names as the cause, else the worst of those compared. */
export function worstItem(items: SavedItem[], cause: (string | null)[]): number {
  const named = items.findIndex(({ item }) => cause.includes(item));
  if (named >= 0) return named;
  let worst = 0;
  items.forEach(({ badness: [result, error] }, index) => {
    const [most, largest] = items[worst]!.badness;
    if (result > most || (result === most && error > largest)) worst = index;
  });
  return worst;
}

export function valueText(value: Value): string {
  return typeof value === 'number' ? shortNumber(String(value)) : value === 'nan' ? 'NaN' : value === 'inf' ? '+Inf' : '-Inf';
}

const number = (value: Value) => (typeof value === 'number' ? value : 0);

/** Heights from 0 to 1: counts differ by many powers of ten, so their logarithm is drawn. */
export function barHeights(counts: number[], most: number): number[] {
  const full = Math.log1p(Math.max(most, 1));
  return counts.map((count) => Math.log1p(count) / full);
}

/** The values that a bin stands for. */
export function binRange(histogram: Histogram, bin: number): [from: number, to: number] {
  const from = number(histogram.from);
  const width = (number(histogram.to) - from) / histogram.counts.length;
  return [from + bin * width, from + (bin + 1) * width];
}

/** The largest finite magnitude: what full colour means. */
export function heatScale(maps: HeatMap[]): number {
  let most = 0;
  for (const map of maps) for (const cell of map.cells) if (typeof cell === 'number') most = Math.max(most, Math.abs(cell));
  return most;
}

/** First and last index that a cell covers. */
export function cellSpan(cell: number, cells: number, length: number): [first: number, last: number] {
  // A cell holds every index i with floor(i * cells / length) = cell.
  const first = Math.ceil((cell * length) / cells);
  return [first, Math.ceil(((cell + 1) * length) / cells) - 1];
}

export function spanText([first, last]: [number, number]): string {
  return first === last ? String(first) : `${first}–${last}`;
}
