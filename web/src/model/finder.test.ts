import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError, type Api, type SearchQuery } from '../api/client';
import type { GraphRef, NodeSummary, Side } from '../api/types';
import { Session } from './session';
import { INITIAL, Store } from './store';

const TOTAL = 1450;

/** Hits h.0 to h.1449; asked[i] is the stretch of the i-th request. */
class ManyHits {
  asked: [offset: number, limit: number][] = [];
  levels: (string | undefined)[] = [];
  sorts: (string | undefined)[] = [];
  total = TOTAL;
  broken = false;
  async search(_graph: GraphRef, _side: Side, { level, sort, offset = 0, limit = 200 }: SearchQuery) {
    this.asked.push([offset, limit]);
    this.levels.push(level);
    this.sorts.push(sort);
    if (this.broken) throw new ApiError('', 0);
    const count = Math.max(0, Math.min(limit, this.total - offset));
    return { side: 'NPU', words: [], total: this.total, hits: Array.from({ length: count }, (_, i) => ({ name: `h.${offset + i}` }) as NodeSummary) };
  }
}

let api: ManyHits;
let session: Session;
const list = () => {
  const { result, active } = session.state.search;
  if (result.at !== 'ready') throw new Error(result.at);
  const { start, hits, total } = result.value;
  return { active, total, start, end: start + hits.length, first: hits[0]?.name, last: hits.at(-1)?.name };
};
const mark = async (by: 1 | -1) => (await session.finder.move(by))?.name;

beforeEach(async () => {
  api = new ManyHits();
  session = new Session(new Store({ ...INITIAL, file: 'x.vis.db' }), api as unknown as Api);
  session.finder.search({ query: 'h' });
  await vi.waitFor(() => expect(session.state.search.result.at).toBe('ready'));
});

describe('the list of hits', () => {
  it('is walked to its end and around, whatever is fetched', async () => {
    for (let i = 0; i < TOTAL; i++) expect(await mark(1)).toBe(`h.${i}`);
    expect(api.asked).toEqual([0, 200, 400, 600, 800, 1000, 1200, 1400].map((offset) => [offset, 200]));
    expect(list()).toMatchObject({ active: TOTAL - 1, start: 450, end: TOTAL, first: 'h.450', last: 'h.1449' });
    expect(await mark(1)).toBe('h.0');
    expect(list()).toMatchObject({ active: 0, start: 0, end: 200 });
    expect(await mark(-1)).toBe('h.1449');
    expect(list()).toMatchObject({ active: 1449, start: 1250, end: TOTAL });
    for (let i = 1448; i >= 0; i--) expect(await mark(-1)).toBe(`h.${i}`);
    expect(list()).toMatchObject({ start: 0, end: 1000, first: 'h.0', last: 'h.999' });
  });
  it('keeps the answer before until the next one is there, and says so', async () => {
    expect(session.finder.settled).toBe(true);
    session.finder.search({ query: 'h.' });
    expect(session.state.search.result.at).toBe('ready');
    expect(session.finder.settled).toBe(false);
    await vi.waitFor(() => expect(session.finder.settled).toBe(true));
    session.finder.search({ query: '' });
    expect(session.finder.settled).toBe(true);
    expect(session.state.search.result.at).toBe('idle');
  });
  it('counts each key that comes while more is fetched', async () => {
    for (let i = 0; i < 199; i++) await mark(1);
    await Promise.all([1, 1, 1, 1].map(() => session.finder.move(1)));
    expect(list()).toMatchObject({ active: 202, end: 400 });
    expect(api.asked).toHaveLength(2);
  });
  it('grows at the end that is in sight, and not beyond all hits', async () => {
    session.finder.more(-1);
    session.finder.more(1);
    session.finder.more(1); // the same sight twice
    await vi.waitFor(() => expect(list()).toMatchObject({ start: 0, end: 400, active: -1 }));
    expect(api.asked).toHaveLength(2);
    await mark(-1);
    session.finder.more(1);
    session.finder.more(-1);
    await vi.waitFor(() => expect(list()).toMatchObject({ start: 1050, end: TOTAL, active: 1449 }));
    expect(api.asked).toHaveLength(4);
  });
  it('starts anew where the graph has changed meanwhile', async () => {
    for (let i = 0; i < 200; i++) await mark(1);
    api.total = 300;
    expect(await mark(1)).toBe('h.200');
    expect(list()).toMatchObject({ total: 300, start: 200, end: 300 });
    for (let i = 201; i < 300; i++) await mark(1);
    expect(await mark(1)).toBe('h.0');
  });
  it('says what failed and stays where it is', async () => {
    for (let i = 0; i < 200; i++) await mark(1);
    api.broken = true;
    expect(await session.finder.move(1)).toBeNull();
    expect(session.state.notice).toEqual({ text: '', fault: 'noServer' });
    expect(list()).toMatchObject({ active: 199, end: 200 });
    api.broken = false;
    expect(await mark(1)).toBe('h.200');
  });
  it('is sorted as it was chosen, in all its stretches and for the next node', async () => {
    session.finder.search({ sort: 'error' });
    await vi.waitFor(() => expect(list()).toMatchObject({ active: -1, start: 0 }));
    await vi.waitFor(() => expect(api.sorts).toEqual([undefined, 'error']));
    await vi.waitFor(async () => expect(await mark(-1)).toBe('h.1449'));
    expect(api.sorts.at(-1)).toBe('error');
    expect(session.finder.asked()).toMatchObject({ q: 'h', sort: 'error' });
  });
  it('drops what another question no longer wants', async () => {
    await mark(-1);
    const late = session.finder.move(1);
    session.finder.search({ levels: ['error', 'unmatched'] });
    expect(await late).toBeNull();
    await vi.waitFor(() => expect(list()).toMatchObject({ active: -1, start: 0, end: 200 }));
    expect(api.levels.at(-1)).toBe('error,unmatched');
    session.finder.search({ query: '', levels: [] });
    expect(session.state.search.result.at).toBe('idle');
    expect(await session.finder.move(1)).toBeNull();
  });
});
