import { describe, expect, it } from 'vitest';
import { cellText, differ, matchingRows } from './cells';

describe('cells of a sheet', () => {
  it('read as in the workbook', () => {
    expect([null, true, false, 3, 0.123456789, 1e-9, 'a'].map(cellText)).toEqual(['', 'True', 'False', '3', '0.123457', '1e-9', 'a']);
  });
  it('are found by all words, in any order and cell', () => {
    const rows = [['lr', 'optimizer.lr', '0.1', '0.2'], ['seed', 'seed', 1, 2]];
    expect(matchingRows(rows, ' OPTIMIZER 0.2')).toEqual([rows[0]]);
    expect(matchingRows(rows, 'seed 1')).toEqual([rows[1]]);
    expect(matchingRows(rows, '')).toBe(rows);
    expect(matchingRows(rows, 'absent')).toEqual([]);
  });
  it('differ by their value, and not where one is unknown', () => {
    expect([differ('0', '0.0'), differ('1e-4', '0.0001'), differ('', '1'), differ('a', 'a')]).toEqual([false, false, false, false]);
    expect([differ('0', '0.1'), differ('True', 'False'), differ('rope', '1')]).toEqual([true, true, true]);
  });
});
