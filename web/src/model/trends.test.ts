import { describe, expect, it } from 'vitest';
import type { GridQuery, LineQuery, TrendApi, TrendGrid, TrendInfo } from '../api/trends';
import { alignGrid, fitChoice, formatTrendLink, lineQuery, loadMap, mapCsv, missingChoice, parseTrendLink, targetLabel, type TrendChoice } from './trends';

const INFO: TrendInfo = {
  metrics: [
    { name: 'forward', stats: ['norm', 'max'], tags: [{ name: 'Module', category: 'default' }] },
    { name: 'backward', stats: ['norm'], tags: [] },
  ],
  ranks: [0, 2],
  steps: [0, 1, 5],
};

function grid(names: string[], columns: number[], values: (number | null)[]): TrendGrid {
  return { total: names.length, columns, rows: names.map((name, id) => ({ id, name, vpp_stage: 0, micro_step: 0 })), ranks: [], values };
}

const CHOICE: TrendChoice = { file: 'a.trend.db', other: null, metric: 'forward', stat: 'norm', dimension: 'rank', value: 2, tags: [], q: '', outliers: false, offset: 0 };

describe('choices', () => {
  it('become what the file has', () => {
    expect(fitChoice(INFO, { file: 'f' })).toMatchObject({ metric: 'forward', stat: 'norm', dimension: 'rank', value: 0, tags: [] });
    expect(fitChoice(INFO, { file: 'f', metric: 'backward', stat: 'max', dimension: 'step', value: 4, tags: ['Module'] })).toMatchObject({
      metric: 'backward',
      stat: 'norm',
      value: 0,
      tags: [],
    });
    expect(fitChoice({ ...INFO, metrics: [] }, { file: 'f' })).toBeNull();
  });
  it('survive the address', () => {
    const choice: TrendChoice = { ...CHOICE, file: 'run 一/x.trend.db', other: 'y.trend.db', dimension: 'step', value: 5, tags: ['a.0', 'b&c'], q: 'fc', outliers: true };
    expect(fitChoice({ ...INFO, metrics: [{ ...INFO.metrics[0]!, tags: choice.tags.map((name) => ({ name, category: '' })) }] }, parseTrendLink(formatTrendLink(choice))!)).toEqual(choice);
    expect(parseTrendLink('#file=a.vis.db')).toBeNull();
    expect(parseTrendLink('#trend=a&by=other&value=-1')).toMatchObject({ file: 'a', other: null });
  });
});

describe('links', () => {
  it('say what the file does not have', () => {
    expect(missingChoice(INFO, { metric: 'forward', stat: 'norm', dimension: 'rank', value: 2, tags: ['Module'] })).toEqual([]);
    expect(missingChoice(INFO, { metric: 'backward', stat: 'max', dimension: 'step', value: 77, tags: ['Module'] })).toEqual(['stat max', 'step 77', 'tag Module']);
    expect(missingChoice(INFO, { metric: 'actv', dimension: 'rank', value: 9 })).toEqual(['metric actv', 'rank 9']);
    expect(missingChoice(INFO, {})).toEqual([]);
  });
});

describe('a second run', () => {
  it('is aligned by names and columns', () => {
    const a = grid(['x', 'y', 'z'], [0, 1], [1, 2, 3, 4, 5, 6]);
    const b = grid(['y', 'x'], [1, 7], [40, 0, 20, 0]);
    expect(alignGrid(a, b)).toEqual([null, 20, null, 40, null, null]);
  });
  it('is asked for the same target by its name', async () => {
    const asked: [string, GridQuery][] = [];
    const api: TrendApi = {
      info: async () => INFO,
      grid: async (file, query) => {
        asked.push([file, query]);
        if (query.dimension === 'rank') return { ...grid(['w', 'x'], [0], [0, 0]), rows: [{ id: 70, name: 'w', vpp_stage: 0, micro_step: 0 }, { id: 71, name: 'x', vpp_stage: 0, micro_step: 0 }] };
        return { total: 2, columns: [0, 1], rows: [], ranks: [0, 2], values: file === 'b.trend.db' ? [5, 6, 7, 8] : [1, 2, 3, 4] };
      },
      line: async () => [],
    };
    const map = await loadMap(api, { ...CHOICE, other: 'b.trend.db', dimension: 'target', value: 3 }, { id: 3, name: 'x', vpp_stage: 0, micro_step: 0 });
    expect(map.other).toEqual([5, 6, 7, 8]);
    expect(map.labels).toEqual(['0', '2']);
    expect(asked.at(-1)?.[1].value).toBe(71);
  });
  it('is read page by page until every row is found, whatever a page holds', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `n${i}`);
    const asked: [number, number][] = [];
    const paged = (all: string[], cap: number): TrendApi => ({
      info: async () => INFO,
      grid: async (file, { offset, limit }) => {
        if (file === 'b') asked.push([offset, limit]);
        const list = file === 'b' ? all : names.slice(30);
        const rows = file === 'b' ? list.slice(offset, offset + Math.min(limit, cap)) : list;
        return { ...grid(rows, [0], rows.map((name) => Number(name.slice(1)))), total: list.length };
      },
      line: async () => [],
    });
    const want = names.slice(30).map((name) => Number(name.slice(1)));
    const load = async (all: string[], cap: number) => (await loadMap(paged(all, cap), { ...CHOICE, other: 'b', offset: 30 }, null)).other;
    expect(await load(names, 1000)).toEqual(want);
    expect(asked).toHaveLength(1);
    expect(await load(names, 10)).toEqual(want); // a file of many columns has short pages
    expect(await load([...names.slice(30), ...names.slice(0, 30)], 10)).toEqual(want); // in another order
    expect(await load(names.slice(25, 50), 1000)).toEqual(want.map((value) => value)); // fewer rows: beyond its end
  });
  it('without the metric is empty', async () => {
    const api: TrendApi = { info: async () => ({ ...INFO, metrics: [] }), grid: async () => grid(['x'], [0], [1]), line: async () => [] };
    expect((await loadMap(api, { ...CHOICE, other: 'b' }, null)).other).toEqual([null]);
  });
});

describe('lines', () => {
  const map = { grid: grid(['x', 'y'], [0, 1, 5], [1, 2, 3, 4, 5, 6]), other: null, labels: ['x', 'y'] };
  const at = (query: LineQuery | null) => query && [query.name, query.rank, query.step];
  it('go through the cell along steps or ranks', () => {
    expect(at(lineQuery(CHOICE, map, 1, 2, null, 'step'))).toEqual(['y', 2, undefined]);
    expect(at(lineQuery(CHOICE, map, 1, 2, null, 'rank'))).toEqual(['y', undefined, 5]);
    expect(at(lineQuery({ ...CHOICE, dimension: 'step', value: 1 }, map, 0, 2, null, 'step'))).toEqual(['x', 5, undefined]);
    expect(lineQuery(CHOICE, map, 9, 0, null, 'step')).toBeNull();
  });
});

describe('export', () => {
  it('is a table that spreadsheets do not calculate', () => {
    const map = { grid: grid(['=x', 'a,"b"'], [0, 1], [1, null, 1e-7, 2]), other: null, labels: ['=x', 'a,"b"'] };
    expect(mapCsv(CHOICE, map)).toBe('name,step 0,step 1\n\'=x,1,\n"a,""b""",1e-7,2\n');
  });
  it('names what differs in labels', () => {
    expect(targetLabel({ id: 1, name: 'n', vpp_stage: 1, micro_step: 3 })).toBe('n vpp 1 #3');
  });
});
