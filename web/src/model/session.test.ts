import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Activations } from '../api/activations';
import type { Verdict } from '../api/verdict';
import { ApiError, type Api, type SearchQuery, type SeekQuery } from '../api/client';
import type { Config, GraphRef, NodeSummary, Side, Summary } from '../api/types';
import { formatLink, linkOf } from './link';
import { failure } from './failure';
import { Session } from './session';
import { INITIAL, readPreferences, Store, writePreferences } from './store';
import { nextShown, previousShown, ROOT, type TreeNode } from './tree';

/** name -> children; both sides hold the same nodes, golden ones are called "g.…" below the root. */
const SHAPE: Record<string, string[]> = {
  [ROOT]: ['m.0', 'm.1'],
  'm.0': ['m.0.a', 'm.0.b'],
  'm.1': ['m.1.a'],
};
const BAD = ['m.0.b', 'm.1.a'];

const onSide = (side: Side, name: string) => (side === 'Bench' && name !== ROOT ? `g.${name}` : name);
const plain = (name: string) => name.replace(/^g\./, '');

function summary(side: Side, name: string): NodeSummary {
  const order = ['m.0.a', 'm.0.b', 'm.0', 'm.1.a', 'm.1', ROOT].indexOf(name);
  const counts = { error: 0, warning: 0, unmatched: 0 };
  const matched = onSide(side === 'NPU' ? 'Bench' : 'NPU', name);
  const precision = side === 'NPU' && BAD.includes(name) ? 1 : null;
  return { name: onSide(side, name), label: name, type: 0, children: SHAPE[name]?.length ?? 0, order, precision, overflow: null, matched, micro_step: 0, counts };
}

class TableApi implements Api {
  calls: string[] = [];
  gate: Promise<void> | null = null;
  async files() {
    return { root: '/d', files: [], skipped: [] };
  }
  verdictsInFile = false;
  suspicious = 1;
  async config(): Promise<Config> {
    return { graph_type: 'compare' as const, task: 'summary', micro_steps: 1, overflow_check: false, verdicts: this.verdictsInFile, colors: null, tool_tip: null, ranks: [0, 1], steps: [0, 5] };
  }
  verdicts: Verdict = { version: 0 };
  async verdict() {
    this.calls.push('verdict');
    return this.verdicts;
  }
  async summary(): Promise<Summary> {
    const totals = { nodes: 6, pass: 0, warning: 0, error: BAD.length, unmatched: 0, none: 4 };
    const verdicts = this.verdictsInFile ? { bug: 1, suspicious: this.suspicious, inherited: 0, rewritten: 0, 'round-off': 0, 'bit-equal': 2, unjudged: 2 } : null;
    return { npu: totals, bench: totals, verdicts, first_error: summary('NPU', BAD[0]!) };
  }
  async children(graph: GraphRef, side: Side, name: string) {
    this.calls.push(`${graph.step}/${graph.rank} ${side} ${name}`);
    await this.gate;
    return { node: summary(side, plain(name)), children: (SHAPE[plain(name)] ?? []).map((kid) => summary(side, kid)) };
  }
  async path(_graph: GraphRef, side: Side, name: string) {
    const parent = Object.keys(SHAPE).find((key) => SHAPE[key]!.includes(plain(name)));
    if (!parent) throw new ApiError(`no node ${name}`, 404);
    const way = parent === ROOT ? [ROOT] : [ROOT, parent];
    return [...way.map((ancestor) => onSide(side, ancestor)), name];
  }
  async node(_graph: GraphRef, side: Side, name: string) {
    return { node: summary(side, plain(name)), inputs: [], outputs: [], stack: [name], merge_info: [], partner: null };
  }
  async search({ rank }: GraphRef, side: Side, { q, level, offset = 0, limit = 200 }: SearchQuery) {
    const hits = ['m.0.a', 'm.0.b', 'm.0', 'm.1.a', 'm.1'].filter((name) => name.includes(q) && (level !== 'error' || BAD.includes(name)));
    return { side, rank, words: [], total: hits.length, hits: hits.slice(offset, offset + limit).map((name) => summary(side, name)) };
  }
  async seek({ rank }: GraphRef, side: Side, { level, from, direction }: SeekQuery) {
    this.calls.push(`seek ${level}`);
    const order = from ? summary(side, from).order : direction > 0 ? -1 : 99;
    const index = direction > 0 ? BAD.findIndex((name) => summary(side, name).order > order) : BAD.findLastIndex((name) => summary(side, name).order < order);
    const at = index >= 0 ? index : direction > 0 ? 0 : BAD.length - 1;
    return { side, rank, node: summary(side, BAD[at]!), index: at, total: BAD.length };
  }
  async history(_file: string, side: Side, name: string) {
    return { name, side, cells: [] };
  }
  async links(_graph: GraphRef, side: Side, name: string) {
    const next = name === 'm.0.a' ? summary(side, 'm.0.b') : null;
    return { previous: null, next, flow_known: false, producers: [], consumers: [], producers_total: 0, consumers_total: 0, partners: [], precision: null };
  }
  async matrix() {
    this.calls.push('matrix');
    return [];
  }
  async findings(graph: GraphRef) {
    return { known: true, total: graph.rank, inherited: 0, findings: [] };
  }
  async layers() {
    return [];
  }
  async activations(): Promise<Activations> {
    this.calls.push('activations');
    const none = { count: 0, first: [] };
    return { ops: 4, read: 4, items: 4, not_finite: none, huge: none, dead: none, constant: none, mask: none, largest: [], layers: [] };
  }
}

let api: TableApi;
let session: Session;
let links: string[];

beforeEach(async () => {
  api = new TableApi();
  links = [];
  session = new Session(new Store(), api, (hash) => links.push(hash));
  await session.open({ file: 'x.vis.db' });
});

const npu = (name: string): TreeNode => session.tree('NPU')!.get(name)!;
const bench = (name: string): TreeNode => session.tree('Bench')!.get(`g.${name}`)!;

describe('the list of files', () => {
  const entry = (file: string) => ({ file, size: 1, mtime: 1 });
  const listing = (...names: string[]) => {
    const api = new TableApi();
    api.files = async () => ({ root: '/d', files: names.map(entry) as never[], skipped: [] });
    const store = new Store(INITIAL);
    let listed = 0; // states in which the page draws the list
    store.subscribe(() => (listed += store.get().files.at === 'ready' && store.get().file === null ? 1 : 0));
    return { session: new Session(store, api), store, seen: () => listed };
  };

  it('is not drawn before a lone file opens', async () => {
    const { session, store, seen } = listing('a.vis.db');
    await session.loadFiles(true);
    await vi.waitFor(() => expect(store.get().graph.at).toBe('ready'));
    expect([store.get().file, seen()]).toEqual(['a.vis.db', 0]);
  });

  it('stays for the user to choose from where there are several, or when it is only read again', async () => {
    const several = listing('a.vis.db', 'b.vis.db');
    await several.session.loadFiles(true);
    const again = listing('a.vis.db');
    await again.session.loadFiles();
    for (const { store, seen } of [several, again]) expect([store.get().file, seen() > 0]).toEqual([null, true]);
  });
});

describe('expansion', () => {
  it('fetches children once and opens the partner too', async () => {
    await Promise.all([session.setOpen('NPU', npu('m.0'), true), session.setOpen('NPU', npu('m.0'), true)]);
    expect(npu('m.0').open && bench('m.0').open).toBe(true);
    expect(api.calls.filter((call) => call === '0/0 NPU m.0')).toHaveLength(1);
    await session.toggle('Bench', bench('m.0'));
    expect(npu('m.0').open || bench('m.0').open).toBe(false);
  });
  it('leaves the partner alone when expansion is not synchronised', async () => {
    session.store.set({ sync: false });
    await session.setOpen('NPU', npu('m.0'), true);
    expect([npu('m.0').open, bench('m.0').open]).toEqual([true, false]);
  });
  it('walks in the order things are drawn', async () => {
    await session.setOpen('NPU', npu('m.0'), true);
    const names: string[] = [];
    for (let at: TreeNode | null = session.tree('NPU')!.root; at; at = nextShown(at)) names.push(at.info.name);
    expect(names).toEqual([ROOT, 'm.0', 'm.0.a', 'm.0.b', 'm.1']);
    expect(previousShown(npu('m.1'))).toBe(npu('m.0.b'));
  });
});

describe('selection', () => {
  it('opens the way on both sides, shows the details and links to the node', async () => {
    const seen: string[] = [];
    session.onReveal((side, node) => seen.push(`${side} ${node.info.name}`));
    await session.goTo('NPU', 'm.1.a');
    expect(npu('m.1').open && bench('m.1').open).toBe(true);
    expect(seen.sort()).toEqual(['Bench g.m.1.a', 'NPU m.1.a']);
    expect(session.state.details).toMatchObject({ at: 'ready', value: { stack: ['m.1.a'] } });
    expect([session.highlighted('NPU'), session.highlighted('Bench')]).toEqual(['m.1.a', 'g.m.1.a']);
    expect(links.at(-1)).toBe('#file=x.vis.db&step=0&rank=0&side=NPU&node=m.1.a');
  });
  it('keeps the node in the address while the way to it is fetched', async () => {
    links.length = 0;
    await session.open({ file: 'x.vis.db', side: 'NPU', node: 'm.1.a' });
    expect(links.length).toBeGreaterThan(0);
    for (const link of links) expect(link).toContain('node=m.1.a');
  });
  it('says so when a node is not there', async () => {
    await session.goTo('NPU', 'm.9');
    expect(session.state.notice).toEqual({ text: 'no node m.9', fault: 'node' });
  });
  it('keeps the node when step or rank change', async () => {
    await session.goTo('NPU', 'm.0.b');
    session.showRank(1);
    await vi.waitFor(() => expect(session.state.details.at).toBe('ready'));
    expect(session.state).toMatchObject({ rank: 1, selection: { side: 'NPU', name: 'm.0.b' } });
  });
});

describe('findings', () => {
  it('goes to the first, the next and around', async () => {
    await session.problems.first();
    expect(session.state.selection?.name).toBe('m.0.b');
    await session.problems.go(1);
    expect(session.state.selection?.name).toBe('m.1.a');
    await session.problems.go(1);
    expect(session.state.selection?.name).toBe('m.0.b');
    await session.problems.go(-1);
    expect(session.state.selection?.name).toBe('m.1.a');
  });
});

const ORIGIN = {
  cause: 'weight', overflow: false, step: 5, ranks: [1], op: 'm.0.a', module: null, source: null, function: null, item: null, parameter: 'weight',
  what: 'Norm', target: '5', golden: '4', percent: 25, units: 'inf' as const, inputs: null, other_op: null, since: null, replay: null, anatomy: null,
};
const verdict = (change: Partial<typeof ORIGIN> = {}): Verdict => ({
  version: 1, outcome: 'origin', compared: true, origins: [{ ...ORIGIN, ...change }], reached: [], inherited: { ops: 0, forward: 0, backward: 0 },
  ops: { bit_equal: 0, round_off: 0, inherited: 0, suspicious: 0, bug: 1, target_only: 0, golden_only: 0 },
  text: { en: ['Origin: m.0.a'], zh: ['误差源头：m.0.a'] },
});

describe('the origin of a file', () => {
  const opened = async (answer: Verdict, link = {}) => {
    api = new TableApi();
    api.verdicts = answer;
    session = new Session(new Store(), api);
    await session.open({ file: 'x.vis.db', ...link });
    return session.state;
  };

  it('says which graph opens, with the way to the op open and nothing selected', async () => {
    const seen: string[] = [];
    api.verdicts = verdict();
    session = new Session(new Store(), api);
    session.onReveal((side, node) => seen.push(`${side} ${node.info.name}`));
    await session.open({ file: 'x.vis.db' });
    expect(session.state).toMatchObject({ step: 5, rank: 1, selection: null, details: { at: 'idle' } });
    expect(npu('m.0').open && bench('m.0').open).toBe(true);
    expect(seen).toEqual(['NPU m.0.a', 'Bench g.m.0.a']);
    expect([session.highlighted('NPU'), session.highlighted('Bench')]).toEqual(['m.0.a', 'g.m.0.a']);
  });
  it('does not overrule the address', async () => {
    expect(await opened(verdict(), { step: 0, rank: 0 })).toMatchObject({ step: 0, rank: 0 });
    expect(npu('m.0').open).toBe(false);
    expect(session.highlighted('NPU')).toBeNull();
  });
  it('is asked for once for a file, and a file without one opens as ever', async () => {
    expect(await opened({ version: 0 })).toMatchObject({ step: 0, rank: 0, selection: null });
    session.showRank(1);
    await vi.waitFor(() => expect(session.state).toMatchObject({ rank: 1, graph: { at: 'ready' } }));
    expect(api.calls.filter((call) => call === 'verdict')).toHaveLength(1);
  });
  it('is no obstacle when it cannot be read', async () => {
    api = new TableApi();
    api.verdict = () => Promise.reject(new ApiError('line', 500));
    session = new Session(new Store(), api);
    await session.open({ file: 'x.vis.db' });
    expect(session.state).toMatchObject({ graph: { at: 'ready' }, verdict: { at: 'failed' } });
  });
  it('is the first stop of the keys, from any graph, and comes again after the last', async () => {
    await opened(verdict(), { step: 0, rank: 0 });
    await session.problems.go(1);
    await vi.waitFor(() => expect(session.state.details.at).toBe('ready'));
    const stops = [session.state.selection?.name];
    expect(session.state).toMatchObject({ step: 5, rank: 1 });
    for (const direction of [1, 1, 1, -1] as const) {
      await session.problems.go(direction);
      stops.push(session.state.selection?.name);
    }
    expect(stops).toEqual(['m.0.a', 'm.0.b', 'm.1.a', 'm.0.a', 'm.1.a']);
  });
  it('does not come between a node and the first one that the rules mark behind it', async () => {
    await opened(verdict({ op: 'm.1', step: 0, ranks: [0] }));
    await session.goTo('NPU', 'm.0.a');
    await session.problems.go(1);
    expect(session.state.selection?.name).toBe('m.0.b');
  });
  it('is not visited twice where the rules mark it too', async () => {
    await opened(verdict({ op: 'm.0.b' }));
    const stops = [];
    for (let i = 0; i < 3; i++) {
      await session.problems.go(1);
      stops.push(session.state.selection?.name);
    }
    expect(stops).toEqual(['m.0.b', 'm.1.a', 'm.0.b']);
  });
  it('of an op that the target lacks is on the golden side', async () => {
    await opened(verdict({ cause: 'missing_op', op: 'g.m.1.a', step: 0, ranks: [0] }));
    await session.problems.first();
    expect(session.state.selection).toEqual({ side: 'Bench', name: 'g.m.1.a' });
  });
});

describe('the colours', () => {
  const opened = async (verdictsInFile: boolean, link = {}, rules = false) => {
    api = new TableApi();
    api.verdictsInFile = verdictsInFile;
    session = new Session(new Store({ ...INITIAL, rules }), api);
    await session.open({ file: 'x.vis.db', ...link });
    return session.state.mode;
  };

  it('are those of the verdict where the file has one, unless the address or the visitor wants the old rules', async () => {
    expect(await opened(true)).toBe('verdict');
    expect(await opened(false)).toBe('precision');
    expect(await opened(true, { colors: 'rules' })).toBe('precision');
    expect(await opened(true, {}, true)).toBe('precision');
  });
  it('are in the address where they are not the usual ones', async () => {
    const address = () => formatLink(linkOf(session.state)!);
    await opened(true);
    expect(address()).not.toContain('colors');
    session.show({ mode: 'precision' });
    expect(address()).toContain('colors=rules');
    await opened(false);
    expect(address()).not.toContain('colors');
  });
  it('say what first, n and p look for', async () => {
    await opened(true);
    expect(session.problems.level()).toBe('bug');
    await session.problems.first();
    await session.problems.go(1);
    session.show({ mode: 'precision' });
    expect(session.problems.level()).toBe('error');
    await session.problems.go(1);
    expect(api.calls.filter((call) => call.startsWith('seek'))).toEqual(['seek bug,suspicious', 'seek bug,suspicious', 'seek error']);
    await opened(true);
    api.suspicious = 0;
    await session.refresh();
    await session.problems.go(1);
    expect(api.calls).toContain('seek bug,suspicious,inherited');
  });
});

describe('the history of the address', () => {
  it('has an entry for each node that one stays at, and going back to one keeps the graph', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      const entries: string[] = [];
      session = new Session(new Store(), api, (hash, entry) => entry && entries.push(hash));
      await session.open({ file: 'x.vis.db' });
      for (const [name, after] of [['m.0.a', 1000], ['m.0.b', 1000], ['m.1.a', 20]] as const) {
        vi.advanceTimersByTime(after);
        await session.goTo('NPU', name);
      }
      expect(entries.map((hash) => new URLSearchParams(hash.slice(1)).get('node'))).toEqual([null, 'm.0.a', 'm.0.b']);
      const { graph } = session.state;
      await session.revisit({ file: 'x.vis.db', step: 0, rank: 0, side: 'NPU', node: 'm.0.a' });
      expect(session.state.selection?.name).toBe('m.0.a');
      await session.revisit({ file: 'x.vis.db', step: 0, rank: 0 });
      expect(session.state.selection).toBeNull();
      expect(session.state.graph).toBe(graph);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('late answers', () => {
  it('are dropped when another graph was opened meanwhile', async () => {
    let release = () => {};
    api.gate = new Promise((done) => (release = done));
    const late = session.setOpen('NPU', npu('m.0'), true);
    api.gate = null;
    await session.open({ file: 'x.vis.db', step: 5 });
    release();
    await late;
    expect(session.state.step).toBe(5);
    expect(npu('m.0').open).toBe(false);
  });
});

describe('search', () => {
  it('waits for the typing to end, then lists and jumps', async () => {
    session.finder.search({ query: 'm' });
    session.finder.search({ query: '.b' });
    await vi.waitFor(() => expect(session.state.search.result).toMatchObject({ at: 'ready', value: { total: 1 } }));
    await session.finder.move(1);
    session.finder.take(session.state.search.active);
    expect(session.state.search).toMatchObject({ open: true, active: 0, query: '.b', result: { at: 'ready' } });
    await vi.waitFor(() => expect(session.state.selection?.name).toBe('m.0.b'));
  });
  it('goes around in the list', async () => {
    session.finder.search({ levels: ['error'] });
    await vi.waitFor(() => expect(session.state.search.result.at).toBe('ready'));
    await session.finder.move(-1);
    expect(session.state.search.active).toBe(1);
    await session.finder.move(1);
    expect(session.state.search.active).toBe(0);
  });
});

describe('preferences', () => {
  it('come back, and nonsense does not', () => {
    const kept = new Map<string, string>();
    const storage = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
    writePreferences(storage, { theme: 'dark', file: 'secret' });
    writePreferences(storage, { language: 'zh' });
    expect(readPreferences(storage, INITIAL)).toEqual({ ...INITIAL, theme: 'dark', language: 'zh' });
    for (const text of ['{', '[]', '7', '{"theme":"red","split":"x"}']) {
      storage.setItem('msprobe.page', text);
      expect(readPreferences(storage, INITIAL)).toEqual(INITIAL);
    }
  });
});

describe('links to what is not there', () => {
  it('say what was asked for, until something that is there is chosen', async () => {
    await session.open({ file: 'x.vis.db', step: 77, rank: 99, microStep: 3 });
    expect(session.state).toMatchObject({ step: 0, rank: 0, strayed: { step: 77, rank: 99, microStep: 3 } });
    session.showRank(1);
    await vi.waitFor(() => expect(session.state).toMatchObject({ rank: 1, strayed: null }));
    await session.open({ file: 'x.vis.db', step: 5, rank: 7 });
    expect(session.state).toMatchObject({ step: 5, rank: 0, strayed: { rank: 7 } });
    session.closeFile();
    expect(session.state.strayed).toBeNull();
  });
  it('tell a file that is gone from a node that is not in it', async () => {
    api.path = async () => Promise.reject(new ApiError('x.vis.db does not exist: choose from the list of files', 404));
    await session.goTo('NPU', 'm.1.a');
    expect(session.state.notice).toMatchObject({ fault: 'gone' });
    api.node = async () => Promise.reject(new ApiError('x.vis.db does not exist: choose from the list of files', 404));
    await session.select('NPU', npu('m.0'));
    expect(session.state.details).toMatchObject({ at: 'failed', fault: 'gone' });
  });
  it('say above the page that the server has ended, also where the way to the node is open already', async () => {
    await session.goTo('NPU', 'm.1.a');
    api.node = async () => Promise.reject(new ApiError('', 0));
    await session.goTo('NPU', 'm.1.a');
    expect(session.state.details).toMatchObject({ at: 'failed', fault: 'noServer' });
    expect(session.state.notice).toEqual({ text: '', fault: 'noServer' });
  });
});

describe('a single graph', () => {
  it('is asked for its values, a comparison is not', async () => {
    expect([session.state.activations.at, api.calls.includes('activations')]).toEqual(['idle', false]);
    const config = await api.config();
    api.config = async () => ({ ...config, graph_type: 'build' as never });
    await session.open({ file: 'y.vis.db' });
    await vi.waitFor(() => expect(session.state.activations.at).toBe('ready'));
    session.closeFile();
    expect(session.state.activations.at).toBe('idle');
  });
});

describe('failure', () => {
  it('tells the kinds apart that the page words itself', () => {
    const kinds = [0, 400, 403, 404, 500].map((status) => failure(new ApiError('line', status)).fault);
    expect(kinds).toEqual(['noServer', 'request', 'token', 'file', 'read']);
    const about = ['a has no graph of step 1 rank 2: choose', 'a has no target node n at step 1 rank 2: check', 'a does not exist: choose from the list of files', 'no tensor of n was saved: dump with task tensor'];
    expect(about.map((line) => failure(new ApiError(line, 404)).fault)).toEqual(['graph', 'node', 'gone', 'read']);
    expect(failure(new RangeError('too long'))).toEqual({ at: 'failed', fault: 'read', error: 'too long' });
  });
});
