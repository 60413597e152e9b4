import { expect, it } from 'vitest';
import type { NodeSummary } from '../api/types';
import { hiddenBelow, precisionStatus, statusOf } from './status';

function node(change: Partial<NodeSummary>): NodeSummary {
  const counts = { error: 0, warning: 0, unmatched: 0, overflow: 0 };
  return { name: 'a', label: 'a', type: 0, children: 3, order: 0, precision: null, overflow: null, matched: 'a', micro_step: 0, counts, ...change };
}

it('follows the buckets of the file format', () => {
  expect([null, 0, 0.29, 0.3, 0.5, 0.6, 1].map(precisionStatus)).toEqual(['none', 'pass', 'pass', 'warning', 'warning', 'error', 'error']);
});
it('calls nothing unmatched in a single graph', () => {
  expect(statusOf(node({ matched: null }), 'precision', true)).toBe('unmatched');
  expect(statusOf(node({ matched: null }), 'precision', false)).toBe('none');
});
it('shows overflow levels in overflow mode only', () => {
  expect(statusOf(node({ overflow: 'high', precision: 1 }), 'overflow', true)).toBe('high');
  expect(statusOf(node({ overflow: 'high', precision: 1 }), 'precision', true)).toBe('error');
});
it('counts what a closed node hides, without the node itself, worst first', () => {
  const counts = { error: 3, warning: 2, unmatched: 1, overflow: 4 };
  expect(hiddenBelow(node({ precision: 1, counts }), 'precision', true)).toEqual([
    { status: 'error', count: 2 },
    { status: 'warning', count: 2 },
    { status: 'unmatched', count: 1 },
  ]);
  expect(hiddenBelow(node({ counts, overflow: 'high' }), 'overflow', true)).toEqual([{ status: 'high', count: 3 }]);
  expect(hiddenBelow(node({ counts }), 'precision', false)).toEqual([]);
  expect(hiddenBelow(node({ counts, children: 0 }), 'precision', true)).toEqual([]);
});
