import { describe, expect, it } from 'vitest';
import { ExportedApi, readExported, type ExportedData } from './exported';

const REF = { file: 'x.vis.db', step: 0, rank: 0 };
// root > m > {a (error), b}, c without partner; the golden side has all but c.
const DATA = {
  format: 1,
  file: 'x.vis.db',
  config: { graph_type: 'compare', task: 'summary', micro_steps: 1, overflow_check: true, colors: null, tool_tip: null, ranks: [0, 1], steps: [0] },
  matrix: { cells: [] },
  graphs: [
    {
      step: 0,
      rank: 0,
      summary: {},
      findings: { known: true, total: 0, inherited: 0, findings: [] },
      layers: { layers: [] },
      npu: [
        ['op.a', 1, 1, 2, 1, 3, 0, 0, 0],
        ['op.b', 1, 1, 2, 0, 0, 1, 0, 1],
        ['m', 1, 0, 4, 0.5, 0, 2, 0, 2],
        ['op.c', 4, 1, 4, null, 0, -1, 0, 3],
        ['root', 4, 0, -1, null, 0, 3, 0, 4],
      ],
      bench: [
        ['op.a', 1, 1, 2, null, 0, 0, 0, 0],
        ['op.b', 1, 1, 2, null, 0, 1, 0, 1],
        ['m', 1, 0, 3, null, 0, 2, 0, 2],
        ['root', 4, 0, -1, null, 0, 4, 0, 3],
      ],
      npu_order: [
        [2, 2],
        [0, 2],
      ],
      bench_order: [[0, 4]],
      flow: [[1, 0, 0, 0, 95]],
      details: { NPU: { 0: { inputs: [], outputs: [{ name: 'op.a.output.0', values: {} }], stack: ['s'], merge_info: [], communication: null, partners: [], precision: null } }, Bench: {} },
      tensors: { NPU: { 0: { 'op.a.output.0': { 0: { slice: 0 }, 7: { slice: 7 } } } }, Bench: {} },
    },
  ],
  nodes: 9,
  details: 1,
} as unknown as ExportedData;

const api = new ExportedApi(DATA);

describe('an exported page', () => {
  it('finds its graphs in itself, and none in a page with a server', async () => {
    const packed = new Blob([JSON.stringify(DATA)]).stream().pipeThrough(new CompressionStream('gzip'));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    expect(await readExported(btoa(String.fromCharCode(...bytes)))).toEqual(DATA);
    expect(await readExported('MSPROBE-REPORT-DATA')).toBeNull();
  });
  it('counts over subtrees and names partners', async () => {
    const { node, children } = await api.children(REF, 'NPU', '');
    expect(node.counts).toEqual({ error: 1, warning: 1, unmatched: 1, overflow: 1 });
    expect(children.map(({ name, matched, children: kids }) => [name, matched, kids])).toEqual([
      ['m', 'm', 2],
      ['op.c', null, 0],
    ]);
    expect(await api.path(REF, 'NPU', 'op.b')).toEqual(['root', 'm', 'op.b']);
  });
  it('says when the figures of a node were left out', async () => {
    expect(await api.node(REF, 'NPU', 'op.a')).toMatchObject({ stack: ['s'], partner: { node: { name: 'op.a' } } });
    expect((await api.node(REF, 'NPU', 'op.a')).left_out).toBeUndefined();
    expect((await api.node(REF, 'NPU', 'op.b')).left_out).toBe(true);
  });
  it('has the values of some tensors, and says which slices of them', async () => {
    const of = (name: string, slice: number) => api.tensor(REF, { side: 'NPU', name, item: `${name}.output.0`, slice });
    expect(await of('op.a', 7)).toEqual({ slice: 7 });
    await expect(of('op.a', 3)).rejects.toMatchObject({ slices: [0, 7] });
    await expect(of('op.b', 0)).rejects.toMatchObject({ slices: [] });
  });
  it('searches and walks by filter', async () => {
    expect((await api.search(REF, 'NPU', { q: 'OP.', level: undefined })).total).toBe(3);
    expect((await api.search(REF, 'NPU', { q: 'm', level: undefined, leaf: 1 })).total).toBe(0);
    expect((await api.search(REF, 'NPU', { q: '', level: 'unmatched' })).hits.map(({ name }) => name)).toEqual(['op.c']);
    const both = await api.search(REF, 'NPU', { q: '', level: 'unmatched,error' });
    expect(both.hits.map(({ name }) => name).sort()).toEqual(['op.a', 'op.c']);
    expect(await api.search(REF, 'NPU', { q: '', level: 'unmatched,error', offset: 1, limit: 200 })).toEqual({ total: 2, hits: both.hits.slice(1) });
    expect(await api.seek(REF, 'NPU', { level: 'error', from: 'op.b', direction: 1 })).toMatchObject({ node: { name: 'op.a' }, index: 0, total: 1 });
    expect(await api.seek(REF, 'NPU', { level: 'high', direction: -1 })).toEqual({ node: null, index: 0, total: 0 });
  });
  it('follows the order of execution over its runs, and the flow both ways', async () => {
    const of = (name: string) => api.links(REF, 'NPU', name);
    expect((await of('op.c')).next?.name).toBe('op.a');
    expect((await of('op.a')).previous?.name).toBe('op.c');
    expect((await of('op.b')).next).toBeNull();
    expect((await of('op.b')).producers).toMatchObject([{ node: { name: 'op.a' }, path: ['m'], confidence: 95 }]);
    expect((await of('op.a')).consumers).toMatchObject([{ node: { name: 'op.b' } }]);
  });
  it('refuses what it does not hold', async () => {
    await expect(api.node(REF, 'NPU', 'nope')).rejects.toMatchObject({ status: 404 });
    await expect(api.summary({ ...REF, rank: 7 })).rejects.toMatchObject({ status: 404 });
  });
});
