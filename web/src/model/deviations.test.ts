import { describe, expect, it } from 'vitest';
import { deviations } from './deviations';

describe('deviations', () => {
  it('show the odd rank of each row, however far rows are apart', () => {
    const small = [1, 1.01, 0.99, 1, 5];
    const found = deviations([...small, ...small.map((value) => value * 1e6)], 5, 'row');
    expect(found.slice(0, 5)).toEqual([0, 1, -1, 0, 3]);
    expect(found.slice(5)).toEqual(found.slice(0, 5));
    expect(deviations([1, 1, 1, 1.1], 4, 'row')).toEqual([0, 0, 0, 3]);
    expect(deviations([1, 1, 1, 0.9], 4, 'row')).toEqual([0, 0, 0, -3]);
  });
  it('take what differs by rounding for equal', () => {
    expect(deviations([1, 1, 1, 1 + 1e-9], 4, 'row')).toEqual([0, 0, 0, 0]);
  });
  it('follow columns where rows are the ranks', () => {
    expect(deviations([1, 7, 1, 7, 1, 7, 4, 7], 2, 'column')).toEqual([0, 0, 0, 0, 0, 0, 3, 0]);
  });
  it('leave what is not finite, and judge no line of two', () => {
    expect(deviations([NaN, Infinity, null, 1, 2], 5, 'row')).toEqual([NaN, Infinity, null, 0, 0]);
    expect(deviations([], 0, 'row')).toEqual([]);
  });
});
