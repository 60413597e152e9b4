import { expect, it } from 'vitest';
import { magnitude } from './magnitude';

it('is a logarithmic ramp over relative errors, with or without a percent sign', () => {
  expect(magnitude('NormRelativeErr', '100%')).toBe(1);
  expect(magnitude('MaxRelativeErr', '1e-7')).toBe(0);
  expect(magnitude('MeanRelativeErr', '0.0%')).toBe(0);
  expect(magnitude('NormRelativeErr', '0.1%')).toBeCloseTo(4 / 7);
  expect(magnitude('MaxRelativeErr', '-0.001')).toBeCloseTo(4 / 7);
  expect(magnitude('NormRelativeErr', '1e9%')).toBe(1);
  expect([magnitude('NormRelativeErr', 'inf'), magnitude('NormRelativeErr', 'nan%')]).toEqual([1, 1]);
});
it('is of nothing else', () => {
  expect(magnitude('Max diff', '0.5')).toBeNull();
  expect(magnitude('Cosine', '0.5')).toBeNull();
  expect([undefined, '', 'N/A', '%'].map((text) => magnitude('NormRelativeErr', text))).toEqual([null, null, null, null]);
});
