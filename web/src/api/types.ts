// What the server says; docs/page_api.md is the contract.

export type Side = 'NPU' | 'Bench';
export const OTHER: Record<Side, Side> = { NPU: 'Bench', Bench: 'NPU' };
export const OVERFLOW_LEVELS = ['medium', 'high', 'critical'] as const;
export type OverflowLevel = (typeof OVERFLOW_LEVELS)[number];
/** What the ruler says of a node, worst first. */
export const RULINGS = ['bug', 'suspicious', 'inherited', 'rewritten', 'round-off', 'bit-equal'] as const;
export type Ruling = (typeof RULINGS)[number];
/** Orders of the list of hits. */
export const HIT_SORTS = ['execution', 'error', 'module'] as const;
export type HitSort = (typeof HIT_SORTS)[number];
export const LEVELS = ['error', 'warning', 'pass', 'unmatched', 'none', 'overflow', ...OVERFLOW_LEVELS, ...RULINGS, 'unjudged'] as const;
export type Level = (typeof LEVELS)[number];

export interface FileEntry {
  file: string;
  size: number;
  mtime: number;
}

export interface FileList {
  root: string;
  files: FileEntry[];
  trends?: FileEntry[]; // statistics over steps; a page without a server has none
  checks?: FileEntry[]; // tables of acc_check, which the server shows as pages
  runs?: (FileEntry & { ranks: number })[]; // of a monitor
  reports?: ReportEntry[];
  dumps?: DumpEntry[];
  skipped: { file: string; reason: string }[];
}

export type Outcome = 'origin' | 'equal' | 'round_off' | 'unknown';

/** A page that a tool has written, and what it concludes. */
export interface ReportEntry extends FileEntry {
  kind: string; // compare, doctor, curves, configuration, checkpoints, certificate, laboratory
  outcome: Outcome;
  headline: { en: string; zh: string };
}

/** A recorded run, of which a graph can be built. */
export interface DumpEntry extends FileEntry {
  steps: number;
  ranks: number;
}

export interface Config {
  graph_type: 'build' | 'compare';
  task: string;
  micro_steps: number;
  overflow_check: boolean;
  verdicts?: boolean; // the ruler judges the nodes of this file
  colors: Record<string, { value: number[]; description: string; accuracy_level: string }> | null;
  tool_tip: Record<string, string> | null;
  ranks: number[];
  steps: number[];
  target?: string; // paths of the dumps, "" where the file does not say
  golden?: string;
  exported?: { nodes: number; details: number; tensors?: { saved: number; held: number } | undefined }; // of a page without a server: nodes, and those whose figures it holds
}

export interface Counts {
  error: number;
  warning: number;
  unmatched: number;
  overflow?: number;
  suspicious?: number; // where a difference begins
  bug?: number;
}

export interface NodeSummary {
  name: string;
  label: string;
  type: 0 | 1 | 9;
  children: number;
  order: number;
  precision: number | null;
  overflow: OverflowLevel | null;
  verdict?: Ruling | null; // of a target node, where the file judges
  matched: string | null;
  micro_step: number;
  counts: Counts;
}

export interface SideTotals {
  nodes: number;
  pass: number;
  warning: number;
  error: number;
  unmatched: number;
  none: number;
}

export interface Summary {
  npu: SideTotals;
  bench: SideTotals | null;
  verdicts?: Record<Ruling | 'unjudged', number> | null; // of target nodes with a partner
  first_error: NodeSummary | null;
  first_warning?: NodeSummary | null;
  overflow?: Record<OverflowLevel, number>;
  first_overflow?: NodeSummary | null;
}

export interface Children {
  node: NodeSummary;
  children: NodeSummary[];
}

export interface Row {
  name: string;
  values: Record<string, string>;
}

export interface Partner {
  side: Side;
  node: NodeSummary;
  inputs: Row[];
  outputs: Row[];
  stack: string[];
  merge_info?: string[];
}

export interface NodeDetails {
  node: NodeSummary;
  inputs: Row[];
  outputs: Row[];
  stack: string[];
  merge_info: string[];
  communication?: Communication | null;
  left_out?: boolean; // of an exported page, for its size
  partner: Partner | null;
}

/** Why nodes are not matched, or a match is not cancelled. */
export const REFUSALS = ['single', 'tensor', 'taken', 'types', 'absent', 'not_matched', 'stale', 'nothing', 'no_change', 'exported'] as const;
export type Refusal = (typeof REFUSALS)[number];

/** Matches made by hand in the graph of a rank at a step. */
export interface MatchState {
  revision: string;
  refusal: Refusal | null; // why nothing can be matched in this file
  problem: string | null; // with the file that keeps the matches
  made: [npu: string, bench: string][];
  cancelled: string[]; // NPU nodes
  configs: string[]; // configuration files beside the graph file
  undo?: number; // changes that can be taken back
  redo?: number;
}

/** What could be matched with a node that has no partner. */
export interface PartnerSuggestion {
  node: NodeSummary;
  name_likeness: number; // 0 to 1
  same_place: boolean; // what they stand in are partners
  same_shapes: boolean | null; // null: not known
}

export interface MatchChange {
  changed: number;
  skipped_total: number;
  skipped: { npu: string; bench: string; reason: Refusal }[];
  config: string | null; // the file that was written
}

export interface SearchHit extends NodeSummary {
  module?: string | null; // of an op the module around it
}

export interface SearchResult {
  side: Side; // the one that was asked for, unless the search names another
  rank: number; // likewise
  total: number;
  hits: SearchHit[];
  words: string[]; // what to mark in the names, in lower case
}

export interface GraphRef {
  file: string;
  step: number;
  rank: number;
}

/** What files of the earlier tool say about the other ranks. */
export interface Communication {
  communications_type: string;
  nodes_info: Record<string, [string, string]>; // rank -> precision, node
}

export interface SeekHit {
  side: Side; // as of a search
  rank: number; // likewise
  node: NodeSummary | null;
  index: number;
  total: number;
}

/** Of a rank at a step. */
export interface MatrixCell {
  step: number;
  rank: number;
  nodes: number;
  error: number;
  warning: number;
  unmatched: number;
  medium: number;
  high: number;
  critical: number;
  bug?: number;
  suspicious?: number;
  inherited?: number;
}

/** One node in the graph of a rank at a step. */
export interface HistoryCell {
  step: number;
  rank: number;
  matched: boolean;
  precision: number | null;
  overflow: OverflowLevel | null;
  verdict: Ruling | null;
  error: Measure;
  units: Measure;
}

/** One node over all graphs of a file that have it. */
export interface NodeHistory {
  name: string;
  side: Side;
  cells: HistoryCell[];
}

/** null: not known; "inf": infinite, or a difference in kind. */
export type Measure = number | 'inf' | null;

export interface Precision {
  verdict: string;
  error: Measure;
  input_error: Measure;
  units: Measure;
  cosine: Measure;
  max_abs_err: Measure;
}

export const FINDING_KINDS = ['origin', 'first_error', 'first_warning', 'bad_module', 'first_overflow', 'bad_parameter', 'bad_gradient', 'missing_call', 'call_order', 'no_partner', 'call_data', 'call_root', 'replica', 'layout', 'suspect_rank'] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export interface Finding {
  kind: string;
  side: Side;
  name: string;
  text: string;
  precision: Precision | null;
}

export interface Findings {
  known: boolean; // false: the file was written without them
  total: number;
  inherited: number;
  findings: Finding[];
}

export interface LayerCell {
  level: number | null;
  nodes: number;
  errors: number;
  warnings: number;
  unmatched: number;
  overflows: number;
  verdict?: Ruling | null; // the worst
  begins?: number; // nodes that begin a difference
  error: Measure;
  units: Measure;
  node: string; // where to look
}

export interface Layer {
  label: string;
  forward: LayerCell | null;
  backward: LayerCell | null;
}

export interface FlowNeighbour {
  node: NodeSummary;
  path: string[]; // ancestors below the root
  input: number; // positions: of the taker's inputs, of the giver's outputs
  output: number;
  confidence: number; // percent
}

export interface ExchangePartner {
  step: number;
  rank: number;
  name: string;
  gives: boolean;
  takes: boolean;
}

export interface Links {
  previous: NodeSummary | null;
  next: NodeSummary | null;
  flow_known: boolean;
  producers: FlowNeighbour[];
  consumers: FlowNeighbour[];
  producers_total: number;
  consumers_total: number;
  partners: ExchangePartner[];
  precision: Precision | null;
}
