import { describe, expect, it } from 'vitest';
import { deviationsOf, outlierOrder } from './outliers';

describe('outliers', () => {
  it('put a rank that is 1 % off before rows that differ by nature, and NaN in some ranks before all', () => {
    const rows = [[1, 1.1, 1.2, 1.3], [2, 2, 2, 2], [3, NaN, 3, 3], [900, 900, 909, 900], [NaN, NaN, NaN, NaN]];
    expect(outlierOrder(rows.flat(), 4, 'row')).toEqual([2, 3, 0, 1, 4]);
  });
  it('put the odd rank of a name first where rows are ranks', () => {
    expect(outlierOrder([1, 5, 1, 5, 1.01, 5.05, 1, 5], 2, 'column')).toEqual([2, 0, 1, 3]);
    expect(outlierOrder([], 0, 'row')).toEqual([]);
  });
  it('are measured from the median, and rounding is none', () => {
    expect(deviationsOf([null, NaN, 1, 1 + 1e-9])).toEqual([null, NaN, 0, 0]);
    expect(deviationsOf([1, 2, 3, 4, 100])[4]).toBeCloseTo(97 / 1.4826);
  });
});
