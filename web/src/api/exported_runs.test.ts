import { describe, expect, it } from 'vitest';
import { ExportedRunApi } from './exported_runs';
import { layerOf, naturalOrder } from './run_names';
import { NO_VALUE } from './runs';

const pack = (values: number[]) => btoa(String.fromCharCode(...new Uint8Array(new Float32Array(values).buffer)));
const metric = { metric: 'grad', stat: 'norm', from: 0, bins: 4, labels: ['layers.10.w', 'layers.2.a', 'layers.2.b'], mean: pack([1, 2, 3, 4, 5, NaN, 5, 5, 7, 7, NO_VALUE, 9]) };
const api = new ExportedRunApi([{ file: 'run', size: 1, mtime: 1, ranks: 1, data: { changed: 1, events: { events: [] }, ranks: [{ rank: 3, width: 10, first_step: 0, last_step: 39, metrics: [metric] }] } }]);
const source = { run: 'run', rank: 3, metric: 'grad', stat: 'norm', fold: 'layer', q: '' } as const;

describe('a run of an exported page', () => {
  it('says what it has', async () => {
    expect(await api.info('run')).toMatchObject({ ranks: [3], interval: 10, last_step: 39, metrics: [{ name: 'grad', stats: ['norm'], series: 3 }] });
    await expect(api.info('run', 1)).rejects.toThrow();
  });
  it('folds series into layers, in natural order', async () => {
    const { rows, odd, low, high } = await api.rows({ ...source, cell: 'highest' });
    expect(rows.map(({ label, series }) => [label, series])).toEqual([
      ['layers.2', 2],
      ['layers.10', 1],
    ]);
    expect([odd, low, high]).toEqual([1, 1, 7]);
  });
  it('merges bins', async () => {
    const tile = await api.tile({ ...source, cell: 'highest', level: 1, from: 0, bins: 3, offset: 0, limit: 9 });
    expect([...tile.values]).toEqual([NaN, 9, NO_VALUE, 2, 4, NO_VALUE]);
    const bands = await api.bands({ ...source, fold: 'none', cell: 'mean', level: 0, from: 3, bins: 1, offset: 0, limit: 9, labels: ['layers.2.b', 'gone'] });
    expect([...bands.mean]).toEqual([9, NO_VALUE]);
  });
});

it('names of layers', () => {
  expect(layerOf('model.layers.3.mlp.w #1')).toBe('model.layers.3');
  expect(layerOf('lm_head.weight vpp 1')).toBe('lm_head.weight');
  expect(['l.10', 'l.9', 'l'].sort(naturalOrder)).toEqual(['l', 'l.9', 'l.10']);
});
