import type { ItemTable, Pair } from './table';

export interface Sort {
  column: string;
  descending: boolean;
}

const RESULTS = ['pass', 'warning', 'error'];

/** What a pair is sorted by; NaN counts as the largest, what is not there comes last either way. */
function keyOf(pair: Pair, column: string): number | string | null {
  if (column === 'item') return pair.item;
  if (column === 'Result') return pair.result ? RESULTS.indexOf(pair.result) : null;
  const text = (pair.target?.values[column] ?? pair.golden?.values[column])?.trim();
  if (text === undefined || text === '' || text === 'null') return null;
  if (/^[+-]?nan%?$/i.test(text)) return Infinity;
  const number = Number(text.replace(/%$/, '').replace(/^([+-]?)inf(inity)?$/i, '$1Infinity'));
  return Number.isNaN(number) ? text : number;
}

export function sortPairs(pairs: Pair[], sort: Sort | null): Pair[] {
  if (!sort) return pairs;
  const sign = sort.descending ? -1 : 1;
  const keyed = pairs.map((pair) => ({ pair, key: keyOf(pair, sort.column) }));
  keyed.sort(({ key: a }, { key: b }) => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    if (typeof a === 'number' && typeof b === 'number') return a === b ? 0 : sign * (a < b ? -1 : 1);
    return sign * String(a).localeCompare(String(b));
  });
  return keyed.map(({ pair }) => pair);
}

/** A cell that no spreadsheet takes for a formula. */
function cell(text: string): string {
  const risky = /^[=+\-@\t\r]/.test(text) && !/^[+-]?(\d|\.\d|inf|nan)/i.test(text);
  const safe = risky ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** All items with all digits, a line for each side. */
export function toCsv(table: ItemTable, sides: { target: string; golden: string }): string {
  const columns = [...table.valued, ...table.compared, ...table.rest];
  const lines = [['item', 'side', 'name', 'Result', ...columns, 'Err_message']];
  for (const { item, target, golden, result, messages } of table.pairs) {
    if (target) lines.push([item, sides.target, target.name, result ?? '', ...columns.map((column) => target.values[column] ?? ''), messages.join(' ')]);
    if (golden) lines.push([item, sides.golden, golden.name, '', ...columns.map((column) => golden.values[column] ?? ''), '']);
  }
  return lines.map((line) => line.map(cell).join(',')).join('\r\n') + '\r\n';
}
