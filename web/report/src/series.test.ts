import { describe, expect, it } from 'vitest';
import { cellNumber, compareCells, formatCount, formatMeasure, formatTime } from './format';
import type { PairPage, RowEntry } from './data';
import { mainColumns, selectRows } from './rows';
import { heatRows, layerSeries, logScale, runSeries, stacksByDepth } from './series';

const page = {
  measures: ['error'],
  curves: {
    stacks: ['m.head', 'm.layers'],
    parts: ['', 'mlp'],
    bins: 4,
    cells: [
      [0, 1, 0, 0, 1, 0, 0, 'h', 0.5],
      [1, 1, 0, 0, 2, 0, 0, 'a', 0.1],
      [1, 1, 0, 1, 2, 0, 1, 'b', 0.3],
      [1, 1, 1, 1, 2, 0, 1, 'c', null],
      [1, 2, 1, 1, 2, 0, 1, 'd', 0],
      [1, 2, 2, 1, 2, 0, 1, 'e', -1],
    ],
    run: [[1, 1, 3, 0, 0, 'a', 0.25]],
  },
} as unknown as PairPage;

describe('curves', () => {
  it('take the largest of the parts; what is not finite is largest; what has no value is left out', () => {
    const [forward, backward] = layerSeries(page, 1, -1, 0);
    expect(forward!.spots).toEqual([
      { x: 0, value: 0.3, op: 'b', rows: 4, errors: 1 },
      { x: 1, value: null, op: 'c', rows: 2, errors: 1 },
    ]);
    expect(backward!.spots.map((spot) => spot.value)).toEqual([0]);
    expect(layerSeries(page, 1, 0, 0)[0]!.spots.map((spot) => spot.value)).toEqual([0.1]);
    expect(runSeries(page, 0)[0]!.spots[0]).toMatchObject({ x: 37.5, value: 0.25 });
  });
  it('show the deepest stack first, and the worst parts when there are many', () => {
    expect(stacksByDepth(page).map((one) => [one.name, one.layers])).toEqual([['m.layers', 3], ['m.head', 1]]);
    expect(heatRows(page, 1, 'forward', 0, 1)).toMatchObject({ layers: [0, 1], total: 2, rows: [{ part: 1, worst: null }] });
  });
  it('have a scale with zero below and infinity above', () => {
    const scale = logScale([0, 1e-4, 0.1, null]);
    expect(scale.place(0)).toBe(0);
    expect(scale.place(null)).toBe(1);
    expect(scale.place(1e-4)).toBeCloseTo(0.1);
    expect(scale.place(0.1)).toBeCloseTo(0.9);
    expect(logScale([]).place(0)).toBe(0);
    expect(logScale([1e-300, 1]).decades.length).toBeLessThan(10);
  });
});

describe('the table', () => {
  const columns = ['NPU Name', 'MaxRelativeErr', 'Result', 'Err_message'];
  const rows: RowEntry[] = [
    [0, 0.1, -1, ['a.linear', '9%', 'pass', '[]']],
    [1, null, -1, ['b.relu', ' inf', 'error', '["error: shape"]']],
    [2, 0.2, -1, ['c.linear', '10%', 'error', '[]']],
    [3, 0, -1, ['d', 'N/A', 'pass', '[]']],
  ];
  const select = (wish: object) => selectRows(rows, columns, { search: '', verdicts: ['pass', 'error'], column: -1, descending: false, ...wish }).map((row) => row[0]);
  it('is filtered by words and results', () => {
    expect(select({ search: 'LINEAR' })).toEqual([0, 2]);
    expect(select({ search: 'shape error' })).toEqual([1]);
    expect(select({ verdicts: ['error'] })).toEqual([1, 2]);
  });
  it('is sorted by numbers, also of percents, text behind them', () => {
    expect(select({ column: 1 })).toEqual([0, 2, 1, 3]);
    expect(select({ column: 1, descending: true })).toEqual([1, 2, 0, 3]);
    expect(select({ column: -2 })).toEqual([1, 2, 0, 3]);
    expect(select({ descending: true })).toEqual([3, 2, 1, 0]);
    expect(mainColumns(columns)).toEqual([0, 2, 1, 3]);
  });
  it('begins with what the ruler blames, whatever the old rule says', () => {
    const judged: RowEntry[] = rows.map(([index, error, stack, cells]) => [index, error, stack, [...cells, ['suspicious', 'inherited', 'round-off', 'bug'][index]!]]);
    const wish = { search: '', verdicts: ['pass', 'error'], column: -2, descending: false };
    expect(selectRows(judged, [...columns, 'Ruler Verdict'], wish).map((row) => row[0])).toEqual([3, 0, 1, 2]);
    expect(mainColumns([...columns, 'Ruler Verdict'])).toEqual([0, 4, 2, 1, 3]);
  });
});

describe('formats', () => {
  it('are short', () => {
    expect([null, -1, 0, 0.01234, 1.2e-7, 99999].map(formatMeasure)).toEqual(['∞', '–', '0', '0.0123', '1.2e-7', '1.0e+5']);
    expect(formatCount(1234567)).toBe('1,234,567');
    expect(formatTime('20261121224501')).toBe('2026-11-21 22:45');
    expect([cellNumber('12.5%'), cellNumber('x'), cellNumber('')]).toEqual([0.125, NaN, NaN]);
    expect(compareCells('b', 'a', 1)).toBe(1);
  });
});
