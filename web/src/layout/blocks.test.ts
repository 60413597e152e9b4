import { describe, expect, it } from 'vitest';
import type { NodeSummary } from '../api/types';
import { Tree, type TreeNode } from '../model/tree';
import { BLOCK, blockAt, contentHeight, FOOT, GAP, HEAD_GAP, layoutTree, MARGIN, neededWidth, relayout, topOf, visibleBlocks } from './blocks';

export function summary(name: string, children = 0): NodeSummary {
  const counts = { error: 0, warning: 0, unmatched: 0 };
  return { name, label: name, type: children ? 0 : 1, children, order: 0, precision: null, overflow: null, matched: null, micro_step: 0, counts };
}

function named(prefix: string, count: number, children = 0): NodeSummary[] {
  return Array.from({ length: count }, (_, index) => summary(`${prefix}${index}`, children));
}

function laidOut(kids: NodeSummary[]): Tree {
  const tree = new Tree('NPU', summary('root', kids.length));
  tree.attach(tree.root, kids);
  tree.setOpen(tree.root, true);
  layoutTree(tree);
  tree.onChange(relayout);
  return tree;
}

/** The layout written down the slow way. */
function slowHeight(node: TreeNode): number {
  if (!node.open || !node.kids?.length) return BLOCK;
  const kids = node.kids.map(slowHeight);
  return BLOCK + HEAD_GAP + kids.reduce((sum, height) => sum + height + GAP, 0) - GAP + FOOT;
}

describe('layout', () => {
  it('stacks children below the head of their parent', () => {
    const tree = laidOut(named('a', 3));
    expect(tree.root.extent.height).toBe(BLOCK + HEAD_GAP + 3 * BLOCK + 2 * GAP + FOOT);
    expect(topOf(tree.root.kids![2]!)).toBe(MARGIN + BLOCK + HEAD_GAP + 2 * (BLOCK + GAP));
    expect(contentHeight(tree)).toBe(tree.root.extent.height + 2 * MARGIN);
  });

  it('stays equal to a layout from scratch while nodes open and close', () => {
    const tree = laidOut(named('a', 6, 5));
    let seed = 7;
    const random = (below: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    for (let round = 0; round < 300; round++) {
      const kid = tree.root.kids![random(6)]!;
      tree.attach(kid, named(`${kid.info.name}.`, 5, 2));
      const node = random(2) ? kid : kid.kids![random(5)]!;
      tree.attach(node, named(`${node.info.name}.`, 2));
      tree.setOpen(node, !node.open);
      expect(tree.root.extent.height).toBe(slowHeight(tree.root));
    }
  });

  it('finds what touches the window, parents first, and nothing else', () => {
    const tree = laidOut(named('a', 1000));
    const first = topOf(tree.root.kids![500]!);
    const found = visibleBlocks(tree, first, first + 2 * (BLOCK + GAP), 600).map((block) => block.node.info.name);
    expect(found).toEqual(['root', 'a500', 'a501']);
    expect(visibleBlocks(tree, contentHeight(tree), contentHeight(tree) + 100, 600)).toEqual([]);
  });

  it('finds the innermost block at a point', () => {
    const tree = laidOut(named('a', 2));
    const second = tree.root.kids![1]!;
    expect(blockAt(tree, 100, topOf(second) + 3, 600)?.node).toBe(second);
    expect(blockAt(tree, 100, MARGIN + 2, 600)?.node).toBe(tree.root);
    expect(blockAt(tree, MARGIN + 2, topOf(second) + 3, 600)?.node).toBe(tree.root); // in the margin beside the child
    expect(blockAt(tree, 1, 1, 600)).toBeNull();
  });

  it('widens with the deepest open block and narrows again', () => {
    const tree = laidOut(named('a', 1, 1));
    const before = neededWidth(tree);
    const kid = tree.root.kids![0]!;
    tree.attach(kid, [summary('deep')]);
    tree.setOpen(kid, true);
    expect(neededWidth(tree)).toBeGreaterThan(before);
    tree.setOpen(kid, false);
    expect(neededWidth(tree)).toBe(before);
  });

  it('places 10,000 children and a window of 100,000 nodes in a moment', () => {
    const tree = laidOut(named('m', 10, 10_000));
    const started = performance.now();
    for (const kid of tree.root.kids!) {
      tree.attach(kid, named(`${kid.info.name}.`, 10_000));
      tree.setOpen(kid, true);
    }
    const found = visibleBlocks(tree, 1_000_000, 1_001_000, 600);
    expect(performance.now() - started).toBeLessThan(15_000); // about 60 ms; what grows with the square takes minutes
    expect(tree.size).toBe(100_011);
    expect(found.length).toBeLessThan(50);
  });
});
