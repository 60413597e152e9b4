import { expect, it } from 'vitest';
import type { NodeSummary } from '../api/types';
import { disagreement, hiddenBelow, precisionStatus, statusOf, worse, worstOf } from './status';

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
it("shows the ruler's verdict, and of a pair made by hand, which has none, what the rules find wrong", () => {
  expect(statusOf(node({ precision: 0, verdict: 'bug' }), 'verdict', true)).toBe('bug');
  expect(statusOf(node({ precision: 1, verdict: 'round-off' }), 'verdict', true)).toBe('round-off');
  expect(statusOf(node({ precision: 0, verdict: 'bug' }), 'precision', true)).toBe('pass');
  expect(statusOf(node({ matched: null, verdict: 'bug' }), 'verdict', true)).toBe('unmatched');
  expect([0, 0.5, 1].map((precision) => statusOf(node({ precision, verdict: null }), 'verdict', true))).toEqual(['none', 'warning', 'error']);
  expect(statusOf(node({ type: 9, precision: 1 }), 'verdict', true)).toBe('none');
});
it('says where the two rulers contradict each other', () => {
  expect(disagreement(node({ precision: 0, verdict: 'bug' }))).toBe('passes');
  expect(disagreement(node({ precision: 0, verdict: 'suspicious' }))).toBe('passes');
  expect(disagreement(node({ precision: 1, verdict: 'bug' }))).toBeNull();
  expect(disagreement(node({ precision: 0, verdict: 'inherited' }))).toBeNull();
  expect(disagreement(node({ precision: 1, verdict: 'round-off' }))).toBe('marks');
  expect(disagreement(node({ precision: 1 }))).toBeNull();
  expect(disagreement(node({ matched: null, precision: 0, verdict: 'bug' }))).toBeNull();
});
it('shows of a closed module what begins in it, not what it inherits', () => {
  const counts = { error: 9, warning: 0, unmatched: 0, overflow: 0, suspicious: 2, bug: 1 };
  const module = node({ verdict: 'inherited', counts });
  expect(hiddenBelow(module, 'verdict', true)).toEqual([
    { status: 'bug', count: 1 },
    { status: 'suspicious', count: 2 },
  ]);
  expect([worstOf(module, 'verdict', true, false), worstOf(module, 'verdict', true, true)]).toEqual(['bug', 'inherited']);
  expect(hiddenBelow(node({ verdict: 'bug', counts }), 'verdict', true)[0]).toEqual({ status: 'suspicious', count: 2 });
  expect(worse('inherited', 'suspicious')).toBe('suspicious');
});
it('counts what a collection holds in full: it is in no count itself', () => {
  const counts = { error: 1, warning: 0, unmatched: 0 };
  expect(hiddenBelow(node({ type: 9, precision: 1, counts }), 'precision', true)).toEqual([{ status: 'error', count: 1 }]);
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
