import { describe, expect, it } from 'vitest';
import type { FlowNeighbour, Links, NodeSummary } from '../api/types';
import { Tree } from '../model/tree';
import { visibleEdges } from './edges';

const info = (name: string, children = 0): NodeSummary => ({ name, label: name, type: children ? 0 : 1, children, order: 0, precision: null, overflow: null, matched: null, micro_step: 0, counts: { error: 0, warning: 0, unmatched: 0 } });
const end = (name: string, path: string[], confidence = 95): FlowNeighbour => ({ node: info(name), path, input: 0, output: 0, confidence });
const links = (producers: FlowNeighbour[], consumers: FlowNeighbour[]): Links => ({ previous: null, next: null, flow_known: true, producers, consumers, producers_total: producers.length, consumers_total: consumers.length, partners: [], precision: null });

describe('edges', () => {
  const tree = new Tree('NPU', info('root', 3));
  tree.attach(tree.root, [info('a', 2), info('op'), info('b')]);
  tree.setOpen(tree.root, true);
  const op = tree.get('op')!;

  it('end at the closed module that hides the node, once', () => {
    const found = visibleEdges(tree, op, links([end('a.x', ['a'], 20), end('a.y', ['a'])], [end('b', [])]));
    expect(found.map(({ from, to, sure }) => [from.info.name, to.info.name, sure])).toEqual([
      ['a', 'op', true],
      ['op', 'b', true],
    ]);
  });
  it('end at the node itself once its module is open', () => {
    tree.attach(tree.get('a')!, [info('a.x'), info('a.y')]);
    tree.setOpen(tree.get('a')!, true);
    const found = visibleEdges(tree, op, links([end('a.x', ['a'], 20)], []));
    expect(found.map(({ from, sure }) => [from.info.name, sure])).toEqual([['a.x', false]]);
  });
  it('are none for what is on no page', () => {
    expect(visibleEdges(tree, op, links([end('elsewhere', ['gone'])], []))).toEqual([]);
  });
});
