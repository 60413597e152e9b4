import type { Api } from '../api/client';
import type { Level, NodeSummary, Side } from '../api/types';
import { originSide, type Story, type VerdictOrigin } from '../api/verdict';
import type { Finder } from './finder';
import type { SessionPort } from './port';
import type { State } from './store';
import type { TreeNode } from './tree';

interface Walker extends SessionPort {
  say(text: string): void;
  readonly finder: Finder;
  selectedNode(): TreeNode | undefined;
}

/** The answer for the whole file; null where it has none. */
export function storyOf({ verdict }: Pick<State, 'verdict'>): Story | null {
  return verdict.at === 'ready' && verdict.value.version === 1 ? verdict.value : null;
}

/** Where it begins, or where differences that add up show; null where nothing does. */
export function originOf(state: Pick<State, 'verdict'>): VerdictOrigin | null {
  const story = storyOf(state);
  return story?.outcome === 'origin' || story?.outcome === 'unknown' ? (story.origins[0] ?? null) : null;
}

/** What is wrong, and the way along it: the origin of the file first, then what else begins a difference, or what the rules mark. */
export class Problems {
  constructor(
    private readonly session: Walker,
    private readonly api: Api,
  ) {}

  /** The origin, where the graph that is shown holds it. */
  originHere(): { side: Side; name: string } | null {
    const { state } = this.session;
    const origin = originOf(state);
    if (!origin || (origin.step !== null && origin.step !== state.step)) return null;
    if (origin.ranks.length > 0 && !origin.ranks.includes(state.rank)) return null;
    return { side: originSide(origin), name: origin.op };
  }

  /** To the op that it begins with, in its own graph. */
  async goToOrigin(): Promise<void> {
    const { state } = this.session;
    const origin = originOf(state);
    if (!origin) return;
    const here = this.originHere();
    if (here) return this.session.goTo(here.side, here.name);
    this.session.goToGraph(origin.step ?? state.step, origin.ranks[0] ?? state.rank, origin.op, originSide(origin));
  }

  /** The selected node is it. */
  atOrigin(): boolean {
    const { selection } = this.session.state;
    const here = this.originHere();
    return here !== null && selection?.side === here.side && selection.name === here.name;
  }

  /**
   * What "first error" looks for: what begins a difference, by the rules errors, in a graph without any the warnings, in
   * overflow mode the overflows.
   */
  level(): Level | null {
    const { graph, mode } = this.session.state;
    if (graph.at !== 'ready') return null;
    const { npu, overflow, verdicts } = graph.value.summary;
    if (mode === 'verdict') return (['bug', 'suspicious', 'inherited'] as const).find((ruling) => verdicts?.[ruling]) ?? null;
    if (mode === 'overflow') {
      if (!overflow) return null;
      return overflow.critical ? 'critical' : overflow.high || overflow.medium ? 'overflow' : null;
    }
    return npu.error ? 'error' : npu.warning ? 'warning' : null;
  }

  /** What is walked: all that begins a difference; where only one node does, what inherits it, too. */
  private levels(): string | null {
    const { graph } = this.session.state;
    const level = this.level();
    if (graph.at !== 'ready' || (level !== 'bug' && level !== 'suspicious')) return level;
    const { verdicts } = graph.value.summary;
    return (verdicts?.bug ?? 0) + (verdicts?.suspicious ?? 0) > 1 ? 'bug,suspicious' : 'bug,suspicious,inherited';
  }

  async first(): Promise<void> {
    const { graph, mode } = this.session.state;
    if (originOf(this.session.state)) return this.goToOrigin();
    const level = this.level();
    if (graph.at !== 'ready' || !level) return;
    const { summary } = graph.value;
    const first = mode === 'overflow' ? summary.first_overflow : mode === 'precision' && level === 'error' ? summary.first_error : null;
    if (first) return this.session.goTo('NPU', first.name);
    return this.go(1, true);
  }

  /**
   * The next (1) or previous (-1) node that is wrong, or that the filter of the search keeps, seen from the selected
   * one. Without a filter the origin comes before the first of them.
   */
  async go(direction: 1 | -1, fromStart = false): Promise<void> {
    const { selection, graph } = this.session.state;
    const filter = this.session.finder.asked();
    const origin = filter ? null : originOf(this.session.state);
    if (origin && !selection) return this.goToOrigin();
    const level = filter ? filter.level : (this.levels() ?? undefined);
    if (!filter && !level) return origin ? this.goToOrigin() : undefined;
    const side = filter?.side ?? 'NPU';
    const leaving = origin !== null && this.atOrigin();
    const from = !fromStart && !leaving && selection?.side === side ? selection.name : undefined;
    const order = this.session.selectedNode()?.info.order;
    const ask = (start: string | undefined) => this.api.seek(this.session.ref(), side, { level, q: filter?.q, leaf: filter?.leaf, sort: filter?.sort, from: start, direction });
    try {
      let hit = await ask(from);
      if (leaving && hit.node && this.isOrigin(hit.node.name)) hit = await ask(hit.node.name); // it was the first stop
      if (this.session.state.graph !== graph || !hit.node) return;
      if (origin && !leaving && from !== undefined && order !== undefined && wrapped(hit.node, order, direction)) return this.goToOrigin();
      if (filter) void this.session.finder.mark(hit.index);
      await this.session.finder.goToNode(hit.rank, hit.side, hit.node.name);
      if (this.session.state.selection?.name === hit.node.name) this.session.say(`${hit.index + 1} / ${hit.total}`);
    } catch (error) {
      if (this.session.state.graph === graph) this.session.complain(error);
    }
  }

  private isOrigin(name: string): boolean {
    const here = this.originHere();
    return here?.side === 'NPU' && here.name === name;
  }
}

/** The list began again at its other end. */
function wrapped({ order }: NodeSummary, from: number, direction: 1 | -1): boolean {
  return direction > 0 ? order <= from : order >= from;
}
