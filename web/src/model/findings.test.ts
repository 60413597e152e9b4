import { describe, expect, it } from 'vitest';
import type { Finding, Precision, Row } from '../api/types';
import { largestPercent, measurePercent, percentText, shownFindings } from './findings';
import { splitLabel } from './verdict_lines';

const precision = (error: Precision['error']): Precision => ({ verdict: 'bug', error, input_error: 0, units: null, cosine: null, max_abs_err: null });
const finding = (kind: string, name: string, error: Precision['error'] | undefined = undefined, side: 'NPU' | 'Bench' = 'NPU'): Finding => ({
  kind, side, name, text: '', precision: error === undefined ? null : precision(error),
});
const kinds = (list: Finding[], judged: boolean) => shownFindings(list, list.length, judged).list.map(({ kind, side, name }) => `${kind} ${side} ${name}`);

describe('the findings of a graph', () => {
  it('do not repeat or contradict the answer for the whole file', () => {
    const list = [finding('origin', 'a', 0.2), finding('first_error', 'b', 0.3)];
    expect(kinds(list, true)).toEqual(['first_error NPU b']);
    expect(kinds(list, false)).toEqual(['origin NPU a', 'first_error NPU b']);
  });
  it('say of a node once that it is wrong', () => {
    const list = [finding('origin', 'a', 0.2), finding('first_error', 'a', 0.2), finding('bad_module', 'b', 0.2), finding('bad_module', 'a', 0.2)];
    expect(kinds(list, false)).toEqual(['origin NPU a', 'bad_module NPU b']);
    expect(kinds(list, true)).toEqual(['first_error NPU a', 'bad_module NPU b']);
    expect(shownFindings(list, 4, true, 'a').list.map(({ kind }) => kind)).toEqual(['bad_module']);
  });
  it('leave out masks, whose infinities both runs have', () => {
    expect(kinds([finding('first_overflow', 'mask', 0), finding('first_overflow', 'mask', undefined, 'Bench')], false)).toEqual([]);
    expect(kinds([finding('first_overflow', 'fc', 'inf'), finding('first_overflow', 'mask', undefined, 'Bench')], false)).toEqual(['first_overflow NPU fc']);
    expect(kinds([finding('first_overflow', 'fc', undefined, 'Bench')], false)).toEqual(['first_overflow Bench fc']);
    expect(kinds([finding('first_overflow', 'single')], false)).toEqual(['first_overflow NPU single']);
  });
  it('leave overflow to the answer for the whole file, which tells it from large values', () => {
    expect(kinds([finding('first_overflow', 'sum', 'inf'), finding('bad_parameter', 'fc')], true)).toEqual(['bad_parameter NPU fc']);
  });
  it('are the first of each kind', () => {
    const list = Array.from({ length: 9 }, (_, i) => finding('bad_parameter', `w${i}`));
    expect(shownFindings(list, 30, true)).toMatchObject({ more: 25 });
  });
});

describe('figures', () => {
  const row = (text?: string): Row => ({ name: 'n', values: text === undefined ? {} : { NormRelativeErr: text } });
  it('are the percentages of the table', () => {
    expect(largestPercent([row('0.0%'), row('25.000000%'), row('N/A'), row()])).toBe(25);
    expect(largestPercent([row('inf%')])).toBeNull();
    expect(largestPercent([row('N/A'), row()])).toBeNull();
  });
  it('are rounded for reading', () => {
    expect([25.0000001, 0, 0.00012, 134.4].map(percentText)).toEqual(['25 %', '0 %', '1.2e-4 %', '134 %']);
    expect([0.2, 'inf', null].map((value) => measurePercent(value as number))).toEqual(['20 %', '∞', '']);
  });
});

describe('a line of the verdict', () => {
  it('falls into its label and the rest, and is whole when put together', () => {
    for (const line of ['op: Tensor.add.0 at model.py:93 in forward', '算子：Tensor.add.0，位于 model.py:93', 'no label here', 'next: look: there']) expect(splitLabel(line).join('')).toBe(line);
    expect(splitLabel('op: a: b')).toEqual(['op: ', 'a: b']);
    expect(splitLabel('float64 重放：x')).toEqual(['float64 重放：', 'x']);
    expect(splitLabel('memory of: x')[0]).toBe('memory of: ');
  });
});
