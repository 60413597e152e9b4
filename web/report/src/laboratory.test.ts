import { describe, expect, it } from 'vitest';
import type { FunctionEntry } from './data';
import { checkedFunctions, graphLink, resultsOf } from './laboratory';

const entry = (name: string, verdicts: number[], times: number | null, more: Partial<FunctionEntry> = {}): FunctionEntry => ({ name, direction: 'forward', dtype: 'torch.float32', verdicts, times, ulp: times, rtol: 0, histogram: [], ...more });
const LIST = [entry('Torch.exp', [5, 1, 0, 0, 0], 0.9), entry('Functional.silu', [0, 2, 0, 0, 1], 7), entry('Torch.log', [0, 0, 0, 0, 2], null), entry('Functional.linear', [0, 0, 0, 3, 0], 3), entry('Torch.topk', [0, 0, 4, 0, 0], 0)];
const names = (list: { name: string }[]) => list.map(({ name }) => name);

describe('functions that were checked', () => {
  it('stand by the worst verdict, then by how far beyond rounding they are', () => {
    const found = checkedFunctions(LIST, '', 'badness');
    expect(names(found)).toEqual(['Torch.log', 'Functional.silu', 'Functional.linear', 'Torch.topk', 'Torch.exp']);
    expect(found.map(({ verdict }) => verdict)).toEqual(['wrong', 'wrong', 'suspicious', 'unknown', 'round-off']);
    expect(found[1]!.results).toBe(3);
  });
  it('are sorted by a column, infinite first, and found by all words', () => {
    expect(names(checkedFunctions(LIST, '', 'results'))[0]).toBe('Torch.exp');
    expect(names(checkedFunctions(LIST, '', 'ulp'))[0]).toBe('Torch.log');
    expect(names(checkedFunctions(LIST, 'functional FORWARD', 'name'))).toEqual(['Functional.linear', 'Functional.silu']);
  });
  it('have ranges of magnitude from zero up', () => {
    const [found] = checkedFunctions([entry('a', [1], 0, { histogram: [['2^-16', 1], ['2^4', 1], ['0', 1], ['2^-4', 1]] })], '', 'name');
    expect(found!.histogram.map(([range]) => range)).toEqual(['0', '2^-16', '2^-4', '2^4']);
  });
  it('have the results of their direction and dtype', () => {
    const rows = [['Torch.exp.0.forward.output.0', 'torch.float32'], ['Torch.exp.0.backward.output.0', 'torch.float32'], ['Torch.exp.11.forward.output.0', 'torch.bfloat16'], ['Torch.exp2.0.forward.output.0', 'torch.float32']];
    expect(resultsOf(rows, LIST[0]!)).toEqual([rows[0]]);
  });
});

describe('the way into the graph', () => {
  it('names the call in the file, with the token of this page', () => {
    const link = graphLink('a b.vis.db', 'Functional.linear.12.backward.output.0', { protocol: 'http:', search: '?token=t1&file=x.csv' });
    expect(link).toBe('/?token=t1#file=a+b.vis.db&side=NPU&node=Functional.linear.12.backward');
  });
  it('is not there in a file, nor for what is no call', () => {
    expect(graphLink('a.vis.db', 'Functional.linear.12.backward.output.0', { protocol: 'file:', search: '' })).toBe('');
    expect(graphLink('a.vis.db', 'linear', { protocol: 'http:', search: '' })).toBe('');
  });
});
