import type { NodeSummary, OverflowLevel } from '../api/types';

export type Precision = 'pass' | 'warning' | 'error' | 'unmatched' | 'none';
export type Status = Precision | OverflowLevel;
export type ColorMode = 'precision' | 'overflow';

/** How a node is coloured. In a single graph nothing has a partner, so nothing is "unmatched" there. */
export function statusOf(node: NodeSummary, mode: ColorMode, compared: boolean): Status {
  if (mode === 'overflow') return node.overflow ?? 'none';
  if (!compared) return 'none';
  if (node.matched === null) return 'unmatched';
  return precisionStatus(node.precision);
}

/** Buckets of the file format: [0, 0.3) pass, [0.3, 0.6) warning, above error. */
export function precisionStatus(precision: number | null): Precision {
  if (precision === null) return 'none';
  return precision < 0.3 ? 'pass' : precision < 0.6 ? 'warning' : 'error';
}

/** The node's own status, or that of the worst thing it hides. */
export function worstOf(node: NodeSummary, mode: ColorMode, compared: boolean, open: boolean): Status {
  const own = statusOf(node, mode, compared);
  const hidden = open ? undefined : hiddenBelow(node, mode, compared)[0]?.status;
  if (!hidden || own === 'error' || own === 'critical' || own === hidden) return own;
  return own === 'warning' && hidden !== 'error' ? own : hidden;
}

export interface Hidden {
  status: Status;
  count: number;
}

/** What a collapsed node hides, worst first. */
export function hiddenBelow(node: NodeSummary, mode: ColorMode, compared: boolean): Hidden[] {
  if (!node.children) return [];
  const found: Hidden[] = [];
  const { counts } = node;
  if (mode === 'overflow') {
    const count = (counts.overflow ?? 0) - (node.overflow ? 1 : 0);
    if (count > 0) found.push({ status: 'high', count }); // the levels are not counted apart
    return found;
  }
  if (!compared) return found;
  const own = statusOf(node, mode, compared);
  for (const status of ['error', 'warning', 'unmatched'] as const) {
    const count = counts[status] - (own === status ? 1 : 0);
    if (count > 0) found.push({ status, count });
  }
  return found;
}
