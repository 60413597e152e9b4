import { describe, expect, it } from 'vitest';
import type { NodeSummary } from '../api/types';
import { Tree } from '../model/tree';
import { layoutTree } from './blocks';
import { worse } from '../model/status';
import { minimapScale, minimapStrips } from './minimap';

function node(name: string, precision: number | null, children = 0, hidden = 0): NodeSummary {
  const counts = { error: hidden + (precision === 1 ? 1 : 0), warning: 0, unmatched: 0 };
  return { name, label: name, type: children ? 0 : 1, children, order: 0, precision, overflow: null, matched: name, micro_step: 0, counts };
}

function tree(kids: NodeSummary[]): Tree {
  const made = new Tree('NPU', node('root', null, kids.length));
  made.attach(made.root, kids);
  made.setOpen(made.root, true);
  layoutTree(made);
  return made;
}

describe('minimap', () => {
  it('does not blow up a small graph', () => {
    expect(minimapScale(100, 600)).toBeCloseTo(6 / 26);
    expect(minimapScale(100_000, 600)).toBeCloseTo(0.006);
  });
  it('shows each block of a small graph, closed ones by the worst they hide', () => {
    const strips = minimapStrips(tree([node('a', 0), node('b', 0, 5, 2), node('c', 0.5)]), 0.2, 'precision', true);
    expect(strips.filter((strip) => strip.depth === 1).map((strip) => strip.status)).toEqual(['pass', 'error', 'warning']);
    expect(strips[0]).toMatchObject({ depth: 0, inside: true });
    expect(new Set(strips.map((strip) => strip.y)).size).toBe(4);
  });
  it('keeps one error among thousands, in few strips', () => {
    const kids = Array.from({ length: 20_000 }, (_, index) => node(`k${index}`, index === 12_345 ? 1 : 0));
    const made = tree(kids);
    const scale = minimapScale(made.root.extent.height, 400);
    const strips = minimapStrips(made, scale, 'precision', true);
    expect(strips.length).toBeLessThan(410);
    const bad = strips.filter((strip) => strip.status === 'error');
    expect(bad).toHaveLength(1);
    expect(bad[0]!.y / 400).toBeCloseTo(12_345 / 20_000, 2);
  });
  it('ranks what is bad', () => {
    expect(worse('pass', 'unmatched')).toBe('unmatched');
    expect(worse('error', 'critical')).toBe('error');
    expect(worse('none', 'none')).toBe('none');
  });
});
