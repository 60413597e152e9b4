// What the server says; docs/page_api.md is the contract.

export type Side = 'NPU' | 'Bench';
export type OverflowLevel = 'medium' | 'high' | 'critical';
export type Level = 'error' | 'warning' | 'pass' | 'unmatched' | 'none' | 'overflow' | OverflowLevel;

export interface FileEntry {
  file: string;
  size: number;
  mtime: number;
}

export interface FileList {
  root: string;
  files: FileEntry[];
  skipped: { file: string; reason: string }[];
}

export interface Config {
  graph_type: 'build' | 'compare';
  task: string;
  micro_steps: number;
  overflow_check: boolean;
  colors: Record<string, { value: number[]; description: string; accuracy_level: string }> | null;
  tool_tip: Record<string, string> | null;
  ranks: number[];
  steps: number[];
}

export interface Counts {
  error: number;
  warning: number;
  unmatched: number;
  overflow?: number;
}

export interface NodeSummary {
  name: string;
  label: string;
  type: 0 | 1 | 9;
  children: number;
  order: number;
  precision: number | null;
  overflow: OverflowLevel | null;
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
  first_error: NodeSummary | null;
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
}

export interface NodeDetails {
  node: NodeSummary;
  inputs: Row[];
  outputs: Row[];
  stack: string[];
  merge_info: string[];
  partner: Partner | null;
}

export interface SearchResult {
  total: number;
  hits: NodeSummary[];
}

export interface GraphRef {
  file: string;
  step: number;
  rank: number;
}
