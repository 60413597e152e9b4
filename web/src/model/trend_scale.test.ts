import { describe, expect, it } from 'vitest';
import { isOutside, makeScale, parseThreshold, relativeDifference, valueText } from './trend_scale';

describe('scales', () => {
  it('spans the finite values', () => {
    const scale = makeScale([4, null, 0, 2, Infinity, -Infinity], 'linear')!;
    expect([scale.low, scale.high]).toEqual([0, 4]);
    expect([0, 2, 4, Infinity].map(scale.place)).toEqual([0, 0.5, 1, 1]);
    expect(scale.ticks()).toEqual([0, 1, 2, 3, 4]);
  });
  it('works with negative values alone, and with one value', () => {
    const scale = makeScale([-8, -2], 'linear')!;
    expect([-8, -5, -2].map(scale.place)).toEqual([0, 0.5, 1]);
    expect(makeScale([3, 3], 'log')!.place(3)).toBe(0.5);
    expect(makeScale([null, Infinity], 'linear')).toBeNull();
  });
  it('gives each power of ten the same room', () => {
    const scale = makeScale([1e-4, 1e-2, 1], 'log')!;
    expect(scale.place(1e-4)).toBe(0);
    expect(scale.place(1e-2)).toBeCloseTo(0.5);
    expect(scale.place(1)).toBe(1);
    expect(scale.ticks().every((tick) => tick >= 1e-4 && tick <= 1)).toBe(true);
  });
  it('has marks within one power of ten, too', () => {
    expect(makeScale([100, 110], 'log')!.ticks()).toEqual([100, 105, 110]);
    expect(makeScale([2, 8], 'log')!.ticks().length).toBeGreaterThan(2);
    expect(makeScale([1, 10], 'log')!.ticks()).toEqual([1, 10]);
  });
  it('mirrors negative values around zero', () => {
    const scale = makeScale([-100, 0, 1, 100], 'log')!;
    expect(scale.place(0)).toBeCloseTo(0.5);
    expect(scale.place(-100)).toBe(0);
    expect(scale.place(1) - 0.5).toBeCloseTo(0.5 - scale.place(-1));
  });
  it('keeps zeros at the end of a logarithmic scale', () => {
    expect(makeScale([0, 10, 100], 'log')!.place(0)).toBe(0);
    expect(makeScale([0, 0], 'log')!.place(0)).toBe(0.5);
  });
  it('leaves NaN out', () => {
    expect(makeScale([NaN, 1, 3], 'linear')).toMatchObject({ low: 1, high: 3 });
    expect(makeScale([NaN], 'log')).toBeNull();
  });
});

describe('two runs', () => {
  it('differ by a share of the larger', () => {
    expect(relativeDifference(2, 1)).toBe(0.5);
    expect(relativeDifference(1, 2)).toBe(-0.5);
    expect(relativeDifference(1, -1)).toBe(1);
    expect(relativeDifference(0, 0)).toBe(0);
    expect(relativeDifference(Infinity, Infinity)).toBe(0);
    expect(relativeDifference(Infinity, 1)).toBe(Infinity);
    expect(relativeDifference(null, 1)).toBeNull();
    expect([relativeDifference(NaN, 1), relativeDifference(1, NaN)]).toEqual([NaN, NaN]);
  });
});

describe('thresholds', () => {
  it('are on either side, or none', () => {
    expect(isOutside(5, { low: null, high: 4 })).toBe(true);
    expect(isOutside(3, { low: null, high: 4 })).toBe(false);
    expect(isOutside(-1, { low: 0, high: null })).toBe(true);
    expect(isOutside(Infinity, { low: null, high: null })).toBe(false);
    expect(isOutside(-Infinity, { low: null, high: 4 })).toBe(true);
    expect(isOutside(null, { low: 0, high: 0 })).toBe(false);
    expect([isOutside(NaN, { low: 0, high: null }), isOutside(NaN, { low: null, high: null })]).toEqual([true, false]);
  });
  it('are read as numbers', () => {
    expect(parseThreshold(' ')).toBeNull();
    expect(parseThreshold('1e-3')).toBe(0.001);
    expect(parseThreshold('x')).toBeUndefined();
  });
});

describe('values as text', () => {
  it('are short and say what is beyond', () => {
    expect(valueText(null)).toBe('–');
    expect(valueText(Infinity)).toBe('∞');
    expect(valueText(NaN)).toBe('NaN');
    expect(valueText(-1e9)).toBe('≤ -1e9');
    expect(valueText(1.25)).toBe('1.25');
    expect(valueText(1.23456789e-7)).toBe('1.235e-7');
    expect(valueText(0)).toBe('0');
  });
});
