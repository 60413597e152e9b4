import { describe, expect, it } from 'vitest';
import type { NodeDetails, NodeSummary, Row } from '../api/types';
import { buildTable } from './table';

const NODE = 'Module.fc2.Linear.forward.0';

function node(name: string): NodeSummary {
  const counts = { error: 0, warning: 0, unmatched: 0 };
  return { name, label: name, type: 0, children: 1, order: 0, precision: 0, overflow: null, matched: name, micro_step: 0, counts };
}

function row(owner: string, item: string, values: Record<string, string> = {}): Row {
  return { name: `${owner}.${item}`, values: { dtype: 'torch.float32', Max: '1.0', data_name: '-1', requires_grad: 'True', ...values } };
}

const compared = { 'Max diff': '0.0', NormRelativeErr: '1.0%', Result: 'pass', Err_message: '[]' };

function details(inputs: Row[], outputs: Row[], partner: NodeDetails['partner']): NodeDetails {
  return { node: node(NODE), inputs, outputs, stack: [], merge_info: [], partner };
}

describe('buildTable', () => {
  it('pairs by item name whatever the order and the name of the node', () => {
    const other = 'Module.up.Linear.forward.3';
    const table = buildTable(
      details([row(NODE, 'input.0', compared), row(NODE, 'parameters.weight', { ...compared, Result: 'error' })], [], {
        side: 'Bench',
        node: node(other),
        inputs: [row(other, 'parameters.weight'), row(other, 'input.0')],
        outputs: [],
        stack: [],
      }),
      'NPU',
    );
    expect(table.pairs.map((pair) => [pair.item, pair.golden?.name, pair.result])).toEqual([
      ['input.0', `${other}.input.0`, 'pass'],
      ['parameters.weight', `${other}.parameters.weight`, 'error'],
    ]);
  });

  it('pairs leftovers by position within their group and keeps what has no partner', () => {
    const table = buildTable(
      details([row(NODE, 'input.x', compared), row(NODE, 'parameters.w', compared)], [row(NODE, 'output.0', compared)], {
        side: 'Bench',
        node: node(NODE),
        inputs: [row(NODE, 'input.0'), row(NODE, 'input.1')],
        outputs: [],
        stack: [],
      }),
      'NPU',
    );
    expect(table.pairs.map((pair) => [pair.target?.name.slice(NODE.length), pair.golden?.name.slice(NODE.length)])).toEqual([
      ['.input.x', '.input.0'],
      ['.parameters.w', undefined],
      [undefined, '.input.1'],
      ['.output.0', undefined],
    ]);
  });

  it('puts the target first when the golden side was selected', () => {
    const table = buildTable(details([row(NODE, 'input.0')], [], { side: 'NPU', node: node(NODE), inputs: [row(NODE, 'input.0', compared)], outputs: [], stack: [] }), 'Bench');
    expect(table.pairs[0]?.target?.values['Result']).toBe('pass');
    expect(table.pairs[0]?.result).toBe('pass');
  });

  it('knows the side of a node without a partner', () => {
    const [pair] = buildTable(details([row(NODE, 'input.0')], [], null), 'Bench').pairs;
    expect([pair?.target, pair?.golden?.name]).toEqual([null, `${NODE}.input.0`]);
  });

  it('parts the columns of the comparison from those both sides have', () => {
    const partner = { side: 'Bench' as const, node: node(NODE), inputs: [row(NODE, 'input.0', { md5: 'ab' })], outputs: [], stack: [] };
    const table = buildTable(details([row(NODE, 'input.0', compared)], [], partner), 'NPU');
    expect(table.valued).toEqual(['dtype', 'Max', 'md5']);
    expect(table.compared).toEqual(['NormRelativeErr', 'Max diff']);
    expect(table.rest).toEqual(['requires_grad']);
  });

  it('reads messages of both forms', () => {
    const inputs = [row(NODE, 'input.0', { ...compared, Err_message: '["error: a", "error: b"]' }), row(NODE, 'input.1', { ...compared, Err_message: 'old text' })];
    expect(buildTable(details(inputs, [], null), 'NPU').pairs.map((pair) => pair.messages)).toEqual([['error: a', 'error: b'], ['old text']]);
  });
});
