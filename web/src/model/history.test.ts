import { describe, expect, it } from 'vitest';
import type { HistoryCell, NodeSummary } from '../api/types';
import { historyStatus, historyTable } from './history';

const cell = (step: number, rank: number, change: Partial<HistoryCell> = {}): HistoryCell => ({ step, rank, matched: true, precision: 0, overflow: null, verdict: 'round-off', error: 1e-7, units: 0.5, ...change });

describe('a node over steps and ranks', () => {
  it('has a place for every graph, and knows where it is furthest off', () => {
    const table = historyTable([cell(0, 0), cell(0, 2, { error: 0.25 }), cell(1, 0, { error: null })], [1, 0], [0, 1, 2]);
    expect([table.steps, table.ranks]).toEqual([[0, 1], [0, 1, 2]]);
    expect([table.at(0, 2)?.error, table.at(1, 1)]).toEqual([0.25, undefined]);
    expect(table.worst).toMatchObject({ step: 0, rank: 2 });
    expect(historyTable([cell(0, 0, { error: 3 }), cell(0, 1, { error: 'inf' })], [0], [0, 1]).worst).toMatchObject({ rank: 1 });
    expect(historyTable([cell(0, 0, { error: 0 })], [0], [0]).worst).toBe(null);
  });
  it('is coloured as a node is', () => {
    const node = { name: 'a', type: 1 } as NodeSummary;
    const bad = cell(0, 0, { verdict: 'bug', precision: 1, overflow: 'critical' });
    expect((['verdict', 'precision', 'overflow'] as const).map((mode) => historyStatus(bad, node, mode, true))).toEqual(['bug', 'error', 'critical']);
    expect(historyStatus(cell(0, 0, { matched: false }), node, 'verdict', true)).toBe('unmatched');
  });
});
