import type { NodeSummary, OverflowLevel, Ruling } from '../api/types';

export type Precision = 'pass' | 'warning' | 'error' | 'unmatched' | 'none';
export type Status = Precision | OverflowLevel | Ruling;
/** By the ruler; by the rules of the earlier tool; by overflows. */
export type ColorMode = 'verdict' | 'precision' | 'overflow';

const COLLECTION = 9; // no op: in no count

/** How a node is coloured. In a single graph nothing has a partner, so nothing is "unmatched" there. */
export function statusOf(node: NodeSummary, mode: ColorMode, compared: boolean): Status {
  if (mode === 'overflow') return node.overflow ?? 'none';
  if (!compared) return 'none';
  if (node.matched === null) return 'unmatched';
  const rules = precisionStatus(node.precision);
  if (mode === 'precision') return rules;
  // A pair made by hand has no verdict: what the rules find wrong with it is not hidden.
  return node.verdict ?? (node.type !== COLLECTION && (rules === 'error' || rules === 'warning') ? rules : 'none');
}

/** Buckets of the file format: [0, 0.3) pass, [0.3, 0.6) warning, above error. */
export function precisionStatus(precision: number | null): Precision {
  if (precision === null) return 'none';
  return precision < 0.3 ? 'pass' : precision < 0.6 ? 'warning' : 'error';
}

/** True where a difference starts by the ruler. */
export function begins(verdict: Ruling | null | undefined): boolean {
  return verdict === 'bug' || verdict === 'suspicious';
}

/** Where the two rulers contradict each other: the rules pass what begins a difference, or mark what rounding explains. */
export function disagreement(node: NodeSummary): 'passes' | 'marks' | null {
  if (node.matched === null) return null;
  const rules = precisionStatus(node.precision);
  if (begins(node.verdict)) return rules === 'pass' ? 'passes' : null;
  const explained = node.verdict === 'round-off' || node.verdict === 'rewritten' || node.verdict === 'bit-equal';
  return explained && (rules === 'error' || rules === 'warning') ? 'marks' : null;
}

const SEVERITY: Status[] = ['bug', 'error', 'critical', 'suspicious', 'warning', 'high', 'inherited', 'unmatched', 'medium', 'rewritten', 'round-off', 'pass', 'bit-equal', 'none'];
export function worse(a: Status, b: Status): Status {
  return SEVERITY.indexOf(a) <= SEVERITY.indexOf(b) ? a : b;
}

/** The node's own status, or that of the worst thing it hides. */
export function worstOf(node: NodeSummary, mode: ColorMode, compared: boolean, open: boolean): Status {
  const own = statusOf(node, mode, compared);
  const hidden = open ? undefined : hiddenBelow(node, mode, compared)[0]?.status;
  return hidden ? worse(own, hidden) : own;
}

export interface Hidden {
  status: Status;
  count: number;
}

/** Of a verdict only what begins a difference is told: what inherits it is everything behind. */
const HIDDEN = { verdict: ['bug', 'suspicious', 'unmatched'], precision: ['error', 'warning', 'unmatched'] } as const;

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
  const own = node.type === COLLECTION ? 'none' : statusOf(node, mode, compared);
  for (const status of HIDDEN[mode]) {
    const count = (counts[status] ?? 0) - (own === status ? 1 : 0);
    if (count > 0) found.push({ status, count });
  }
  return found;
}
