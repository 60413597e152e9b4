import type { Api } from '../api/client';
import type { TensorPreview, TensorQuery } from '../api/tensor';
import type { GraphRef, Level, Side } from '../api/types';
import { Converter } from './convert';
import { failure } from './failure';
import { Finder } from './finder';
import { formatLink, linkOf, type Link, type Tab } from './link';
import { Matching } from './matching';
import { BUSY, IDLE, type Fault, type Graph, type Load, type State, type Store } from './store';
import type { ColorMode } from './status';
import { isShown, ROOT, Tree, type TreeNode } from './tree';
import { parseTrendLink } from './trends';

export const OTHER: Record<Side, Side> = { NPU: 'Bench', Bench: 'NPU' };
export const CONVERT_HASH = '#convert';
const REFRESH_AT_ONCE = 8;

export type RevealListener = (side: Side, node: TreeNode) => void;

/** Everything the page can do. Answers that arrive after the user moved on are dropped (epochs). */
export class Session {
  private graphEpoch = 0;
  private selectEpoch = 0;
  private readonly fetching = new Map<TreeNode, Promise<void>>();
  private readonly opened = new Set<Promise<unknown>>();
  private trendLink: string | null = null;
  private readonly revealListeners = new Set<RevealListener>();

  address = () => ''; // of what is shown, as the host has it
  readonly finder: Finder;
  readonly matching: Matching | null; // null: nothing can be written here
  readonly convert: Converter | null; // null: the host has no dumps

  constructor(
    readonly store: Store,
    private readonly api: Api,
    private readonly onLink: (hash: string, newFile: boolean) => void = () => {},
  ) {
    this.finder = new Finder(this, api);
    this.matching = api.matching ? new Matching(this, api.matching) : null;
    this.convert = api.conversions ? new Converter(store, api.conversions, () => void this.loadFiles()) : null;
  }

  get state(): State {
    return this.store.get();
  }

  /** A pane listens, to scroll the node into view. */
  onReveal(listener: RevealListener): () => void {
    this.revealListeners.add(listener);
    return () => this.revealListeners.delete(listener);
  }

  tree(side: Side): Tree | null {
    const { graph } = this.state;
    return graph.at === 'ready' ? graph.value.trees[side] : null;
  }

  // --- files and graphs

  /** `openLone`: with a single file there is nothing to choose, and no list is drawn first. */
  async loadFiles(openLone = false): Promise<void> {
    this.store.set({ files: BUSY });
    try {
      const value = await this.api.files();
      const { files, trends = [] } = value;
      if (openLone && files.length + trends.length === 1 && this.state.file === null) {
        const [graph, numbers] = [files[0], trends[0]];
        if (graph) void this.open({ file: graph.file });
        else if (numbers) this.openTrend({ file: numbers.file }, `#${new URLSearchParams({ trend: numbers.file })}`);
      }
      this.store.set({ files: { at: 'ready', value } });
    } catch (error) {
      this.store.set({ files: failure(error) });
    }
  }

  /** Beside the graph, which stays as it is. */
  openConvert(): void {
    this.convert?.open();
    if (this.state.convert.open) this.onLink(CONVERT_HASH, true);
  }

  closeConvert(): void {
    const { trend } = this.state;
    this.convert?.close();
    if (trend) {
      const link = this.trendLink ?? `#${new URLSearchParams({ trend: trend.file })}`;
      return this.openTrend(parseTrendLink(link) ?? trend, link);
    }
    const link = linkOf(this.state);
    this.onLink(link ? formatLink(link) : '', true);
  }

  openConverted(file: string): void {
    this.convert?.close();
    this.convert?.again();
    void this.open({ file });
  }

  closeFile(): void {
    this.graphEpoch++;
    this.forget();
    this.store.set({ file: null, trend: null, config: null, graph: IDLE });
    this.onLink('', true);
  }

  /** Statistics over steps instead of a graph. */
  openTrend(trend: NonNullable<State['trend']>, link?: string): void {
    this.graphEpoch++;
    this.forget();
    this.store.set({ file: null, config: null, graph: IDLE, trend });
    this.trendLink = link ?? null;
    if (link !== undefined) this.onLink(link, true);
  }
  linkTrend(link: string): void {
    this.trendLink = link;
    this.onLink(link, false);
  }

  async open(link: Link): Promise<void> {
    const epoch = ++this.graphEpoch;
    const newFile = this.state.file !== link.file;
    this.forget();
    this.store.set({ file: link.file, trend: null, graph: BUSY, ...(newFile ? { config: null, matrix: IDLE } : {}) });
    try {
      const config = await this.api.config(link.file);
      if (epoch !== this.graphEpoch) return;
      const step = pick(config.steps, link.step);
      const rank = pick(config.ranks, link.rank);
      const mode = config.overflow_check && (link.overflow || config.graph_type === 'build') ? 'overflow' : 'precision';
      this.store.set({ config, step, rank, microStep: -1, ...(newFile ? { mode } : {}), ...(link.tab ? { tab: link.tab } : {}) });
      const graph = await this.fetchGraph({ file: link.file, step, rank }, config.graph_type === 'compare');
      if (epoch !== this.graphEpoch) return;
      this.store.set({ graph: { at: 'ready', value: graph } });
      if (link.microStep !== undefined && link.microStep < config.micro_steps) this.showMicroStep(link.microStep);
      if (link.filter) this.finder.search(link.filter, link.node === undefined);
      this.loadOverview({ file: link.file, step, rank }, newFile);
      void this.matching?.reload();
      // The address keeps naming the node while the way to it is fetched: a reload in between must not lose it.
      this.onLink(formatLink({ ...link, step, rank }), newFile);
      if (link.node) await this.goTo(link.side ?? 'NPU', link.node);
    } catch (error) {
      if (epoch === this.graphEpoch) this.store.set({ graph: failure(error) });
    }
  }

  showStep(step: number): void {
    const { file, rank } = this.state;
    if (file) void this.open({ file, step, rank, ...this.selectedLink() });
  }
  showRank(rank: number): void {
    const { file, step } = this.state;
    if (file) void this.open({ file, step, rank, ...this.selectedLink() });
  }
  showMicroStep(microStep: number): void {
    this.store.set({ microStep });
    for (const side of ['NPU', 'Bench'] as const) this.tree(side)?.showMicroStep(microStep);
    this.writeLink();
  }

  private async fetchGraph(ref: GraphRef, compared: boolean): Promise<Graph> {
    const [summary, npu, bench] = await Promise.all([
      this.api.summary(ref),
      this.api.children(ref, 'NPU', ROOT),
      compared ? this.api.children(ref, 'Bench', ROOT) : null,
    ]);
    const build = (side: Side, answer: typeof npu) => {
      const tree = new Tree(side, answer.node);
      tree.attach(tree.root, answer.children);
      tree.setOpen(tree.root, true);
      tree.onChange(() => this.store.set({ revision: this.state.revision + 1 }));
      return tree;
    };
    return { summary, trees: { NPU: build('NPU', npu), Bench: bench && build('Bench', bench) } };
  }

  /** What is shown before any node; each part appears when it is there. */
  private loadOverview(ref: GraphRef, newFile: boolean): void {
    const epoch = this.graphEpoch;
    const load = <K extends 'matrix' | 'findings' | 'layers'>(key: K, asked: Promise<Extract<State[K], { at: 'ready' }>['value']>) => {
      const put = (loaded: Load<unknown>) => epoch === this.graphEpoch && this.store.set({ [key]: loaded } as Pick<State, K>);
      asked.then(
        (value) => put({ at: 'ready', value }),
        (error: unknown) => put(failure(error)),
      );
    };
    this.store.set({ findings: BUSY, layers: BUSY });
    if (newFile || this.state.matrix.at !== 'ready') load('matrix', this.api.matrix(ref.file));
    load('findings', this.api.findings(ref));
    load('layers', this.api.layers(ref));
  }

  /** Everything that depends on matches anew; what is open stays open. */
  async refresh(): Promise<void> {
    const { graph } = this.state;
    if (graph.at !== 'ready') return;
    const epoch = this.graphEpoch;
    const ref = this.ref();
    const { trees } = graph.value;
    const work: (() => Promise<void>)[] = [];
    for (const side of ['NPU', 'Bench'] as const) {
      for (const node of trees[side]?.loaded() ?? []) {
        work.push(async () => {
          const answer = await this.api.children(ref, side, node.info.name);
          if (epoch === this.graphEpoch) trees[side]?.update(answer.node, answer.children);
        });
      }
    }
    const some = async () => {
      for (let next = work.pop(); next && epoch === this.graphEpoch; next = work.pop()) await next();
    };
    const [summary] = await Promise.all([this.api.summary(ref), ...Array.from({ length: REFRESH_AT_ONCE }, some)]);
    if (epoch !== this.graphEpoch) return;
    this.store.set({ graph: { at: 'ready', value: { trees, summary } }, revision: this.state.revision + 1 });
    this.loadOverview(ref, true);
    const { selection } = this.state;
    const node = this.selectedNode();
    if (selection && node) await this.select(selection.side, node);
  }

  /** To a node of another rank or step, or to that graph as a whole. */
  goToGraph(step: number, rank: number, node?: string): void {
    const { file } = this.state;
    if (file) void this.open({ file, step, rank, ...(node ? { side: 'NPU' as const, node } : {}) });
  }

  private forget(): void {
    this.selectEpoch++;
    this.finder.forget();
    this.fetching.clear();
    const matching = { ...this.state.matching, picked: { NPU: null, Bench: null }, state: IDLE, busy: false, message: null };
    this.store.set({ selection: null, details: IDLE, links: IDLE, findings: IDLE, layers: IDLE, matching, notice: null });
  }

  ref(): GraphRef {
    const { file, step, rank } = this.state;
    return { file: file ?? '', step, rank };
  }

  // --- the trees

  private async loadKids(side: Side, node: TreeNode): Promise<void> {
    if (node.kids || !node.info.children) return;
    let running = this.fetching.get(node);
    if (!running) {
      const tree = this.tree(side);
      running = this.api.children(this.ref(), side, node.info.name).then((answer) => tree?.attach(node, answer.children));
      this.fetching.set(node, running);
      running.finally(() => this.fetching.delete(node)).catch(() => {});
    }
    await running;
  }

  toggle(side: Side, node: TreeNode): Promise<void> {
    return this.setOpen(side, node, !node.open);
  }

  async setOpen(side: Side, node: TreeNode, open: boolean): Promise<void> {
    const epoch = this.graphEpoch;
    try {
      const { sync } = this.state;
      const work = [this.setOneOpen(side, node, open)];
      if (sync && node.info.matched !== null) work.push(this.openPartner(OTHER[side], node.info.matched, open));
      const all = Promise.all(work);
      this.opened.add(all);
      await all.finally(() => this.opened.delete(all));
    } catch (error) {
      if (epoch === this.graphEpoch) this.complain(error);
    }
  }

  /** Until everything that is being opened is there, or has failed; null when nothing is. */
  opening(): Promise<unknown> | null {
    return this.opened.size > 0 ? Promise.allSettled(this.opened) : null;
  }

  private async setOneOpen(side: Side, node: TreeNode, open: boolean): Promise<void> {
    const tree = this.tree(side);
    if (open) await this.loadKids(side, node);
    tree?.setOpen(node, open);
  }

  private async openPartner(side: Side, name: string, open: boolean): Promise<void> {
    const tree = this.tree(side);
    if (!tree) return;
    // A partner that is not on the page yet has nothing to close.
    const partner = tree.get(name) ?? (open ? await this.uncover(side, name) : undefined);
    if (partner && partner.open !== open) await this.setOneOpen(side, partner, open);
  }

  collapseAll(): void {
    for (const side of ['NPU', 'Bench'] as const) this.tree(side)?.closeAll();
  }

  /** Opens every ancestor of a node, fetching what is missing. */
  private async uncover(side: Side, name: string): Promise<TreeNode | undefined> {
    const tree = this.tree(side);
    if (!tree) return undefined;
    let node = tree.get(name);
    if (!node || !isShown(node)) {
      const path = await this.api.path(this.ref(), side, name);
      for (const ancestor of path.slice(0, -1)) {
        const at = tree.get(ancestor);
        if (at) await this.setOneOpen(side, at, true);
      }
      node = tree.get(name);
    }
    if (node && !isShown(node)) return undefined;
    if (node && !this.inMicroStep(node)) this.showMicroStep(-1);
    return node;
  }

  private inMicroStep(node: TreeNode): boolean {
    const { microStep } = this.state;
    let top = node;
    while (top.parent?.parent) top = top.parent;
    return microStep < 0 || !top.parent || top.info.micro_step === microStep;
  }

  // --- selection

  /** Opens the way to a node, selects it and brings it into view on both sides. */
  async goTo(side: Side, name: string): Promise<void> {
    const epoch = this.graphEpoch;
    const ticket = ++this.selectEpoch;
    try {
      const node = await this.uncover(side, name);
      if (epoch !== this.graphEpoch || ticket !== this.selectEpoch) return;
      if (!node) return;
      const shown = this.select(side, node);
      this.reveal(side, node);
      await shown;
    } catch (error) {
      if (epoch === this.graphEpoch) this.complain(error, 'node');
    }
  }

  async select(side: Side, node: TreeNode): Promise<void> {
    const epoch = ++this.selectEpoch;
    const { name, matched } = node.info;
    const asked = this.api.node(this.ref(), side, name); // under way before anything is drawn
    this.store.set({ selection: { side, name }, details: BUSY, links: BUSY, notice: null });
    this.matching?.pick(side, node.info);
    const [details] = await Promise.allSettled([asked, matched === null ? undefined : this.showPartner(OTHER[side], matched, epoch)]);
    if (epoch !== this.selectEpoch) return;
    this.writeLink();
    void this.loadLinks(side, name, epoch);
    if (details.status === 'fulfilled') this.store.set({ details: { at: 'ready', value: details.value } });
    else this.store.set({ details: failure(details.reason) });
  }

  private async loadLinks(side: Side, name: string, epoch: number): Promise<void> {
    const links = await this.api.links(this.ref(), side, name).then((value) => ({ at: 'ready' as const, value }), failure);
    if (epoch === this.selectEpoch) this.store.set({ links });
  }

  /** To the op that ran before or after the selected node. */
  goAlong(direction: 1 | -1): void {
    const { links, selection } = this.state;
    const found = links.at === 'ready' ? (direction > 0 ? links.value.next : links.value.previous) : null;
    if (found && selection) void this.goTo(selection.side, found.name);
  }

  private async showPartner(side: Side, name: string, epoch: number): Promise<void> {
    if (!this.tree(side)) return;
    const partner = await this.uncover(side, name);
    if (partner && epoch === this.selectEpoch) this.reveal(side, partner);
  }

  clearSelection(): void {
    this.selectEpoch++;
    this.store.set({ selection: null, details: IDLE, links: IDLE });
    this.writeLink();
  }

  private reveal(side: Side, node: TreeNode): void {
    for (const listener of this.revealListeners) listener(side, node);
  }

  selectedNode(): TreeNode | undefined {
    const { selection } = this.state;
    return selection ? this.tree(selection.side)?.get(selection.name) : undefined;
  }

  /** The name highlighted on a side: the selected node's, or its partner's. */
  highlighted(side: Side): string | null {
    const { selection } = this.state;
    if (!selection) return null;
    if (selection.side === side) return selection.name;
    return this.selectedNode()?.info.matched ?? this.matching?.shown(side) ?? null;
  }

  // --- problems

  /** What "first error" looks for: errors, in a graph without any the warnings, in overflow mode the overflows. */
  problemLevel(): Level | null {
    const { graph, mode } = this.state;
    if (graph.at !== 'ready') return null;
    const { npu, overflow } = graph.value.summary;
    if (mode === 'overflow') {
      if (!overflow) return null;
      return overflow.critical ? 'critical' : overflow.high || overflow.medium ? 'overflow' : null;
    }
    return npu.error ? 'error' : npu.warning ? 'warning' : null;
  }

  async goToFirstProblem(): Promise<void> {
    const { graph, mode } = this.state;
    const level = this.problemLevel();
    if (graph.at !== 'ready' || !level) return;
    const { summary } = graph.value;
    const first = mode === 'overflow' ? summary.first_overflow : level === 'error' ? summary.first_error : null;
    if (first) return this.goTo('NPU', first.name);
    return this.goToProblem(1, true);
  }

  /** The next (1) or previous (-1) node that is wrong, or that the filter of the search keeps, seen from the selected one. */
  async goToProblem(direction: 1 | -1, fromStart = false): Promise<void> {
    const { search, selection } = this.state;
    const filter = search.levels.join(',');
    const level = filter || this.problemLevel();
    if (!level) return;
    const side = filter ? search.side : 'NPU';
    const epoch = this.graphEpoch;
    try {
      const from = !fromStart && selection?.side === side ? selection.name : undefined;
      const { node, index, total } = await this.api.seek(this.ref(), side, { level, leaf: filter && search.leaves ? 1 : undefined, from, direction });
      if (epoch !== this.graphEpoch || !node) return;
      await this.goTo(side, node.name);
      if (epoch === this.graphEpoch) this.say(`${index + 1} / ${total}`);
    } catch (error) {
      if (epoch === this.graphEpoch) this.complain(error);
    }
  }

  /** Null where the host cannot read the files of a dump. */
  tensor(query: TensorQuery): Promise<TensorPreview> | null {
    return this.api.tensor?.(this.ref(), query) ?? null;
  }
  /** A page without a server. */
  get exported(): boolean {
    return this.api.exported === true;
  }

  // --- small things

  /** Which colours are shown, which tab of the details. */
  show(view: { mode?: ColorMode; tab?: Tab }): void {
    this.store.set(view);
    this.writeLink();
  }

  say(text: string): void {
    this.store.set({ notice: { text, fault: null } });
  }

  /** `absent` is what the server's "not found" is about. */
  complain(error: unknown, absent: Fault = 'file'): void {
    const { fault, error: text } = failure(error);
    this.store.set({ notice: { text, fault: fault === 'file' ? absent : fault } });
  }

  private selectedLink(): Pick<Link, 'side' | 'node'> {
    const { selection } = this.state;
    return selection ? { side: selection.side, node: selection.name } : {};
  }

  writeLink(): void {
    const link = linkOf(this.state);
    if (link) this.onLink(formatLink(link), false);
  }
}

function pick(list: number[], wanted: number | undefined): number {
  return wanted !== undefined && list.includes(wanted) ? wanted : (list[0] ?? 0);
}
