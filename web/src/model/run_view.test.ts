import { describe, expect, it } from 'vitest';
import { runScale } from './run_scale';
import { fitRunChoice, formatRunLink, isBare, leadingOf, parseRunLink } from './run_choice';
import { axisSteps, boundWindow, levelFor, panWindow, tilesOf, wholeWindow, zoomWindow } from './run_view';

const extent = { first: 0, last: 9999, interval: 1 };

describe('the window of steps', () => {
  it('stays within the run', () => {
    expect(wholeWindow(extent)).toEqual({ from: 0, to: 10000 });
    expect(panWindow({ from: 100, to: 200 }, -500, extent)).toEqual({ from: 0, to: 100 });
    expect(boundWindow({ from: 9990, to: 20000 }, extent)).toEqual({ from: 0, to: 10000 });
    expect(zoomWindow({ from: 0, to: 10000 }, Infinity, 0, extent)).toEqual({ from: 0, to: 10000 });
  });
  it('zooms around a step, to eight records', () => {
    expect(zoomWindow({ from: 0, to: 1000 }, 0.5, 500, extent)).toEqual({ from: 250, to: 750 });
    const { from, to } = zoomWindow({ from: 0, to: 1000 }, 1e-9, 500, extent);
    expect(to - from).toBe(8);
  });
  it('takes the level whose bins are seen', () => {
    expect(levelFor({ from: 0, to: 10000 }, 1000, 1)).toBe(4);
    expect(levelFor({ from: 0, to: 100 }, 1000, 1)).toBe(0);
    expect(levelFor({ from: 0, to: 10000 }, 1000, 10)).toBe(1);
  });
  it('needs the tiles that it touches', () => {
    expect(tilesOf({ from: 250, to: 520 }, 0, [60, 70], 1).map(({ column, page }) => [column, page])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [0, 1],
      [1, 1],
      [2, 1],
    ]);
  });
  it('has round steps on its axis', () => {
    expect(axisSteps({ from: 130, to: 1100 }, 5)).toEqual([200, 400, 600, 800, 1000]);
  });
});

describe('scales', () => {
  const rows = { rows: [], low: 0.01, high: 100, least: 0.001, odd: 0, behind: false };
  it('put values beyond the middle 98 % at the ends', () => {
    const log = runScale('log', [rows])!;
    expect(log.place(1000, undefined)).toBe(1);
    expect(log.place(0.01, undefined)).toBe(0);
    expect(log.place(1, undefined)).toBeCloseTo(0.5, 1);
  });
  it('count deviations from the median of a row', () => {
    const sigma = runScale('sigma', [rows])!;
    const row = { label: 'a', series: 1, middle: 10, spread: 1 };
    expect(sigma.place(10, row)).toBe(0.5);
    expect(sigma.place(10 + 3 * 1.4826, row)).toBeCloseTo(1);
    expect(runScale('sigma', [rows])!.serial, 'tiles that were drawn with other medians are drawn again').not.toBe(sigma.serial);
  });
});

describe('links', () => {
  const info = { ranks: [0, 5], metrics: [{ name: 'actv', stats: ['min', 'norm'], series: 1 }, { name: 'grad_reduced', stats: ['norm'], series: 1 }], first_step: 0, last_step: 9, interval: 1, version: 1, behind: false, cut_rows: 0, cut_file: '', changed: 0 };
  it('keep what is looked at', () => {
    const choice = fitRunChoice(info, { run: 'a', rank: 5, fold: 'none', q: 'mlp', steps: [3, 9], scale: 'sigma', other: 'b', cell: 'mean' })!;
    expect(choice.metric).toBe('grad_reduced');
    expect(fitRunChoice(info, parseRunLink(formatRunLink(choice))!)).toEqual(choice);
  });
  it('do without what the run does not have', () => {
    expect(fitRunChoice(info, { run: 'a', metric: 'actv', rank: 9 })).toMatchObject({ metric: 'actv', stat: 'norm', rank: 0 });
    expect(parseRunLink('#trend=x')).toBeNull();
  });
  it('leave the page to open the finding that leads only where they say nothing else', () => {
    expect([isBare(undefined), isBare(parseRunLink('#run=a')), isBare(parseRunLink('#run=a&metric=actv')), isBare(parseRunLink('#run=a&from=1&to=4'))]).toEqual([true, true, false, false]);
    const event = { step: 7, rank: 0, series: 'x', text: 'x', source: 'judgement' as const, stat: 'norm' };
    const events = [{ ...event, metric: 'actv' }, { ...event, metric: 'grad_reduced', leads: true }];
    expect(leadingOf(info, events)?.metric).toBe('grad_reduced');
    expect(leadingOf(info, [{ ...event, metric: 'loss', leads: true }])).toBeNull();
  });
});
