import type { Api } from '../api/client';
import type { TensorPreview, TensorQuery } from '../api/tensor';
import { OTHER, type GraphRef, type NodeDetails, type Side } from '../api/types';
import { Converter } from './convert';
import { failure } from './failure';
import { FileNotes } from './file_notes';
import { Finder } from './finder';
import { formatLink, keptOf, linkOf, modeFor, oneOfThese, placeOf, type Link } from './link';
import { BUSY, IDLE, LASTING, type Fault, type Load } from './load';
import { Matching } from './matching';
import type { SessionPort } from './port';
import { originOf, Problems } from './problems';
import type { Graph, State, Store } from './store';
import type { ColorMode } from './status';
import { strayedFrom } from './strayed';
import type { Tab } from './tabs';
import { isShown, ROOT, Tree, type TreeNode } from './tree';
import { parseTrendLink } from './trends';

export const CONVERT_HASH = '#convert';
const REFRESH_AT_ONCE = 8;
const PASSING_MS = 150; // a node that a held key passes by is no place to go back to

export type RevealListener = (side: Side, node: TreeNode) => void;

/** Everything the page can do. Answers that arrive after the user moved on are dropped (epochs). */
export class Session implements SessionPort {
  private graphEpoch = 0;
  private selectEpoch = 0;
  private readonly fetching = new Map<TreeNode, Promise<void>>();
  private readonly opened = new Set<Promise<unknown>>();
  private trendLink: string | null = null;
  private place = { at: '', since: 0 }; // what the address names
  private readonly revealListeners = new Set<RevealListener>();

  address = () => ''; // of what is shown, as the host has it
  checkPage: ((file: string) => string) | null = null; // the address of a table of acc_check as a page
  reportPage: ((file: string) => string) | null = null; // the address of the page that a tool has written
  readonly finder: Finder;
  readonly problems: Problems;
  readonly notes: FileNotes; // on the list of files
  readonly matching: Matching | null; // null: nothing can be written here
  readonly convert: Converter | null; // null: the host has no dumps

  constructor(
    readonly store: Store,
    readonly api: Api,
    private readonly onLink: (hash: string, entry: boolean) => void = () => {},
  ) {
    this.finder = new Finder(this, api);
    this.problems = new Problems(this, api);
    this.notes = new FileNotes(api);
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
    this.notes.forget();
    try {
      const value = await this.api.files();
      const { files, trends = [], runs = [], checks = [], reports = [] } = value;
      if (openLone && files.length + trends.length + runs.length === 1 && checks.length + reports.length === 0 && this.state.file === null) {
        const [graph, numbers, run] = [files[0], trends[0], runs[0]];
        if (run) this.openTrend({ file: run.file, run: {} }, `#${new URLSearchParams({ run: run.file })}`);
        else if (graph) void this.open({ file: graph.file });
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
    if (this.state.convert.open) this.leavePlace(CONVERT_HASH);
  }

  closeConvert(): void {
    const { trend } = this.state;
    this.convert?.close();
    if (trend) {
      const link = this.trendLink ?? `#${new URLSearchParams({ trend: trend.file })}`;
      return this.openTrend(parseTrendLink(link) ?? trend, link);
    }
    const link = linkOf(this.state);
    this.leavePlace(link ? formatLink(link) : '');
  }

  openConverted(file: string): void {
    this.convert?.close();
    this.convert?.again();
    void this.open({ file });
  }

  closeFile(): void {
    this.graphEpoch++;
    this.forget();
    this.store.set({ file: null, trend: null, config: null, strayed: null, verdict: IDLE, graph: IDLE });
    this.leavePlace('');
  }

  /** Statistics over steps instead of a graph. */
  openTrend(trend: NonNullable<State['trend']>, link?: string): void {
    this.graphEpoch++;
    this.forget();
    this.store.set({ file: null, config: null, strayed: null, verdict: IDLE, graph: IDLE, trend });
    this.trendLink = link ?? null;
    if (link !== undefined) this.leavePlace(link);
  }
  linkTrend(link: string): void {
    this.trendLink = link;
    this.onLink(link, false);
  }

  async open(link: Link): Promise<void> {
    const epoch = ++this.graphEpoch;
    const newFile = this.state.file !== link.file;
    const listed = this.state.search.open;
    this.forget();
    this.store.set({ file: link.file, trend: null, strayed: null, graph: BUSY, ...(newFile ? { config: null, verdict: BUSY, matrix: IDLE } : {}) });
    try {
      const [config] = await Promise.all([this.api.config(link.file), newFile && this.loadVerdict(link.file, epoch)]);
      if (epoch !== this.graphEpoch) return;
      // What begins in one graph is looked for there, unless the address names another.
      const origin = link.step === undefined && link.rank === undefined ? originOf(this.state) : null;
      const step = oneOfThese(config.steps, link.step ?? origin?.step);
      const rank = oneOfThese(config.ranks, link.rank ?? origin?.ranks[0]);
      const mode = modeFor(config, link, this.state.rules);
      this.store.set({ config, step, rank, microStep: -1, strayed: strayedFrom(link, config), ...(newFile ? { mode } : {}), ...(link.tab ? { tab: link.tab } : {}) });
      const graph = await this.fetchGraph({ file: link.file, step, rank }, config.graph_type === 'compare');
      if (epoch !== this.graphEpoch) return;
      this.store.set({ graph: { at: 'ready', value: graph } });
      if (link.microStep !== undefined && link.microStep < config.micro_steps) this.showMicroStep(link.microStep);
      if (link.filter) this.finder.search(link.filter, link.node === undefined || (listed && !newFile));
      this.loadOverview({ file: link.file, step, rank }, newFile);
      void this.matching?.reload();
      // The address keeps naming the node while the way to it is fetched: a reload in between must not lose it.
      this.writeLink({ ...link, step, rank });
      if (link.node) await this.goTo(link.side ?? 'NPU', link.node);
      else if (newFile && !link.filter) await this.showOrigin();
    } catch (error) {
      if (epoch === this.graphEpoch) this.store.set({ graph: failure(error) });
    }
  }

  private async loadVerdict(file: string, epoch: number): Promise<void> {
    const verdict = await this.api.verdict(file).then((value) => ({ at: 'ready' as const, value }), failure);
    if (epoch === this.graphEpoch) this.store.set({ verdict });
  }

  /** Opens the way to the op that it begins with; nothing is selected, so that the overview stays. */
  private async showOrigin(): Promise<void> {
    const here = this.problems.originHere();
    const epoch = this.graphEpoch;
    const ticket = this.selectEpoch;
    if (!here) return;
    try {
      const node = await this.uncover(here.side, here.name);
      if (!node || epoch !== this.graphEpoch || ticket !== this.selectEpoch) return;
      this.reveal(here.side, node);
      if (node.info.matched !== null) await this.showPartner(OTHER[here.side], node.info.matched, ticket);
    } catch (error) {
      if (epoch === this.graphEpoch) this.complain(error, 'node');
    }
  }

  /** What an earlier address named: the graph that is shown already stays open. */
  async revisit(link: Link): Promise<void> {
    const { file, step, rank, graph } = this.state;
    if (graph.at !== 'ready' || link.file !== file || (link.step ?? step) !== step || (link.rank ?? rank) !== rank) return this.open(link);
    if (link.tab) this.store.set({ tab: link.tab });
    if (link.node) await this.goTo(link.side ?? 'NPU', link.node);
    else this.clearSelection();
  }

  showStep(step: number): void {
    const { file, rank } = this.state;
    if (file) void this.open({ file, step, rank, ...keptOf(this.state) });
  }
  showRank(rank: number): void {
    const { file, step } = this.state;
    if (file) void this.open({ file, step, rank, ...keptOf(this.state) });
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
    const load = <K extends 'matrix' | 'findings' | 'layers' | 'activations'>(key: K, asked: Promise<Extract<State[K], { at: 'ready' }>['value']>) => {
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
    if (this.state.config?.graph_type !== 'build') return;
    this.store.set({ activations: BUSY });
    load('activations', this.api.activations(ref));
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
  async goToGraph(step: number, rank: number, node?: string, side: Side = 'NPU'): Promise<void> {
    const { file } = this.state;
    if (file) await this.open({ file, step, rank, filter: keptOf(this.state).filter, ...(node ? { side, node } : {}) });
  }

  private forget(): void {
    this.selectEpoch++;
    this.finder.forget();
    this.fetching.clear();
    const matching = { ...this.state.matching, picked: { NPU: null, Bench: null }, state: IDLE, busy: false, message: null, suggestions: [] };
    this.store.set({ selection: null, details: IDLE, links: IDLE, findings: IDLE, layers: IDLE, activations: IDLE, matching, notice: null });
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
      if (!node || epoch !== this.graphEpoch || ticket !== this.selectEpoch) return;
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
    else {
      const failed = failure(details.reason);
      this.store.set({ details: failed });
      if (LASTING.includes(failed.fault)) this.complain(details.reason); // of the whole page
    }
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

  /** The name highlighted on a side: the selected node's or its partner's; before any is selected, the origin's. */
  highlighted(side: Side): string | null {
    const at = this.state.selection ?? this.problems.originHere();
    if (!at) return null;
    if (at.side === side) return at.name;
    return this.tree(at.side)?.get(at.name)?.info.matched ?? this.matching?.shown(side) ?? null;
  }

  /** The highlight on the other side is that of a partner. */
  ownHighlight(side: Side): boolean {
    return (this.state.selection ?? this.problems.originHere())?.side === side;
  }

  // --- what panels ask for by themselves

  /** Of a node that is not selected. */
  detailsOf(side: Side, name: string): Promise<NodeDetails> {
    return this.api.node(this.ref(), side, name);
  }
  /** Null where the host cannot read the files of a dump. */
  tensor(query: TensorQuery): Promise<TensorPreview> | null {
    return this.api.tensor?.(this.ref(), query) ?? null;
  }
  get exported(): boolean {
    return this.api.exported === true; // a page without a server
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

  /** Each node is a place to go back to. */
  writeLink(link = linkOf(this.state)): void {
    if (!link) return;
    const at = placeOf(link);
    const now = Date.now();
    const entry = at !== this.place.at && now - this.place.since >= PASSING_MS;
    if (at !== this.place.at) this.place = { at, since: now };
    this.onLink(formatLink(link), entry);
  }

  /** To what is no graph. */
  private leavePlace(hash: string): void {
    this.place = { at: hash, since: 0 };
    this.onLink(hash, true);
  }
}
