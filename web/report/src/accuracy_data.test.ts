import { describe, expect, it } from 'vitest';
import { accuracyRows, distances, graphAddress, magnitudesOf, opOf, parseHistogram } from './accuracy_data';
import type { AccuracyRow } from './data';

const row = (times: number | null, name: string, verdict: string, error: string): AccuracyRow => [times, name.split('.')[1]!, name, 'torch.float32', verdict, error, '2.0'];
const ROWS = [row(null, 'Torch.tanh.0.forward.output.0', 'wrong', 'inf'), row(9, 'Torch.exp.0.forward.output.0', 'wrong', '18'), row(0.2, 'Torch.add.0.forward.output.0', 'right', '0.5'), row(0, 'Torch.inv.0.forward.output.0', 'unknown', '')];
const names = (rows: AccuracyRow[]) => rows.map(([, name]) => name);
const ALL = ['wrong', 'right', 'unknown'];

describe('rows', () => {
  it('stand as they come, the worst first, or the other way', () => {
    expect(names(accuracyRows(ROWS, { search: '', verdicts: ALL, column: -1, descending: false }))).toEqual(['tanh', 'exp', 'add', 'inv']);
    expect(names(accuracyRows(ROWS, { search: '', verdicts: ALL, column: -1, descending: true }))).toEqual(['inv', 'add', 'exp', 'tanh']);
  });
  it('are sorted by figures, with blank ones last either way', () => {
    expect(names(accuracyRows(ROWS, { search: '', verdicts: ALL, column: 3, descending: true }))).toEqual(['tanh', 'exp', 'add', 'inv']);
    expect(names(accuracyRows(ROWS, { search: '', verdicts: ALL, column: 3, descending: false }))).toEqual(['add', 'exp', 'tanh', 'inv']);
    expect(names(accuracyRows(ROWS, { search: '', verdicts: ALL, column: 0, descending: false }))).toEqual(['add', 'exp', 'inv', 'tanh']);
  });
  it('are chosen by verdict and words', () => {
    expect(names(accuracyRows(ROWS, { search: 'TORCH.exp float32', verdicts: ALL, column: -1, descending: false }))).toEqual(['exp']);
    expect(names(accuracyRows(ROWS, { search: '', verdicts: ['right'], column: -1, descending: false }))).toEqual(['add']);
  });
});

describe('a histogram', () => {
  const histogram = parseHistogram('2^0:1/0/0/0/0/0/4 0:2/0/0/0/0/0/0 2^-8:3/1/0/0/0/0/0');
  it('is read by magnitude', () => {
    expect(magnitudesOf(histogram)).toEqual(['0', '2^-8', '2^0']);
    expect(distances(histogram)).toEqual([6, 1, 0, 0, 0, 0, 4]);
    expect(distances(parseHistogram(''))).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });
});

describe('the address of an op in the graph', () => {
  it('keeps file, step and rank', () => {
    expect(opOf('Torch.mul.0.backward.output.1')).toBe('Torch.mul.0.backward');
    expect(graphAddress('http://127.0.0.1:6006/#file=a.vis.db&step=0&rank=1&tab=flow&node=x', 'Torch.mul.0.forward')).toBe(
      'http://127.0.0.1:6006/#file=a.vis.db&step=0&rank=1&node=Torch.mul.0.forward&side=NPU',
    );
  });
  it('is none for what is no address of a graph', () => {
    for (const text of ['', 'run 1', 'http://127.0.0.1:6006/', 'javascript:alert(1)#file=x']) expect(graphAddress(text, 'Torch.mul.0.forward')).toBe('');
  });
});
