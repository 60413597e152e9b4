import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError, type Api, type MatchAction, type MatchRequest } from '../api/client';
import type { GraphRef, NodeSummary, Side } from '../api/types';
import { Session } from './session';
import { Store } from './store';
import { ROOT } from './tree';

const KIDS: Record<Side, string[]> = { NPU: ['a', 'x'], Bench: ['b', 'x'] };

/** A server in miniature: x is matched with x, a and b with nothing. */
class Server {
  pairs = new Map([['x', 'x']]);
  suggested: string[] = [];
  revision = 0;
  asked: [MatchAction, MatchRequest][] = [];
  arrives: Promise<void> = Promise.resolve(); // what it says of its state

  node(side: Side, name: string): NodeSummary {
    const matched = side === 'NPU' ? (this.pairs.get(name) ?? null) : ([...this.pairs].find(([, bench]) => bench === name)?.[0] ?? null);
    const root = name === ROOT;
    const counts = { error: 0, warning: 0, unmatched: 0 };
    return { name, label: name, type: root ? 0 : 1, children: root ? 2 : 0, order: 0, precision: matched && side === 'NPU' ? 1 : null, overflow: null, matched: root ? ROOT : matched, micro_step: 0, counts };
  }

  api(): Api {
    const totals = () => ({ nodes: 3, pass: 0, warning: 0, error: this.pairs.size, unmatched: 2 - this.pairs.size, none: 1 });
    return {
      files: async () => ({ root: '', files: [], skipped: [] }),
      config: async () => ({ graph_type: 'compare' as const, task: 'summary', micro_steps: 1, overflow_check: false, colors: null, tool_tip: null, ranks: [0, 1], steps: [0] }),
      verdict: async () => ({ version: 0 as const }),
      summary: async () => ({ npu: totals(), bench: totals(), first_error: null }),
      children: async (_graph, side, name) => ({ node: this.node(side, name), children: name === ROOT ? KIDS[side].map((kid) => this.node(side, kid)) : [] }),
      path: async (_graph, _side, name) => [ROOT, name],
      node: async (_graph, side, name) => ({ node: this.node(side, name), inputs: [], outputs: [], stack: [], merge_info: [], partner: null }),
      search: async () => ({ side: 'NPU' as const, rank: 0, total: 0, hits: [], words: [] }),
      seek: async () => ({ side: 'NPU' as const, rank: 0, node: null, index: 0, total: 0 }),
      links: async () => ({ previous: null, next: null, flow_known: false, producers: [], consumers: [], producers_total: 0, consumers_total: 0, partners: [], precision: null }),
      matrix: async () => [],
      history: async (_file, side, name) => ({ name, side, cells: [] }),
      findings: async () => ({ known: true, total: 0, inherited: 0, findings: [] }),
      layers: async () => [],
      activations: async () => Promise.reject(new Error('not asked')),
      matching: {
        state: async () => {
          const now = { revision: String(this.revision), refusal: null, problem: null, made: [...this.pairs] as [string, string][], cancelled: [], configs: ['c.vis.config'], undo: this.revision, redo: 1 };
          await this.arrives;
          return now;
        },
        change: async (_graph: GraphRef, action: MatchAction, request: MatchRequest) => {
          this.asked.push([action, request]);
          if (request.revision !== String(this.revision)) throw new ApiError('changed meanwhile', 409, 'stale');
          if (action === 'add') this.pairs.set(request.npu!, request.bench!);
          if (action === 'remove') this.pairs.delete(request.npu!);
          this.revision++;
          return { changed: 1, skipped_total: 0, skipped: [], config: action === 'save' ? 'c.vis.config' : null };
        },
        suggest: async (_graph: GraphRef, side: Side, name: string) => {
          this.suggested.push(name);
          const other = side === 'NPU' ? 'Bench' : 'NPU';
          return [{ node: this.node(other, KIDS[other][0]!), name_likeness: 0.9, same_place: true, same_shapes: null }];
        },
      },
    };
  }
}

let server: Server;
let session: Session;
const panel = () => session.state.matching;
const select = (side: Side, name: string) => session.select(side, session.tree(side)!.get(name)!);

beforeEach(async () => {
  server = new Server();
  session = new Session(new Store(), server.api());
  await session.open({ file: 'c.vis.db' });
  session.matching!.open();
  await session.matching!.reload();
});

describe('matching', () => {
  it('picks what is selected, a matched node with its partner', async () => {
    await select('NPU', 'a');
    expect([panel().picked, session.matching!.action]).toEqual([{ NPU: 'a', Bench: null }, null]);
    await select('Bench', 'b');
    expect([panel().picked, session.matching!.action]).toEqual([{ NPU: 'a', Bench: 'b' }, 'add']);
    expect([session.highlighted('NPU'), session.highlighted('Bench')]).toEqual(['a', 'b']);
    session.matching!.drop('NPU');
    session.matching!.drop('Bench');
    await select('Bench', 'x');
    expect([panel().picked, session.matching!.action]).toEqual([{ NPU: 'x', Bench: 'x' }, 'remove']);
    await select('NPU', 'a');
    expect(panel().picked).toEqual({ NPU: 'a', Bench: null });
  });
  it('keeps what waits for a partner when a matched node of the other side is looked at', async () => {
    await select('NPU', 'a');
    await select('Bench', 'x');
    expect(panel()).toMatchObject({ picked: { NPU: 'a', Bench: null }, message: { kind: 'pending', values: { name: 'x' } } });
    await select('Bench', 'b');
    expect(panel()).toMatchObject({ picked: { NPU: 'a', Bench: 'b' }, message: null });
  });
  it('suggests partners for the one that waits, and takes one', async () => {
    await select('NPU', 'x');
    expect(panel().suggestions).toEqual([]);
    await select('NPU', 'a');
    await vi.waitFor(() => expect(panel().suggestions).toHaveLength(1));
    expect(server.suggested).toEqual(['a']);
    await session.matching!.take(panel().suggestions[0]!);
    expect(panel()).toMatchObject({ picked: { NPU: 'a', Bench: KIDS.Bench[0] }, suggestions: [] });
  });
  it('takes changes back and makes them again, when there are some', async () => {
    await session.matching!.undo();
    expect(server.asked).toEqual([]);
    await select('NPU', 'a');
    await select('Bench', 'b');
    await session.matching!.act();
    await session.matching!.undo();
    expect(panel().message?.kind).toBe('undone');
    await session.matching!.redo();
    expect(panel().message?.kind).toBe('redone');
    expect(server.asked.map(([action]) => action)).toEqual(['add', 'undo', 'redo']);
  });
  it('takes a change back whose matches are still on their way', async () => {
    await select('NPU', 'a');
    await select('Bench', 'b');
    let arrive = () => {};
    server.arrives = new Promise((resolve) => (arrive = resolve));
    const made = session.matching!.act();
    await vi.waitFor(() => expect(panel().message?.kind).toBe('made'));
    const undone = session.matching!.undo();
    arrive();
    await Promise.all([made, undone]);
    expect(panel()).toMatchObject({ busy: false, message: { kind: 'undone' } });
    expect(server.asked.map(([action]) => action)).toEqual(['add', 'undo']);
  });
  it('takes nothing back in another graph that is shown meanwhile', async () => {
    await select('NPU', 'a');
    await select('Bench', 'b');
    let arrive = () => {};
    server.arrives = new Promise((resolve) => (arrive = resolve));
    const made = session.matching!.act();
    await vi.waitFor(() => expect(panel().message?.kind).toBe('made'));
    const undone = session.matching!.undo();
    session.showRank(1);
    arrive();
    await Promise.all([made, undone]);
    expect(server.asked.map(([action]) => action)).toEqual(['add']);
  });
  it('matches, and everything on the page follows', async () => {
    await select('NPU', 'a');
    await select('Bench', 'b');
    const { revision } = session.state;
    await session.matching!.act();
    expect(session.tree('NPU')!.get('a')!.info).toMatchObject({ matched: 'b', precision: 1 });
    expect(session.tree('Bench')!.get('b')!.info.matched).toBe('a');
    expect(session.state.graph).toMatchObject({ at: 'ready', value: { summary: { npu: { error: 2 } } } });
    expect(session.state.revision).toBeGreaterThan(revision);
    expect(panel()).toMatchObject({ busy: false, message: { kind: 'made', values: { count: 1 } } });
    expect(session.matching!.action).toBe('remove');
    await session.matching!.act();
    expect(session.tree('NPU')!.get('a')!.info.matched).toBe(null);
    expect(panel().message?.kind).toBe('removed');
  });
  it('shows what somebody else did when they were first', async () => {
    await select('NPU', 'a');
    await select('Bench', 'b');
    server.revision = 7;
    server.pairs.clear();
    await session.matching!.act();
    expect(panel().message?.kind).toBe('stale');
    expect(session.tree('NPU')!.get('x')!.info.matched).toBe(null);
    await session.matching!.act();
    expect(panel().message?.kind).toBe('made');
  });
  it('forgets what was picked with the graph', async () => {
    await select('NPU', 'a');
    session.showRank(1);
    expect(panel()).toMatchObject({ open: true, picked: { NPU: null, Bench: null } });
  });
  it('is not there without a server', () => {
    const { matching: _, ...rest } = server.api();
    expect(new Session(new Store(), rest).matching).toBe(null);
  });
});
