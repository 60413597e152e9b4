import type { HistoryCell, NodeSummary } from '../api/types';
import { statusOf, type ColorMode, type Status } from './status';

export interface HistoryTable {
  steps: number[];
  ranks: number[];
  at(step: number, rank: number): HistoryCell | undefined;
  worst: HistoryCell | null; // where it is furthest off; null where nothing is
}

const sizeOf = ({ error }: HistoryCell) => (error === 'inf' ? Infinity : (error ?? 0));

/** All graphs of the file, also those that do not have the node. */
export function historyTable(cells: HistoryCell[], steps: number[], ranks: number[]): HistoryTable {
  const known = new Map(cells.map((cell) => [`${cell.step} ${cell.rank}`, cell]));
  let worst: HistoryCell | null = null;
  for (const cell of cells) if (sizeOf(cell) > (worst ? sizeOf(worst) : 0)) worst = cell;
  const sorted = (list: number[]) => [...new Set(list)].sort((a, b) => a - b);
  return {
    steps: sorted([...steps, ...cells.map(({ step }) => step)]),
    ranks: sorted([...ranks, ...cells.map(({ rank }) => rank)]),
    at: (step, rank) => known.get(`${step} ${rank}`),
    worst,
  };
}

export function historyStatus(cell: HistoryCell, node: NodeSummary, mode: ColorMode, compared: boolean): Status {
  const { precision, overflow, verdict, matched } = cell;
  return statusOf({ ...node, precision, overflow, verdict, matched: matched ? node.name : null }, mode, compared);
}
