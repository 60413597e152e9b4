import { describe, expect, it } from 'vitest';
import type { SearchQuery } from './client';
import type { Side } from './types';
import { ExportedApi, readExported, type ExportedData } from './exported';
import GOLDEN from './golden_ranks.json';

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
        ['op.a', 1, 1, 2, 1, 3, 0, 0, 0, 4],
        ['op.b', 1, 1, 2, 0, 0, 1, 0, 1, 6],
        ['m', 1, 0, 4, 0.5, 0, 2, 0, 2, 5],
        ['op.c', 4, 1, 4, null, 0, -1, 0, 3, 0],
        ['root', 4, 0, -1, null, 0, 3, 0, 4, 0],
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
  it('holds the answer for the whole file, if it is new enough', async () => {
    expect(await api.verdict()).toEqual({ version: 0 });
    const verdict = { version: 1, outcome: 'equal' } as NonNullable<ExportedData['verdict']>;
    expect(await new ExportedApi({ ...DATA, verdict }).verdict()).toBe(verdict);
  });
  it('counts over subtrees and names partners', async () => {
    const { node, children } = await api.children(REF, 'NPU', '');
    expect(node.counts).toEqual({ error: 1, warning: 1, unmatched: 1, overflow: 1, suspicious: 1, bug: 1 });
    expect(children.map(({ verdict }) => verdict)).toEqual(['suspicious', null]);
    expect(children.map(({ name, matched, children: kids }) => [name, matched, kids])).toEqual([
      ['m', 'm', 2],
      ['op.c', null, 0],
    ]);
    expect(await api.path(REF, 'NPU', 'op.b')).toEqual(['root', 'm', 'op.b']);
  });
  it('leaves collections of calls out of all counts, as the command line does', async () => {
    const npu = DATA.graphs[0]!.npu.map((row) => (row[0] === 'm' ? Object.assign([...row], { 2: 9 }) : row)) as typeof DATA.graphs[0]['npu'];
    const other = new ExportedApi({ ...DATA, graphs: [{ ...DATA.graphs[0]!, npu }] });
    const { node } = await other.children(REF, 'NPU', '');
    expect(node.counts).toEqual({ error: 1, warning: 0, unmatched: 1, overflow: 1, suspicious: 0, bug: 1 });
    expect(await other.search(REF, 'NPU', { q: '', level: 'warning,suspicious' })).toEqual({ side: 'NPU', rank: 0, total: 0, hits: [], words: [] });
    expect((await other.search(REF, 'NPU', { q: 'm', level: undefined })).total).toBe(1);
  });
  it('counts alike in header, matrix, list and tree: tests/golden/graph/ranks, as msprobe export writes it', async () => {
    const golden = new ExportedApi(GOLDEN as unknown as ExportedData);
    let collections = 0;
    for (const cell of await golden.matrix()) {
      const ref = { file: GOLDEN.file, step: cell.step, rank: cell.rank };
      const { npu, verdicts } = await golden.summary(ref);
      const { node } = await golden.children(ref, 'NPU', '');
      for (const level of ['error', 'warning', 'unmatched'] as const) {
        const { total } = await golden.search(ref, 'NPU', { q: '', level });
        expect([npu[level], node.counts[level], total], `rank ${cell.rank} ${level}`).toEqual(Array(3).fill(cell[level]));
      }
      for (const level of ['bug', 'suspicious', 'inherited'] as const) {
        const { total } = await golden.search(ref, 'NPU', { q: '', level });
        expect([verdicts?.[level], total], `rank ${cell.rank} ${level}`).toEqual(Array(2).fill(cell[level]));
      }
      const all = await golden.search(ref, 'NPU', { q: '', level: undefined });
      collections += all.hits.filter(({ type, precision }) => type === 9 && precision === 0.5).length;
    }
    expect(collections).toBe(1); // which would be a warning more in rank 1
  });
  it('finds nodes by what the ruler says of them', async () => {
    const names = async (level: string) => (await api.search(REF, 'NPU', { q: '', level })).hits.map(({ name }) => name);
    expect(await names('bug')).toEqual(['op.b']);
    expect(await names('bug,suspicious')).toEqual(['op.b', 'm']);
    expect(await names('inherited')).toEqual(['op.a']);
    expect(await names('unjudged')).toEqual(['root']);
    expect(await api.seek(REF, 'NPU', { level: 'bug,suspicious', from: 'm', direction: 1 })).toMatchObject({ node: { name: 'op.b' }, index: 0, total: 2 });
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
    expect(await api.search(REF, 'NPU', { q: 'type:op -c' })).toMatchObject({ total: 2, hits: [{ name: 'op.a', module: 'm' }, { name: 'op.b', module: 'm' }], words: [] });
    await expect(api.search(REF, 'NPU', { q: 'type:' })).rejects.toMatchObject({ status: 400 });
    expect((await api.search(REF, 'NPU', { q: 'm', level: undefined, leaf: 1 })).total).toBe(0);
    expect((await api.search(REF, 'NPU', { q: '', level: 'unmatched' })).hits.map(({ name }) => name)).toEqual(['op.c']);
    const both = await api.search(REF, 'NPU', { q: '', level: 'unmatched,error' });
    expect(both.hits.map(({ name }) => name).sort()).toEqual(['op.a', 'op.c']);
    expect(await api.search(REF, 'NPU', { q: '', level: 'unmatched,error', offset: 1, limit: 200 })).toMatchObject({ total: 2, hits: both.hits.slice(1) });
    expect(await api.seek(REF, 'NPU', { level: 'error', from: 'op.b', direction: 1 })).toMatchObject({ node: { name: 'op.a' }, index: 0, total: 1 });
    expect(await api.seek(REF, 'NPU', { level: 'high', direction: -1 })).toEqual({ side: 'NPU', rank: 0, node: null, index: 0, total: 0 });
  });
  it('knows dtypes and the graphs of other ranks', async () => {
    const [graph] = DATA.graphs;
    const dtypes = { names: ['float32', 'bfloat16'], NPU: [3, 1, 0, 0, 0], Bench: [0, 2, 0, 0] };
    const known = new ExportedApi({ ...DATA, graphs: [{ ...graph!, dtypes }, { ...graph!, rank: 2 }, { ...graph!, rank: 3 }] });
    const names = async (q: string) => (await known.search(REF, 'NPU', { q })).hits.map(({ name }) => name);
    expect(await names('dtype:float32')).toEqual(['op.a', 'op.b']);
    expect(await names('dtype:bf16')).toEqual(['op.a']);
    expect(await names('dtype:bf16 side:golden')).toEqual(['op.b']);
    expect(await known.search(REF, 'NPU', { q: 'op.a' })).toMatchObject({ rank: 0, total: 1 });
    expect(await known.search(REF, 'NPU', { q: 'op.a rank:2' })).toMatchObject({ rank: 2, total: 1, words: ['op.a'] });
    expect(await known.seek(REF, 'NPU', { q: 'op. rank:2', from: 'op.b', direction: 1 })).toMatchObject({ rank: 2, index: 0, total: 3, node: { name: 'op.a' } });
    await expect(known.search(REF, 'NPU', { q: 'rank:1' })).rejects.toMatchObject({ status: 400, message: 'rank: there is no rank 1 in this file: it has 0,2-3' });
    await expect(known.search(REF, 'NPU', { q: 'dtype:bf16 rank:2' })).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/no dtypes are known/) });
  });
  it('knows errors, and sorts by them and by module, as the server does', async () => {
    const [graph] = DATA.graphs;
    const errors: Record<string, number | 'inf'> = { 'op.a': 'inf', 'op.b': 0.1, m: 0.5 };
    const npu = graph!.npu.map((row) => (errors[row[0]] === undefined ? row : [...row, errors[row[0]]])) as typeof DATA.graphs[0]['npu'];
    const known = new ExportedApi({ ...DATA, config: { ...DATA.config, verdicts: true }, graphs: [{ ...graph!, npu }] });
    const names = async (query: SearchQuery, side: Side = 'NPU') => (await known.search(REF, side, query)).hits.map(({ name }) => name);
    expect(await names({ q: 'error>10%' })).toEqual(['op.a', 'm']);
    expect(await names({ q: '-error>10% side:golden' })).toEqual(['op.b', 'root']);
    expect(await names({ q: '', sort: 'error' })).toEqual(['op.a', 'm', 'op.b', 'op.c', 'root']);
    expect(await names({ q: '', sort: 'error' }, 'Bench')).toEqual(['op.a', 'm', 'op.b', 'root']);
    expect(await names({ q: '', sort: 'error', offset: 1, limit: 2 })).toEqual(['m', 'op.b']);
    expect(await names({ q: '', sort: 'module' })).toEqual(['op.a', 'op.b', 'm', 'root', 'op.c']);
    const seek = (from: string | undefined, direction: 1 | -1) => known.seek(REF, 'NPU', { q: '-root', sort: 'error', from, direction });
    expect(await seek(undefined, 1)).toMatchObject({ node: { name: 'op.a' }, index: 0, total: 4 });
    expect(await seek('m', 1)).toMatchObject({ node: { name: 'op.b' }, index: 2 });
    expect(await seek('root', -1)).toMatchObject({ node: { name: 'op.c' }, index: 3 });
    expect(await seek(undefined, -1)).toMatchObject({ node: { name: 'op.c' }, index: 3 });
    await expect(api.search(REF, 'NPU', { q: 'error>1' })).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/no errors are known/) });
    expect((await api.search(REF, 'NPU', { q: '', sort: 'error' })).hits.map(({ name }) => name)).toEqual(['op.a', 'op.b', 'm', 'op.c', 'root']);
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
