import { expect, it } from 'vitest';
import { fileSize, grouped, shortCount, shortNumber } from './format';

it.each([
  ['0.3265426754951477', '0.326543'],
  ['-0.49779385328292847', '-0.497794'],
  ['0.0', '0'],
  ['63.155212%', '63.16%'],
  ['0.0%', '0%'],
  ['1.7e-12', '1.7e-12'],
  ['0.00000123456789', '1.2346e-6'],
  ['123456789.5', '1.2346e+8'],
  ['128', '128'],
  ['16777217', '16777217'],
  ['nan', 'nan'],
  ['-inf', '-inf'],
  ['[4, 16]', '[4, 16]'],
  ['torch.float32', 'torch.float32'],
  ['N/A', 'N/A'],
  ['inf\t', 'inf'],
  ['49e60750000', '49e60750000'],
])('shows %s as %s', (text, shown) => expect(shortNumber(text)).toBe(shown));

it('shows sizes and counts in little room', () => {
  expect([0, 1023, 1536, 2_700_000, 5e11].map(fileSize)).toEqual(['0 B', '1023 B', '1.5 KB', '2.6 MB', '466 GB']);
  expect([7, 999, 1000, 1290, 45_000, 2_340_000].map(shortCount)).toEqual(['7', '999', '1k', '1.3k', '45k', '2.3M']);
});

it.each([
  [0, '0'],
  [999, '999'],
  [1000, '1,000'],
  [1234567, '1,234,567'],
  [100000, '100,000'],
])('groups the digits of %s as %s', (value, shown) => expect(grouped(value)).toBe(shown));
