import type { Finding, Measure, NodeDetails, Row } from '../api/types';

const MOST_OF_A_KIND = 5;

export interface ShownFindings {
  list: Finding[];
  more: number; // in the file
}

/**
 * What is listed of a graph: the first of each kind, a bad run has thousands. `judged`: there is an answer for the whole
 * file, which the origin of one graph would repeat or contradict; `origin` is the node that it names in this graph.
 */
export function shownFindings(all: Finding[], total: number, judged: boolean, origin: string | null = null): ShownFindings {
  const seen = new Map<string, number>();
  const first = all.filter(({ kind }) => {
    const count = (seen.get(kind) ?? 0) + 1;
    seen.set(kind, count);
    return count <= MOST_OF_A_KIND;
  });
  const said = new Set([judged ? origin : first.find(({ kind }) => kind === 'origin')?.name]);
  const overflows = all.some(({ kind, side }) => kind === 'first_overflow' && side === 'NPU');
  const list = first.filter((finding) => {
    const { kind, side, name } = finding;
    if (kind === 'origin') return !judged;
    // The answer for the whole file names what is not finite, and knows masks and large values from it.
    if (kind === 'first_overflow') return !judged && !isMask(finding) && !(side === 'Bench' && overflows);
    if (kind !== 'first_error' && kind !== 'bad_module') return true;
    const again = said.has(name);
    said.add(name);
    return !again;
  });
  return { list, more: Math.max(0, total - first.length) };
}

/** Infinities that both runs have alike, as a mask does, are no fault of either. */
function isMask({ precision }: Finding): boolean {
  return precision !== null && precision.error === 0;
}

/** The largest relative error of a norm among these rows, in percent of the golden run as their table has it. */
export function largestPercent(rows: Row[]): number | null {
  let most: number | null = null;
  for (const { values } of rows) {
    const text = values['NormRelativeErr'] ?? '';
    const value = text.endsWith('%') ? Math.abs(Number(text.slice(0, -1))) : NaN;
    if (!Number.isNaN(value)) most = Math.max(most ?? 0, value);
  }
  return most;
}

export interface NodeFigures {
  output: number | null; // percent
  input: number | null;
}

export function figuresOf({ inputs, outputs }: NodeDetails): NodeFigures {
  return { output: largestPercent(outputs), input: largestPercent(inputs) };
}

/** "25 %", "3.1e-5 %", "∞". */
export function percentText(percent: number): string {
  if (!Number.isFinite(percent)) return '∞';
  const size = Math.abs(percent);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return `${percent.toExponential(1).replace('.0e', 'e')} %`;
  return `${Number(percent.toPrecision(3))} %`;
}

/** A relative error that has no percentage in the table. */
export function measurePercent(value: Measure): string {
  return typeof value === 'number' ? percentText(value * 100) : value === 'inf' ? '∞' : '';
}
