import { JUDGED, type CheckedFunction, type FunctionEntry } from './data';

export type FunctionOrder = 'badness' | 'name' | 'results' | 'times' | 'ulp' | 'rtol';

/** The worst verdict, then what is furthest beyond what rounding explains. */
function byBadness(a: CheckedFunction, b: CheckedFunction): number {
  return JUDGED.indexOf(b.verdict) - JUDGED.indexOf(a.verdict) || larger(a.times, b.times) || a.name.localeCompare(b.name, 'en');
}

/** The larger first; null is infinite. */
function larger(a: number | null, b: number | null): number {
  const [x, y] = [a ?? Infinity, b ?? Infinity];
  return x === y ? 0 : y > x ? 1 : -1;
}

/** Those whose name, direction and dtype hold all words. */
export function checkedFunctions(list: FunctionEntry[], search: string, order: FunctionOrder): CheckedFunction[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = list
    .filter(({ name, direction, dtype }) => words.every((word) => `${name} ${direction} ${dtype}`.toLowerCase().includes(word)))
    .map((entry) => ({
      ...entry,
      results: entry.verdicts.reduce((sum, count) => sum + count, 0),
      verdict: JUDGED[entry.verdicts.reduce((worst, count, i) => (count > 0 ? i : worst), 0)]!,
      histogram: [...entry.histogram].sort((a, b) => exponentOf(a[0]) - exponentOf(b[0])),
    }));
  if (order === 'badness') return found.sort(byBadness);
  if (order === 'name') return found.sort((a, b) => a.name.localeCompare(b.name, 'en') || byBadness(a, b));
  return found.sort((a, b) => larger(a[order], b[order]) || byBadness(a, b));
}

/** Of "2^-4"; zeros come first. */
function exponentOf(range: string): number {
  const found = /^2\^(-?\d+)$/.exec(range);
  return found ? Number(found[1]) : range === '0' ? -Infinity : Infinity;
}

const CALL = /^(.*)\.(\d+)\.(forward|backward)\./;

/** Rows of the table that are results of a function, the worst first, as they stand. */
export function resultsOf(rows: string[][], { name, direction, dtype }: FunctionEntry): string[][] {
  return rows.filter(([result = '', type]) => {
    const found = CALL.exec(result);
    return type === dtype && (found ? found[1] === name && found[3] === direction : result === name);
  });
}

/** Where the page of the server shows the call, with the token of this address; '' where this is a file. */
export function graphLink(graph: string, result: string, at: Pick<Location, 'protocol' | 'search'> = location): string {
  const found = CALL.exec(result);
  if (!found || !at.protocol.startsWith('http')) return '';
  const token = new URLSearchParams(at.search).get('token') ?? '';
  const node = `${found[1]}.${found[2]}.${found[3]}`;
  return `/?${new URLSearchParams({ token })}#${new URLSearchParams({ file: graph, side: 'NPU', node })}`;
}
