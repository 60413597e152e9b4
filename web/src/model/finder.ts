import type { Api } from '../api/client';
import type { HitSort, NodeSummary, SearchResult, Side } from '../api/types';
import { failure } from './failure';
import { BUSY, IDLE } from './load';
import type { SessionPort } from './port';
import type { Hits, SearchState } from './store';

const DELAY_MS = 20; // keys that come at once ask once
const PAGE = 200;
const MOST_LISTED = 1000; // the browser lays out as many without a pause

/** Nodes by name and level. The list holds a stretch of all hits, which moves along with whoever walks it. */
export class Finder {
  private epoch = 0; // of the question: answers to an earlier one are dropped
  private answered = 0; // the question that was answered last
  private timer: ReturnType<typeof setTimeout> | undefined;
  private fetching: Promise<void> | null = null;

  constructor(
    private readonly session: SessionPort,
    private readonly api: Api,
  ) {}

  private get state(): SearchState {
    return this.session.state.search;
  }
  private get hits(): Hits | null {
    const { result } = this.state;
    return result.at === 'ready' ? result.value : null;
  }
  /** Of the hits: a search may name another one than the switch. */
  get side(): Side {
    return this.hits?.side ?? this.state.side;
  }
  private set(change: Partial<SearchState>): void {
    this.session.store.set({ search: { ...this.state, ...change } });
  }

  /** Whether what is listed answers what was asked last: until then it is the answer before. */
  get settled(): boolean {
    return this.answered === this.epoch;
  }

  /** Of another graph: nothing is asked. */
  forget(): void {
    this.answered = ++this.epoch;
    clearTimeout(this.timer);
    this.set({ open: false, side: 'NPU', query: '', levels: [], result: IDLE });
  }

  search(change: Partial<Pick<SearchState, 'query' | 'side' | 'levels' | 'leaves' | 'sort'>>, open = true): void {
    clearTimeout(this.timer);
    const epoch = ++this.epoch;
    this.set({ ...change, open, active: -1 });
    if (this.state.query.trim() === '' && this.state.levels.length === 0) {
      this.answered = epoch;
      this.set({ result: IDLE });
      this.session.writeLink();
      return;
    }
    if (!this.hits) this.set({ result: BUSY });
    this.timer = setTimeout(() => void this.run(epoch), 'query' in change ? DELAY_MS : 0);
  }

  private async run(epoch: number): Promise<void> {
    this.session.writeLink();
    const result = await this.ask(0, PAGE).then((found) => ({ at: 'ready' as const, value: { ...found, start: 0 } }), failure);
    if (epoch !== this.epoch) return;
    this.answered = epoch;
    this.set({ result });
  }

  private ask(offset: number, limit: number): Promise<SearchResult> {
    const { side, query, levels, leaves } = this.state;
    return this.api.search(this.session.ref(), side, { q: query.trim(), level: levels.join(',') || undefined, leaf: leaves ? 1 : undefined, sort: this.sort, offset: offset || undefined, limit });
  }

  private get sort(): HitSort | undefined {
    return this.state.sort === 'execution' ? undefined : this.state.sort;
  }

  /** Marks the next (1) or previous (-1) hit; behind the last comes the first. Null where there is none to be had. */
  async move(by: 1 | -1): Promise<NodeSummary | null> {
    const { epoch } = this;
    while (this.fetching) await this.fetching; // each key counts, also one that comes while hits are fetched
    if (epoch !== this.epoch || !this.hits || this.hits.total === 0) return null;
    const { active } = this.state;
    const { total } = this.hits;
    const wanted = active < 0 ? (by > 0 ? 0 : total - 1) : (active + by + total) % total;
    if (!this.at(wanted)) {
      await this.fetchAround(wanted);
      if (epoch !== this.epoch) return null;
    }
    const hit = this.at(wanted);
    if (hit) this.set({ open: true, active: wanted });
    return hit;
  }

  private at(index: number): NodeSummary | null {
    const { hits } = this;
    return hits?.hits[index - hits.start] ?? null;
  }

  /** The list is at its end (1) or its start (-1): more of it, where there is more. */
  more(direction: 1 | -1): void {
    const { hits } = this;
    if (!hits || this.fetching) return;
    const next = direction > 0 ? hits.start + hits.hits.length : hits.start - 1;
    if (next >= 0 && next < hits.total) void this.fetchAround(next);
  }

  /** The stretch grows where the wanted hit is near; else it starts anew around that hit. */
  private fetchAround(wanted: number): Promise<void> {
    const { start, hits, total } = this.hits!;
    const end = start + hits.length;
    let offset = Math.max(0, Math.min(wanted, total - PAGE));
    let limit = PAGE;
    if (wanted >= end && wanted < end + PAGE) offset = end;
    else if (wanted < start && wanted >= start - PAGE) {
      offset = Math.max(0, start - PAGE);
      limit = start - offset;
    }
    const { epoch } = this;
    this.fetching = this.ask(offset, limit)
      .then((found) => {
        if (epoch === this.epoch && this.hits) this.set({ result: { at: 'ready', value: joined(this.hits, found, offset) } });
      })
      .catch((error: unknown) => {
        if (epoch === this.epoch) this.session.complain(error);
      })
      .finally(() => {
        this.fetching = null;
      });
    return this.fetching;
  }

  /** Jumps to a hit; the first one when none is marked. */
  take(index: number): void {
    const wanted = Math.max(index, 0);
    const hit = this.at(wanted);
    if (!hit) return;
    this.set({ active: wanted });
    void this.goTo(hit, wanted);
  }

  /** To a node that may be in the graph of another rank. */
  goToNode(rank: number, side: Side, name: string): Promise<void> {
    const { state } = this.session;
    return rank === state.rank ? this.session.goTo(side, name) : this.session.goToGraph(state.step, rank, name, side);
  }

  /** With the graph of another rank the list comes anew. */
  private async goTo(hit: NodeSummary, index: number): Promise<void> {
    const shown = this.session.state.rank;
    await this.goToNode(this.hits?.rank ?? shown, this.side, hit.name);
    if (this.session.state.rank !== shown) await this.mark(index);
  }

  /** To the next (1) or previous (-1) node of the list, which stays. */
  async walk(direction: 1 | -1): Promise<void> {
    const hit = await this.move(direction);
    if (hit) void this.goTo(hit, this.state.active);
  }

  /** One came to this hit by another way. */
  async mark(index: number): Promise<void> {
    const { epoch } = this;
    while (this.fetching) await this.fetching;
    if (epoch !== this.epoch || !this.hits || index >= this.hits.total) return;
    if (!this.at(index)) await this.fetchAround(index);
    if (epoch === this.epoch && this.at(index)) this.set({ active: index });
  }

  /** What is looked for, as a question about the next node; null where that is nothing. */
  asked(): { side: Side; q: string | undefined; level: string | undefined; leaf: 1 | undefined; sort: HitSort | undefined } | null {
    const { query, levels, leaves, open } = this.state;
    const q = open ? query.trim() : '';
    if (q === '' && levels.length === 0) return null;
    return { side: this.side, q: q || undefined, level: levels.join(',') || undefined, leaf: leaves ? 1 : undefined, sort: this.sort };
  }

  /** Shows the list as it was left; the next hit is one key away. */
  open(): void {
    this.set({ open: true });
  }

  close(): void {
    this.set({ open: false });
  }
}

/** A stretch with what was fetched beside it; another number of hits means that the graph has changed meanwhile. */
function joined(before: Hits, found: SearchResult, offset: number): Hits {
  const { total, hits } = found;
  if (total === before.total && offset === before.start + before.hits.length) {
    const all = [...before.hits, ...hits];
    const cut = Math.max(0, all.length - MOST_LISTED);
    return { ...found, start: before.start + cut, hits: all.slice(cut) };
  }
  if (total === before.total && offset + hits.length === before.start) return { ...found, start: offset, hits: [...hits, ...before.hits].slice(0, MOST_LISTED) };
  return { ...found, start: offset };
}
