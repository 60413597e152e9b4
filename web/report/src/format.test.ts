import { describe, expect, it } from 'vitest';
import { shortDigits, splitLabel } from './format';

describe('shortDigits', () => {
  it('leaves six digits of a number in a text', () => {
    expect(shortDigits('Max 1.23456789, golden 0.000012345678')).toBe('Max 1.23457, golden 0.0000123457');
    expect(shortDigits('3.1415926e-07 数值 2.500000')).toBe('3.14159e-7 数值 2.5');
    expect(shortDigits('123456.789')).toBe('123456.789');
    expect(shortDigits('1234567.891011')).toBe('1234570');
  });

  it('leaves what is no such number', () => {
    for (const text of ['op: Tensor.add.0.forward', 'crc 0a1b2c3d', 'shape [16, 4096]', '1.5 and 2.25', '']) {
      expect(shortDigits(text)).toBe(text);
    }
  });
});

describe('splitLabel', () => {
  it('keeps a line whole when its label is split off', () => {
    for (const line of ['op: Tensor.add.0', '算子：Tensor.add.0', 'no label here', 'a very long beginning that is no label: x']) {
      expect(splitLabel(line).join('')).toBe(line);
    }
    expect(splitLabel('算子：Tensor.add.0')[0]).toBe('算子：');
  });
});
