import { ApiError, type MatchAction, type MatchApi, type MatchRequest } from '../api/client';
import { OTHER, REFUSALS, type GraphRef, type MatchChange, type NodeSummary, type PartnerSuggestion, type Refusal, type Side } from '../api/types';
import { failure } from './failure';
import { BUSY } from './load';
import type { SessionPort } from './port';
import type { MatchMessage, MatchPanel } from './store';

/** Matching by hand: two nodes are picked by selecting them, then matched or parted. The server keeps what was done. */
export class Matching {
  private ticket = 0;
  private last: Promise<void> = Promise.resolve(); // change

  constructor(
    private readonly session: SessionPort,
    private readonly api: MatchApi,
  ) {}

  private get panel(): MatchPanel {
    return this.session.state.matching;
  }

  private set(change: Partial<MatchPanel>): void {
    this.session.store.set({ matching: { ...this.panel, ...change } });
  }

  /** Only comparisons have something to match. */
  get possible(): boolean {
    return this.session.state.config?.graph_type === 'compare';
  }

  toggle(): void {
    if (this.panel.open) this.close();
    else this.open();
  }

  open(): void {
    if (!this.possible) return;
    this.set({ open: true, message: null, picked: { NPU: null, Bench: null }, suggestions: [] });
    const node = this.session.selectedNode();
    const { selection } = this.session.state;
    if (node && selection) this.pick(selection.side, node.info);
    void this.reload();
  }

  close(): void {
    this.set({ open: false, message: null, picked: { NPU: null, Bench: null }, suggestions: [] });
  }

  async reload(): Promise<void> {
    if (!this.panel.open) return;
    if (!this.possible) return this.close();
    const ticket = ++this.ticket;
    if (this.panel.state.at !== 'ready') this.set({ state: BUSY });
    const state = await this.api.state(this.session.ref()).then((value) => ({ at: 'ready' as const, value }), failure);
    if (ticket === this.ticket) this.set({ state });
  }

  /**
   * A node was selected: it takes its side's place, with its partner where it has one. A node of the other side that waits
   * for a partner keeps its place: what has one already is only looked at.
   */
  pick(side: Side, node: NodeSummary): void {
    if (!this.panel.open) return;
    const before = this.panel.picked[OTHER[side]];
    const waiting = before !== null && this.isFree(OTHER[side], before) ? before : null;
    if (waiting !== null && node.matched !== null) return this.set({ message: { kind: 'pending', values: { name: node.matched }, skipped: [] } });
    this.put(side, node.name, node.matched ?? waiting);
  }

  private put(side: Side, name: string, other: string | null): void {
    const { picked: before, message } = this.panel;
    const picked = side === 'NPU' ? { NPU: name, Bench: other } : { NPU: other, Bench: name };
    const same = picked.NPU === before.NPU && picked.Bench === before.Bench;
    this.set({ picked, message: same ? message : null, ...(same ? {} : { suggestions: [] }) });
    if (!same && other === null) void this.suggest(side, name);
  }

  /** Empties a place. */
  drop(side: Side): void {
    const left = this.panel.picked[OTHER[side]];
    this.set({ picked: { ...this.panel.picked, [side]: null }, message: null, suggestions: [] });
    if (left !== null && this.isFree(OTHER[side], left)) void this.suggest(OTHER[side], left);
  }

  /** What the other side has for a node that waits alone. */
  private async suggest(side: Side, name: string): Promise<void> {
    // Without an answer there are none: one can still pick.
    const suggestions = await this.api.suggest(this.session.ref(), side, name).catch(() => []);
    const { picked, open } = this.panel;
    if (open && picked[side] === name && picked[OTHER[side]] === null) this.set({ suggestions });
  }

  /** Shows a suggested node, which takes the free place. */
  async take(suggestion: PartnerSuggestion): Promise<void> {
    const free = this.panel.picked.NPU === null ? 'NPU' : 'Bench';
    await this.session.goTo(free, suggestion.node.name);
  }

  private isFree(side: Side, name: string): boolean {
    return this.session.tree(side)?.get(name)?.info.matched === null;
  }

  /** The name that is marked on a side beside the selection. */
  shown(side: Side): string | null {
    return this.panel.open ? this.panel.picked[side] : null;
  }

  /** What can be done with the two. */
  get action(): 'add' | 'remove' | null {
    const { open, picked, busy, state } = this.panel;
    if (!open || busy || state.at !== 'ready' || state.value.refusal || state.value.problem || !picked.NPU || !picked.Bench) return null;
    const npu = this.session.tree('NPU')?.get(picked.NPU)?.info;
    if (npu?.matched === picked.Bench) return 'remove';
    return this.isFree('NPU', picked.NPU) && this.isFree('Bench', picked.Bench) ? 'add' : null;
  }

  /** Matches or parts the two, whichever it can be. */
  async act(): Promise<void> {
    const { action } = this;
    const { NPU: npu, Bench: bench } = this.panel.picked;
    if (!action || !npu || !bench) return;
    await this.change(action, { npu, bench, descendants: this.panel.descendants });
  }

  /** How many changes can be taken back, and made again. */
  get depth(): { undo: number; redo: number } {
    const { state, busy } = this.panel;
    return state.at === 'ready' && !busy ? { undo: state.value.undo ?? 0, redo: state.value.redo ?? 0 } : { undo: 0, redo: 0 };
  }

  undo(): Promise<void> {
    return this.change('undo', {}, () => this.depth.undo > 0);
  }

  redo(): Promise<void> {
    return this.change('redo', {}, () => this.depth.redo > 0);
  }

  apply(config: string): Promise<void> {
    return this.change('apply', { config });
  }

  save(): Promise<void> {
    return this.change('save', {});
  }

  setDescendants(descendants: boolean): void {
    this.set({ descendants });
  }

  /** The two of a node, from its menu. */
  async actOn(side: Side, node: NodeSummary, partner: string): Promise<void> {
    const ref = this.session.ref();
    this.open();
    await this.reload();
    if (!this.shows(ref)) return;
    this.put(side, node.name, partner);
    await this.act();
  }

  private shows({ file, step, rank }: GraphRef): boolean {
    const now = this.session.ref();
    return now.file === file && now.step === step && now.rank === rank;
  }

  /** One after another: a change that began before the matches after the last one are known would be taken for somebody else's. */
  private change(action: MatchAction, request: MatchRequest, possible = () => true): Promise<void> {
    const ref = this.session.ref();
    const done = this.last.then(() => (this.shows(ref) && possible() ? this.send(action, request) : undefined));
    this.last = done.catch(() => undefined);
    return done;
  }

  private async send(action: MatchAction, request: MatchRequest): Promise<void> {
    const { session, panel } = this;
    const ref = session.ref();
    const revision = panel.state.at === 'ready' ? { revision: panel.state.value.revision } : {};
    this.set({ busy: true, message: null });
    let message: MatchMessage;
    try {
      message = doneMessage(action, await this.api.change(ref, action, { ...request, ...revision }));
    } catch (error) {
      message = failedMessage(error);
    }
    if (!this.shows(ref)) return;
    this.set({ busy: false, message });
    try {
      await Promise.all([this.reload(), action === 'save' || message.kind === 'failed' ? undefined : session.refresh()]);
    } catch (error) {
      message = failedMessage(error);
    }
    this.set({ message });
  }
}

function doneMessage(action: MatchAction, { changed, skipped_total, skipped, config }: MatchChange): MatchMessage {
  const kind = ({ add: 'made', remove: 'removed', apply: 'applied', save: 'saved', undo: 'undone', redo: 'redone' } as const)[action];
  return { kind, values: { count: changed, left: skipped_total, config: config ?? '' }, skipped };
}

function failedMessage(error: unknown): MatchMessage {
  const reason = error instanceof ApiError ? error.reason : null;
  const kind = REFUSALS.find((known) => known === reason) as Refusal | undefined;
  return { kind: kind ?? 'failed', values: { text: failure(error).error }, skipped: [] };
}
