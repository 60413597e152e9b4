import { describe, expect, it } from 'vitest';
import type { HeatMap } from '../api/tensor';
import type { NodeDetails, NodeSummary, Row } from '../api/types';
import { barHeights, binRange, cellSpan, heatScale, savedItems, spanText, valueText, worstItem } from './tensor';

const node = (name: string) => ({ name }) as NodeSummary;
const row = (name: string, file?: string): Row => ({ name, values: file === undefined ? {} : { data_name: file } });

describe('savedItems', () => {
  const details = (side: 'NPU' | 'Bench'): NodeDetails => {
    const target = { node: node('t'), inputs: [row('t.input.0', 'a.pt'), row('t.input.1', '-1')], outputs: [row('t.output.0', 'o.pt')], stack: [] };
    const golden = { node: node('g'), inputs: [row('g.input.0', 'b.pt'), row('g.input.1', 'c.pt')], outputs: [row('g.output.0')], stack: [] };
    const [own, other] = side === 'NPU' ? [target, golden] : [golden, target];
    return { ...own, merge_info: [], partner: { side: side === 'NPU' ? 'Bench' : 'NPU', ...other } };
  };
  it('asks from the target side, whichever was selected', () => {
    for (const side of ['NPU', 'Bench'] as const) {
      expect(savedItems(details(side), side)).toMatchObject([
        { item: 'input.0', query: { side: 'NPU', name: 't', item: 't.input.0', partner_item: 'g.input.0' } },
        { item: 'input.1', query: { side: 'Bench', name: 'g', item: 'g.input.1' } },
        { item: 'output.0', query: { side: 'NPU', name: 't', item: 't.output.0', partner_item: undefined } },
      ]);
    }
  });
  it('finds nothing in a dump of statistics', () => {
    expect(savedItems({ node: node('t'), inputs: [row('t.input.0')], outputs: [], stack: [], merge_info: [], partner: null }, 'NPU')).toEqual([]);
  });
  it('asks from the golden side for a node that only it has', () => {
    const alone = { node: node('g'), inputs: [row('g.input.0', 'b.pt')], outputs: [], stack: [], merge_info: [], partner: null };
    expect(savedItems(alone, 'Bench')).toMatchObject([{ item: 'input.0', query: { side: 'Bench', name: 'g', item: 'g.input.0' } }]);
  });
});

describe('worstItem', () => {
  const compared = (item: string, values: Record<string, string>) => ({ own: { name: `t.${item}`, values: { data_name: 'a.pt', ...values } }, other: row(`g.${item}`, 'b.pt') });
  const itemsOf = (...rows: ReturnType<typeof compared>[]) =>
    savedItems({ node: node('t'), inputs: rows.map(({ own }) => own), outputs: [], stack: [], merge_info: [], partner: { side: 'Bench', node: node('g'), inputs: rows.map(({ other }) => other), outputs: [], stack: [] } }, 'NPU');
  it('goes by the result, then by the error; what is no number is the largest', () => {
    const good = compared('input.0', { Result: 'pass', MaxRelativeErr: '0.5' });
    expect(worstItem(itemsOf(good, compared('input.1', { Result: 'error', MaxRelativeErr: '0.1' }), compared('input.2', { Result: 'error', MaxRelativeErr: '0.2' })), [])).toBe(2);
    expect(worstItem(itemsOf(good, compared('input.1', { Result: 'pass', MaxRelativeErr: '75%' })), [])).toBe(1);
    expect(worstItem(itemsOf(good, compared('input.1', { Result: 'pass', MaxRelativeErr: 'nan' })), [])).toBe(1);
    expect(worstItem(itemsOf(good, compared('input.1', { Result: 'pass', Cosine: '-1' })), [])).toBe(1);
    expect(worstItem(itemsOf(good, compared('input.1', { Result: 'pass', MaxRelativeErr: '0' })), [])).toBe(0);
  });
  it('is the cause where the verdict names it', () => {
    const items = itemsOf(compared('input.0', { Result: 'error', MaxRelativeErr: '9' }), compared('parameters.weight', { Result: 'pass', MaxRelativeErr: '0.25' }));
    expect(worstItem(items, [null, 'parameters.weight'])).toBe(1);
    expect(worstItem(items, ['input.7', null])).toBe(0);
  });
});

describe('drawing', () => {
  it('draws counts by their logarithm', () => {
    const [none, one, most] = barHeights([0, 1, 1e6], 1e6);
    expect([none, most]).toEqual([0, 1]);
    expect(one).toBeGreaterThan(0.04);
  });
  it('knows what a bin and a cell stand for', () => {
    expect(binRange({ from: -1, to: 1, counts: [0, 0, 0, 0] }, 3)).toEqual([0.5, 1]);
    expect(spanText(cellSpan(0, 96, 211))).toBe('0–2');
    expect(spanText(cellSpan(95, 96, 211))).toBe('209–210');
    expect(spanText(cellSpan(3, 8, 8))).toBe('3');
    for (let length = 96, next = 0, cell = 0; cell < 96; cell++, next = cellSpan(cell - 1, 96, length)[1] + 1) expect(cellSpan(cell, 96, length)[0]).toBe(next);
  });
  it('takes the largest finite magnitude for full colour', () => {
    const map = { cells: [1, -3, 'inf', 'nan'] } as HeatMap;
    expect(heatScale([map])).toBe(3);
    expect([valueText('nan'), valueText('-inf'), valueText(0.1234567)]).toEqual(['NaN', '-Inf', '0.123457']);
  });
});
