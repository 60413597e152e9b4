import { ApiError, type MatchAction, type MatchApi, type MatchRequest } from '../api/client';
import { REFUSALS, type MatchChange, type NodeSummary, type Refusal, type Side } from '../api/types';
import { failure } from './failure';
import { OTHER, type Session } from './session';
import { BUSY, type MatchMessage, type MatchPanel } from './store';

/** Matching by hand: two nodes are picked by selecting them, then matched or parted. The server keeps what was done. */
export class Matching {
  private ticket = 0;

  constructor(
    private readonly session: Session,
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
    this.set({ open: true, message: null, picked: { NPU: null, Bench: null } });
    const node = this.session.selectedNode();
    const { selection } = this.session.state;
    if (node && selection) this.pick(selection.side, node.info);
    void this.reload();
  }

  close(): void {
    this.set({ open: false, message: null, picked: { NPU: null, Bench: null } });
  }

  async reload(): Promise<void> {
    if (!this.panel.open) return;
    if (!this.possible) return this.close();
    const ticket = ++this.ticket;
    if (this.panel.state.at !== 'ready') this.set({ state: BUSY });
    const state = await this.api.state(this.session.ref()).then((value) => ({ at: 'ready' as const, value }), failure);
    if (ticket === this.ticket) this.set({ state });
  }

  /** A node was selected: it takes its side's place, with its partner where it has one. */
  pick(side: Side, node: NodeSummary): void {
    if (!this.panel.open) return;
    const before = this.panel.picked[OTHER[side]];
    const other = node.matched ?? (before !== null && this.isFree(OTHER[side], before) ? before : null);
    const picked = side === 'NPU' ? { NPU: node.name, Bench: other } : { NPU: other, Bench: node.name };
    const same = picked.NPU === this.panel.picked.NPU && picked.Bench === this.panel.picked.Bench;
    this.set({ picked, message: same ? this.panel.message : null });
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
    const { file, step, rank } = this.session.ref();
    this.open();
    await this.reload();
    const now = this.session.ref();
    if (now.file !== file || now.step !== step || now.rank !== rank) return;
    this.set({ picked: side === 'NPU' ? { NPU: node.name, Bench: partner } : { NPU: partner, Bench: node.name } });
    await this.act();
  }

  private async change(action: MatchAction, request: MatchRequest): Promise<void> {
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
    const now = session.ref();
    if (now.file !== ref.file || now.step !== ref.step || now.rank !== ref.rank) return;
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
  const kind = ({ add: 'made', remove: 'removed', apply: 'applied', save: 'saved' } as const)[action];
  return { kind, values: { count: changed, left: skipped_total, config: config ?? '' }, skipped };
}

function failedMessage(error: unknown): MatchMessage {
  const reason = error instanceof ApiError ? error.reason : null;
  const kind = REFUSALS.find((known) => known === reason) as Refusal | undefined;
  return { kind: kind ?? 'failed', values: { text: failure(error).error }, skipped: [] };
}
