import { describe, expect, it } from 'vitest';
import { ExportedTrendApi, type ExportedTrend } from './exported_trends';
import type { GridQuery } from './trends';

// Two targets, ranks 0 and 2, steps 0, 1 and 5; rank 2 has no max at all.
const DATA: ExportedTrend = {
  file: 'run/x.trend.db',
  size: 1,
  mtime: 2,
  data: {
    info: { metrics: [{ name: 'forward', stats: ['norm', 'max'], tags: [{ name: 'b', category: 'module' }] }], ranks: [0, 2], steps: [0, 1, 5] },
    metrics: [
      {
        targets: [
          [1, 'Module.a.input.0', 0, 0],
          [900, 'Module.b.input.0', 1, 2],
        ],
        tags: [[1]],
        values: [
          [
            [1, 11, 51, 900, 910, 950],
            [201, null, 251, 1100, 1110, 1150],
          ],
          [[0, 0, 0, 0, 0, 0], null],
        ],
      },
    ],
  },
};

const api = new ExportedTrendApi([DATA]);
const FILE = DATA.file;
const query = (change: Partial<GridQuery>): GridQuery => ({ metric: 'forward', stat: 'norm', dimension: 'rank', value: 0, tags: [], q: '', offset: 0, limit: 100, ...change });

describe('trends of an exported page', () => {
  it('have targets by steps of a rank, and by ranks of a step', async () => {
    expect(await api.grid(FILE, query({ value: 2 }))).toEqual({
      total: 2,
      columns: [0, 1, 5],
      rows: [
        { id: 1, name: 'Module.a.input.0', vpp_stage: 0, micro_step: 0 },
        { id: 900, name: 'Module.b.input.0', vpp_stage: 1, micro_step: 2 },
      ],
      ranks: [],
      values: [201, null, 251, 1100, 1110, 1150],
    });
    expect(await api.grid(FILE, query({ dimension: 'step', value: 5 }))).toMatchObject({ columns: [0, 2], values: [51, 251, 950, 1150] });
    expect((await api.grid(FILE, query({ stat: 'max', value: 2 }))).values).toEqual([null, null, null, null, null, null]);
  });
  it('have ranks by steps of a target', async () => {
    expect(await api.grid(FILE, query({ dimension: 'target', value: 900 }))).toEqual({ total: 2, columns: [0, 1, 5], rows: [], ranks: [0, 2], values: [900, 910, 950, 1100, 1110, 1150] });
  });
  it('are narrowed by tags and text, a page at a time', async () => {
    expect((await api.grid(FILE, query({ tags: ['b'] }))).rows.map(({ id }) => id)).toEqual([900]);
    expect((await api.grid(FILE, query({ tags: ['b'], q: 'MODULE.A' }))).total).toBe(0);
    expect(await api.grid(FILE, query({ offset: 1, limit: 1 }))).toMatchObject({ total: 2, values: [900, 910, 950] });
  });
  it('stand with the odd ones first', async () => {
    expect(await api.grid(FILE, query({ dimension: 'step', value: 5, order: 'outliers', limit: 1 }))).toMatchObject({ total: 2, values: [51, 251] });
    expect((await api.grid(FILE, query({ dimension: 'target', value: 900, order: 'outliers' }))).ranks).toEqual([0, 2]);
  });
  it('tell NaN and infinities from no value', async () => {
    const block = DATA.data.metrics[0]!.values;
    const special = { ...DATA, data: { ...DATA.data, metrics: [{ ...DATA.data.metrics[0]!, values: [[['nan', 'inf', '-inf', null, 1, 2], null], block[1]!] }] } } as ExportedTrend;
    expect((await new ExportedTrendApi([special]).grid(FILE, query({}))).values).toEqual([NaN, Infinity, -Infinity, null, 1, 2]);
  });
  it('have lines over steps and ranks, without what is missing', async () => {
    const target = { metric: 'forward', stat: 'norm', name: 'Module.a.input.0', vpp_stage: 0, micro_step: 0 };
    expect(await api.line(FILE, { ...target, rank: 2 })).toEqual([
      [0, 201],
      [5, 251],
    ]);
    expect(await api.line(FILE, { ...target, step: 1 })).toEqual([[0, 11]]);
    await expect(api.line(FILE, { ...target, vpp_stage: 7, rank: 0 })).rejects.toMatchObject({ status: 404 });
  });
  it('refuse what they do not hold', async () => {
    await expect(api.info('other')).rejects.toMatchObject({ status: 404 });
    await expect(api.grid(FILE, query({ value: 1 }))).rejects.toMatchObject({ status: 404 });
    await expect(api.grid(FILE, query({ stat: 'mean' }))).rejects.toMatchObject({ status: 404 });
  });
});
