// The Api of an exported page: the graphs are in the page, src/view/query/viewer_export.cc wrote them.
import type { Activations } from './activations';
import type { ExportedRun } from './exported_runs';
import type { ExportedTrend } from './exported_trends';
import { ApiError, NotHeld, type Api, type MatchApi, type SearchQuery, type SeekQuery } from './client';
import type { TensorPreview, TensorQuery } from './tensor';
import { modulePath } from './node_name';
import { parseSearch, type SearchTerms } from './search_terms';
import { LEVELS, type Children, type Config, type Counts, type ExchangePartner, type Findings, type FlowNeighbour, type GraphRef, type HitSort, type HistoryCell, type Layer, type Level, type Links, type MatrixCell, type NodeDetails, type NodeHistory, type NodeSummary, type OverflowLevel, type Precision, type Row, type Ruling, type Side, type Summary } from './types';
import type { Verdict } from './verdict';

type NodeRow = [name: string, label: number, type: 0 | 1 | 9, parent: number, level: number | null, overflow: number, partner: number, microStep: number, order: number, ruling: number, error?: number | 'inf'];
type EdgeRow = [node: number, input: number, from: number, output: number, confidence: number];

interface DetailRow {
  inputs: Row[];
  outputs: Row[];
  stack: string[];
  merge_info: string[];
  communication: NodeDetails['communication'];
  partners: ExchangePartner[];
  precision: Precision | null;
}

interface GraphData {
  step: number;
  rank: number;
  summary: Summary;
  findings: Findings;
  layers: { layers: Layer[] };
  activations?: Activations; // of single graphs
  npu: NodeRow[];
  bench: NodeRow[];
  dtypes?: { names: string[] } & Record<Side, number[]>; // a number a node: a bit for each name; pages of an earlier version have none
  npu_order: [number, number][];
  bench_order: [number, number][];
  flow: EdgeRow[] | null;
  details: Record<Side, Record<string, DetailRow>>;
  tensors: Record<Side, Record<string, Record<string, Record<string, TensorPreview>>>>; // by node, item and slice
}

export interface ExportedData {
  format: number;
  file: string; // '' when there are trends only
  size?: number;
  mtime?: number;
  trends?: ExportedTrend[];
  runs?: ExportedRun[];
  config: Config;
  verdict?: Verdict; // pages of an earlier version have none
  matrix: { cells: MatrixCell[] };
  graphs: GraphData[];
  nodes: number;
  details: number;
  tensors?: { saved: number; held: number };
}

const OVERFLOWS: (OverflowLevel | null)[] = [null, 'medium', 'high', 'critical'];
const RULED: (Ruling | null)[] = [null, 'bit-equal', 'round-off', 'rewritten', 'inherited', 'suspicious', 'bug'];
const MODULE = 0;
const COLLECTION = 9; // no op: in no count

/** One side of a graph with what can be worked out from its rows. */
class SideNodes {
  readonly byName = new Map<string, number>();
  readonly children: number[][] = [];
  readonly counts: Required<Counts>[] = [];
  root = 0;

  constructor(
    readonly rows: NodeRow[],
    private readonly compared: boolean,
  ) {
    rows.forEach(([name, , type, parent, level, overflow, , , , ruling], index) => {
      if (!this.byName.has(name)) this.byName.set(name, index);
      this.children.push([]);
      const op = type !== COLLECTION;
      this.counts.push({
        error: +(op && level === 1),
        warning: +(op && level === 0.5),
        unmatched: +(op && this.unmatched(index)),
        overflow: +(op && overflow > 0),
        suspicious: +(op && RULED[ruling] === 'suspicious'),
        bug: +(op && RULED[ruling] === 'bug'),
      });
      if (parent < 0) this.root = index;
    });
    rows.forEach(([, , , parent], index) => parent >= 0 && this.children[parent]?.push(index));
    this.addUp();
  }

  unmatched(index: number): boolean {
    return this.compared && this.rows[index]![6] < 0;
  }

  /** Without recursion: a chain of modules may be long. */
  private addUp(): void {
    const order = this.rows.length > 0 ? [this.root] : []; // of a run by itself there is no other side
    for (let i = 0; i < order.length; i++) for (const child of this.children[order[i]!]!) order.push(child);
    for (const index of order.reverse()) {
      const into = this.counts[this.rows[index]![3]];
      if (!into) continue;
      const own = this.counts[index]!;
      for (const key of ['error', 'warning', 'unmatched', 'overflow', 'suspicious', 'bug'] as const) into[key] += own[key];
    }
  }

  ancestors(index: number): number[] {
    const way: number[] = [];
    for (let at = this.rows[index]![3]; at >= 0 && way.length <= this.rows.length; at = this.rows[at]![3]) way.unshift(at);
    return way;
  }
}

function hasLevel(level: Level, unmatched: boolean, [, , , , precision, overflow, , , , ruling]: NodeRow): boolean {
  const ruled = RULED[ruling] ?? null;
  switch (level) {
    case 'pass':
      return precision === 0;
    case 'warning':
      return precision === 0.5;
    case 'error':
      return precision === 1;
    case 'unmatched':
      return unmatched;
    case 'none':
      return !unmatched && precision === null;
    case 'overflow':
      return overflow > 0;
    case 'unjudged':
      return !unmatched && ruled === null;
    case 'medium':
    case 'high':
    case 'critical':
      return OVERFLOWS[overflow] === level;
    default:
      return !unmatched && ruled === level;
  }
}

class ExportedGraph {
  readonly sides: Record<Side, SideNodes>;
  readonly given = new Map<number, EdgeRow[]>(); // edges by the node that gives
  readonly taken = new Map<number, EdgeRow[]>();

  constructor(
    readonly data: GraphData,
    readonly compared: boolean,
  ) {
    this.sides = { NPU: new SideNodes(data.npu, compared), Bench: new SideNodes(data.bench, compared) };
    for (const edge of data.flow ?? []) {
      put(this.taken, edge[0], edge);
      put(this.given, edge[2], edge);
    }
  }

  summary(side: Side, index: number): NodeSummary {
    const nodes = this.sides[side];
    const [name, label, type, , precision, overflow, partner, micro_step, order, ruling] = nodes.rows[index]!;
    const other = this.sides[side === 'NPU' ? 'Bench' : 'NPU'];
    return {
      name,
      label: name.slice(name.length - label),
      type,
      children: nodes.children[index]!.length,
      order,
      precision,
      overflow: OVERFLOWS[overflow] ?? null,
      verdict: RULED[ruling] ?? null,
      matched: other.rows[partner]?.[0] ?? null,
      micro_step,
      counts: nodes.counts[index]!,
    };
  }

  find(side: Side, name: string): number {
    const nodes = this.sides[side];
    const index = name === '' ? nodes.root : nodes.byName.get(name);
    if (index === undefined || !nodes.rows[index]) throw new ApiError(`no ${side} node ${name}`, 404);
    return index;
  }

  /** Of the pair; NaN where it is not known. */
  errorOf(side: Side, index: number): number {
    const at = side === 'NPU' ? index : this.sides.Bench.rows[index]![6];
    const error = this.sides.NPU.rows[at]?.[10];
    return error === 'inf' ? Infinity : (error ?? NaN);
  }

  /** What stands first where hits are sorted, by node; null: the order of execution. As src/view/search/hit_order.cc. */
  keysOf(side: Side, sort: HitSort | undefined): number[] | null {
    const { rows } = this.sides[side];
    if (sort === 'error') return rows.map((_, index) => -this.errorOf(side, index)).map((key) => (Number.isNaN(key) ? Infinity : key));
    if (sort !== 'module') return null;
    const numbers = new Map<string, number>();
    const modules = rows.map(([name, , type], index) => {
      const around = type === MODULE ? name : this.moduleAround(side, index);
      return around === null ? null : modulePath(around);
    });
    rows.forEach(([, , type], index) => type === MODULE && !numbers.has(modules[index]!) && numbers.set(modules[index]!, numbers.size));
    return modules.map((path) => (path === null ? numbers.size : numbers.get(path)!));
  }

  keeps(side: Side, index: number, levels: readonly Level[], terms: SearchTerms): boolean {
    const nodes = this.sides[side];
    const row = nodes.rows[index]!;
    const [name, , type] = row;
    const has = (level: Level) => type !== COLLECTION && hasLevel(level, nodes.unmatched(index), row);
    return (levels.length === 0 || levels.some(has)) && terms.keeps({ name, type, error: terms.asksErrors ? this.errorOf(side, index) : NaN, dtypes: terms.asksDtypes ? this.dtypesOf(side, index) : [], has });
  }

  private dtypesOf(side: Side, index: number): string[] {
    const { dtypes } = this.data;
    const bits = dtypes?.[side][index] ?? 0;
    return dtypes?.names.filter((_, bit) => (bits >> bit) & 1) ?? [];
  }

  /** Of an op the nearest module around it. */
  moduleAround(side: Side, index: number): string | null {
    const { rows } = this.sides[side];
    if (rows[index]![2] === MODULE) return null;
    for (let up = rows[index]![3]; up >= 0 && rows[up]![3] >= 0; up = rows[up]![3]) if (rows[up]![2] === MODULE) return rows[up]![0];
    return null;
  }

  /** The op that ran before (-1) or after (1). */
  beside(side: Side, index: number, direction: 1 | -1): NodeSummary | null {
    const nodes = this.sides[side];
    const runs = side === 'NPU' ? this.data.npu_order : this.data.bench_order;
    let run = runs.findIndex(([first, count]) => index >= first && index < first + count);
    if (run < 0) return null;
    for (let at = index + direction; ; at += direction) {
      const [first, count] = runs[run]!;
      if (at < first || at >= first + count) {
        run += direction;
        const next = runs[run];
        if (!next) return null;
        at = direction > 0 ? next[0] : next[0] + next[1] - 1;
      }
      const row = nodes.rows[at];
      if (!row) return null;
      if (nodes.children[at]!.length === 0 && row[2] !== COLLECTION) return this.summary(side, at);
    }
  }

  neighbour([node, input, from, output, confidence]: EdgeRow, givers: boolean): FlowNeighbour {
    const at = givers ? from : node;
    const path = this.sides.NPU.ancestors(at).slice(1);
    return { node: this.summary('NPU', at), path: path.map((up) => this.sides.NPU.rows[up]![0]), input, output, confidence };
  }
}

function put<T>(map: Map<number, T[]>, key: number, value: T): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** "0-3,8". */
function rangesOf(numbers: number[]): string {
  const ascending = [...new Set(numbers)].sort((a, b) => a - b);
  const starts = ascending.filter((number, i) => ascending[i - 1] !== number - 1);
  const ends = ascending.filter((number, i) => ascending[i + 1] !== number + 1);
  return starts.map((start, i) => (ends[i] === start ? `${start}` : `${start}-${ends[i]}`)).join(',');
}

/** By their keys, those that are alike as they ran. */
function inOrder(keys: number[] | null): (a: number, b: number) => number {
  return (a, b) => (!keys || keys[a] === keys[b] ? a - b : keys[a]! < keys[b]! ? -1 : 1);
}

const MOST_EDGES = 200;
const NO_DETAILS: DetailRow = { inputs: [], outputs: [], stack: [], merge_info: [], communication: null, partners: [], precision: null };

export class ExportedApi implements Api {
  readonly exported = true;
  private readonly graphs = new Map<string, ExportedGraph>();

  constructor(readonly data: ExportedData) {}

  /** Nothing can be kept here: the bar says so. */
  readonly matching: MatchApi = {
    state: async () => ({ revision: '', refusal: 'exported', problem: null, made: [], cancelled: [], configs: [] }),
    change: async () => {
      throw new ApiError('', 409, 'exported');
    },
    suggest: async () => [],
  };

  async files() {
    const { file, size = 0, mtime = 0, trends = [], runs = [] } = this.data;
    return { root: '', files: file ? [{ file, size, mtime }] : [], trends: trends.map(({ data: _, ...entry }) => entry), runs: runs.map(({ data: _, ...entry }) => entry), skipped: [] };
  }
  async config(file: string): Promise<Config> {
    if (file !== this.data.file) throw new ApiError(file, 404);
    const unique = (list: number[]) => [...new Set(list)].sort((a, b) => a - b);
    const { graphs, nodes, details, tensors } = this.data;
    return { ...this.data.config, steps: unique(graphs.map(({ step }) => step)), ranks: unique(graphs.map(({ rank }) => rank)), exported: { nodes, details, tensors } };
  }
  async verdict(): Promise<Verdict> {
    return this.data.verdict ?? { version: 0 };
  }
  async summary(ref: GraphRef) {
    return this.graph(ref).data.summary;
  }
  async children(ref: GraphRef, side: Side, name: string): Promise<Children> {
    const graph = this.graph(ref);
    const index = graph.find(side, name);
    return { node: graph.summary(side, index), children: graph.sides[side].children[index]!.map((child) => graph.summary(side, child)) };
  }
  async path(ref: GraphRef, side: Side, name: string) {
    const graph = this.graph(ref);
    const nodes = graph.sides[side];
    return [...nodes.ancestors(graph.find(side, name)).map((index) => nodes.rows[index]![0]), name];
  }
  async node(ref: GraphRef, side: Side, name: string): Promise<NodeDetails> {
    const graph = this.graph(ref);
    const index = graph.find(side, name);
    const own = graph.data.details[side][index];
    const { inputs, outputs, stack, merge_info, communication } = own ?? NO_DETAILS;
    const node = graph.summary(side, index);
    const details = { node, inputs, outputs, stack, merge_info, communication, ...(own ? {} : { left_out: true }) };
    if (node.matched === null) return { ...details, partner: null };
    const other: Side = side === 'NPU' ? 'Bench' : 'NPU';
    const partner = graph.find(other, node.matched);
    const found = graph.data.details[other][partner] ?? NO_DETAILS;
    return { ...details, partner: { side: other, node: graph.summary(other, partner), inputs: found.inputs, outputs: found.outputs, stack: found.stack, merge_info: found.merge_info } };
  }
  async search(ref: GraphRef, side: Side, { q, level, leaf, sort, offset = 0, limit = 200 }: SearchQuery) {
    const terms = parseSearch(q);
    const graph = this.graph(this.searched(ref, terms));
    const asked = terms.side ?? side;
    const hits = this.found(graph, asked, level, terms, leaf).sort(inOrder(graph.keysOf(asked, sort)));
    const listed = hits.slice(offset, offset + limit).map((index) => ({ ...graph.summary(asked, index), module: graph.moduleAround(asked, index) }));
    return { side: asked, rank: graph.data.rank, total: hits.length, hits: listed, words: terms.words };
  }
  async seek(ref: GraphRef, side: Side, { level, leaf, q = '', sort, from, direction }: SeekQuery) {
    const terms = parseSearch(q);
    const graph = this.graph(this.searched(ref, terms));
    const asked = terms.side ?? side;
    const order = inOrder(graph.keysOf(asked, sort));
    const hits = this.found(graph, asked, level, terms, leaf).sort(order);
    const start = from === undefined || graph.data.rank !== ref.rank ? null : graph.find(asked, from);
    const found = start === null ? -1 : direction > 0 ? hits.findIndex((index) => order(start, index) < 0) : hits.findLastIndex((index) => order(index, start) < 0);
    const at = found >= 0 ? found : direction > 0 ? 0 : hits.length - 1;
    const hit = hits[at];
    return { side: asked, rank: graph.data.rank, node: hit === undefined ? null : graph.summary(asked, hit), index: Math.max(at, 0), total: hits.length };
  }
  async links(ref: GraphRef, side: Side, name: string): Promise<Links> {
    const graph = this.graph(ref);
    const index = graph.find(side, name);
    const flow_known = side === 'NPU' && graph.data.flow !== null;
    const producers = (flow_known && graph.taken.get(index)) || [];
    const consumers = (flow_known && graph.given.get(index)) || [];
    const { partners, precision } = graph.data.details[side][index] ?? NO_DETAILS;
    return {
      previous: graph.beside(side, index, -1),
      next: graph.beside(side, index, 1),
      flow_known,
      producers: producers.slice(0, MOST_EDGES).map((edge) => graph.neighbour(edge, true)),
      consumers: consumers.slice(0, MOST_EDGES).map((edge) => graph.neighbour(edge, false)),
      producers_total: producers.length,
      consumers_total: consumers.length,
      partners,
      precision,
    };
  }
  async tensor(ref: GraphRef, { side, name, item, slice = 0 }: TensorQuery): Promise<TensorPreview> {
    const graph = this.graph(ref);
    const slices = graph.data.tensors[side][graph.find(side, name)]?.[item] ?? {};
    const found = slices[slice];
    if (!found) throw new NotHeld(item, Object.keys(slices).map(Number));
    return found;
  }
  async matrix() {
    return this.data.matrix.cells;
  }
  async history(file: string, side: Side, name: string): Promise<NodeHistory> {
    const cells: HistoryCell[] = [];
    for (const { step, rank } of this.data.graphs) {
      const graph = this.graph({ file, step, rank });
      const index = graph.sides[side].byName.get(name);
      if (index === undefined) continue;
      const { precision, overflow, verdict = null, matched } = graph.summary(side, index);
      const { error = null, units = null } = graph.data.details[side][index]?.precision ?? {};
      cells.push({ step, rank, matched: matched !== null, precision, overflow, verdict, error, units });
    }
    return { name, side, cells };
  }
  async findings(ref: GraphRef) {
    return this.graph(ref).data.findings;
  }
  async layers(ref: GraphRef) {
    return this.graph(ref).data.layers.layers;
  }

  async activations(ref: GraphRef): Promise<Activations> {
    const { activations } = this.graph(ref).data;
    if (!activations) throw new ApiError(`${ref.file} was exported without them`, 404);
    return activations;
  }

  /** The graph that a search is of. */
  private searched(ref: GraphRef, { rank }: SearchTerms): GraphRef {
    if (rank === null) return ref;
    const ranks = this.data.graphs.filter(({ step }) => step === ref.step).map((graph) => graph.rank);
    if (!ranks.includes(rank)) throw new ApiError(`rank: there is no rank ${rank} in this file: it has ${rangesOf(ranks)}`, 400);
    return { ...ref, rank };
  }

  private found(graph: ExportedGraph, side: Side, level: string | undefined, terms: SearchTerms, leaf: 1 | undefined): number[] {
    if (terms.asksErrors && !this.data.config.verdicts) throw new ApiError('error: no errors are known in this graph: compare two runs with msprobe graph_visualize', 400);
    if (terms.asksDtypes && !graph.data.dtypes?.[side].some(Boolean)) throw new ApiError('dtype: no dtypes are known in this graph: make it from a dump of statistics or tensors', 400);
    const named = level?.split(',') ?? [];
    const levels = LEVELS.filter((each) => named.includes(each));
    const found: number[] = [];
    const { rows, children } = graph.sides[side];
    for (let index = 0; index < rows.length; index++) {
      if (!(leaf && children[index]!.length > 0) && graph.keeps(side, index, levels, terms)) found.push(index);
    }
    return found;
  }

  private graph({ file, step, rank }: GraphRef): ExportedGraph {
    const key = `${step} ${rank}`;
    let graph = this.graphs.get(key);
    if (!graph) {
      const data = this.data.graphs.find((candidate) => candidate.step === step && candidate.rank === rank);
      if (!data || file !== this.data.file) throw new ApiError(`${file} has no graph of step ${step} rank ${rank}`, 404);
      graph = new ExportedGraph(data, this.data.config.graph_type === 'compare');
      this.graphs.set(key, graph);
    }
    return graph;
  }
}

const PACKED = 'H4sI'; // base64 of what gzip begins with

/** The graphs in the page; null in a page with a server. */
export async function readExported(text: string): Promise<ExportedData | null> {
  const packed = text.trim();
  if (!packed.startsWith(PACKED)) return null;
  const binary = atob(packed);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(stream).json()) as ExportedData;
}
