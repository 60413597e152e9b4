import { describe, expect, it } from 'vitest';
import { fitText, scatterRange } from './scatter';

describe('target over golden', () => {
  it('has one range for both axes', () => {
    expect(scatterRange([3, -1, Number.NaN, Infinity])).toEqual([-1, 3]);
    expect(scatterRange([2, 2])).toEqual([1, 3]);
    expect(scatterRange([])).toBeNull();
  });
  it('names slope, offset and correlation, and calls nothing 1 that is not', () => {
    expect(fitText({ count: 9, slope: 1.2500004, offset: 0, correlation: 1 })).toEqual({ slope: '1.25', offset: '0', r: '1.000' });
    expect(fitText({ count: 9, slope: -2e-7, offset: 1e30, correlation: 0.99996 })).toEqual({ slope: '-2e-7', offset: '1e+30', r: '0.999' });
  });
});
