// What the command put into the page. Names come from dumps: they are only ever shown as text.

export interface Difference {
  kind: string;
  op: string;
  module: string;
  item: string;
  detail: string;
  inputs: string;
  frame: string;
  function: string;
}

export interface PairSummary {
  label: string;
  target: string;
  golden: string;
  mode: string;
  fuzzy: boolean;
  files: string[];
  rows: number;
  pass: number;
  warning: number;
  error: number;
  matched_ops: number;
  target_only_ops: number;
  golden_only_ops: number;
  first_difference: Difference | null;
  earlier_input_difference: Difference | null;
  other_dtype: Difference | null;
  other_dtype_ops: number;
  ruler?: Record<(typeof RULER)[number], number>; // ops by verdict
  warnings: string[];
}

export const RULER = ['bug', 'suspicious', 'inherited', 'rewritten', 'round_off', 'bit_equal'] as const; // a cell has "round-off" for "round_off"

/** Where a difference starts, over all ranks. */
export interface Origin extends Difference {
  rank: number | null;
  ranks: number[];
  units: number | 'inf' | null; // of what rounding explains
  replay?: Replay; // with --replay
}
export interface Divergence {
  step: number | null;
  creator: Origin | null;
  others: Origin[];
  inherited_by: { rank: number; from: number[]; through: string }[];
  infected: { ops: number; forward: number; backward: number };
  inherited: { rank: number | null; module: string; direction: string; ops: number; first_op: string }[];
}

/** What the comparison says as a whole, the same as on the terminal. */
export interface Verdict {
  outcome: 'origin' | 'equal' | 'round_off' | 'unknown';
  origins: { op: string; module: string | null; ranks?: number[]; step?: number | null }[];
  text: { en: string[]; zh: string[] }; // the headline, then lines with a label
}

/** A result against the float64 result of the same call. */
export interface ReplayFigures {
  dtype: string;
  error: number | 'inf' | null;
  ulp: number | 'inf';
  round_off_ulp: number | 'inf';
}
export interface Replay {
  label: string; // of the pair
  op: string;
  verdict: 'both within round-off' | 'target nearer' | 'golden nearer' | 'both far' | 'cannot be replayed';
  why: string; // of the last
  items: { item: string; target: ReplayFigures; golden: ReplayFigures }[]; // the one that decides first
  notes: string[]; // what was assumed
}

/** Finite numbers; -1: there is none; null: infinite or not a number. */
export type Measure = number | null;

/** rows, warnings, errors, op with the largest first measure, then the measures. */
type Point = [number, number, number, string, ...Measure[]];
export type Cell = [stack: number, direction: number, layer: number, part: number, ...Point];
export type Bin = [direction: number, index: number, ...Point];
/** The verdict is the ruler's ("bug"), where it has one, or that of the old rule ("pass"). */
export type OpEntry = [name: string, verdict: string, input: Measure, output: Measure, index: number, firstRow: number, rows: number, frame: string];
export type RowEntry = [index: number, error: Measure, stack: number, cells: string[]];

export interface PairPage {
  measures: string[];
  roundoff: number;
  worst: OpEntry[];
  added: OpEntry[];
  curves: { stacks: string[]; parts: string[]; cells: Cell[]; run: Bin[]; bins: number };
  table: { columns: string[]; total: number; rows: RowEntry[]; stacks: string[][] };
  advice: { kind: string; op: string; row: number }; // of the first row that did not pass
  target_only: string[];
  golden_only: string[];
}

/** What every report says of itself. */
interface Made {
  format: number;
  tool: string;
  time: string;
}

export interface CompareReport extends Made {
  summary: {
    pairs: PairSummary[];
    target_only_dirs: string[];
    golden_only_dirs: string[];
    failures: { label: string; error: string }[];
    verdict: Verdict;
    first_divergence?: Divergence;
    replays?: Replay[]; // with --replay
  };
  pages: PairPage[];
}

export type SheetCell = string | number | boolean | null;
export interface Sheet {
  name: string;
  columns: string[];
  total: number; // rows of the file, of which these are the first, what differs before what agrees
  rows: SheetCell[][];
}
export const CHECKED = ['fail', 'warn', 'ask', 'pass'] as const;
export interface CheckFinding {
  rule: string;
  section: string;
  verdict: (typeof CHECKED)[number];
  values: [target: string, golden: string]; // "": not known
  origins: [target: string, golden: string];
  reason: { en: string; zh: string };
  fix: { en: string; zh: string };
}
export interface ConfigurationSide {
  files: string[];
  frameworks: string[];
}
/** What config_check found: the checklist, or two packs compared. */
export interface ConfigurationReport extends Made {
  configuration: {
    target: ConfigurationSide;
    golden: ConfigurationSide; // without files: only one run was checked
    files: string[]; // names of the tables beside the page
    warnings: string[];
    findings?: CheckFinding[];
    effective?: Sheet;
    parts?: (Sheet & { verdict: 'pass' | 'warning' | 'error' })[];
  };
}

/** Against float64, the worst last; the order of the counts. */
export const JUDGED = ['right', 'round-off', 'unknown', 'suspicious', 'wrong'] as const;
/** A function in one direction and dtype. */
export interface FunctionEntry {
  name: string;
  direction: string; // "forward", "backward", or "" where the name says none
  dtype: string;
  verdicts: number[]; // results, by JUDGED
  times: number | null; // the largest error in multiples of what rounding explains; null: infinite
  ulp: number | null;
  rtol: number | null;
  histogram: [range: string, ...counts: number[]][]; // elements by magnitude: up to 0.5, 1, 2, 4, 16, 256 ulp, and further
}
export interface CheckedFunction extends FunctionEntry {
  results: number;
  verdict: (typeof JUDGED)[number];
}
/** Of a row of the table. */
export const CHECK_COLUMNS = ['API Name', 'Dtype', 'Verdict', 'Error (ulp)', 'Round-off (ulp)', 'Known', 'Element Error (ulp)', 'Element Round-off (ulp)', 'Rule', 'Terms', 'Condition', 'Required rtol', 'Required atol', 'Classes', 'Ulp Histogram'];
/** What acc_check found. */
export interface LaboratoryReport extends Made {
  laboratory: {
    files: string[]; // names of the tables
    graphs: string[]; // of the server that this page comes from
    verdicts: Partial<Record<(typeof JUDGED)[number], number>>;
    total: number;
    functions: FunctionEntry[];
    rows: string[][]; // the worst first
    calls: { counts: Record<string, number>; total: number; rows: string[][] }; // by the standards of mindstudio-probe
  };
}

export interface Words {
  en: string;
  zh: string;
}
export interface DocumentCell {
  lines: Words[];
  tone: string; // good, bad, odd: a badge; code, number; or a text
  commands?: string[];
}
export interface DocumentTable {
  columns: Words[];
  total: number; // rows, of which these are the first
  rows: DocumentCell[][];
}
export interface DocumentLine {
  name: string;
  kind: 'a' | 'b' | 'more' | 'band';
  steps: number[];
  values: Measure[];
}
export interface DocumentChart {
  label: Words;
  lines: DocumentLine[];
  band?: DocumentLine; // half widths around zero
  mark?: number; // a step
  mark_words?: Words;
}
export interface DocumentBlock {
  text?: Words;
  commands?: string[];
  table?: DocumentTable;
  chart?: DocumentChart;
}
/** What tools without a page of their own say: src/report/document.h. */
export interface DocumentReport extends Made {
  document: { kind: string; outcome: string; headline: Words; lines: Words[]; parts: { title: Words; blocks: DocumentBlock[] }[] };
}

export type Report = CompareReport | ConfigurationReport | LaboratoryReport | DocumentReport;
export const isDocument = (report: Report): report is DocumentReport => 'document' in report;
export const isLaboratory = (report: Report): report is LaboratoryReport => 'laboratory' in report;
export const isConfiguration = (report: Report): report is ConfigurationReport => 'configuration' in report;

export const DIRECTIONS = ['other', 'forward', 'backward', 'gradient'] as const; // by the numbers in cells and bins
export type Direction = (typeof DIRECTIONS)[number];

/** Base64 of gzip of JSON. */
export async function unpack(text: string): Promise<Report> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(stream).json()) as Report;
}
