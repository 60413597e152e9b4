import type { Activations } from '../api/activations';
import type { Config, FileList, Findings, HitSort, Layer, Level, Links, MatchChange, MatchState, MatrixCell, NodeDetails, PartnerSuggestion, Refusal, SearchResult, Side, Summary } from '../api/types';
import type { Verdict } from '../api/verdict';
import { FILE_KINDS, FILE_ORDERS, type FileKind, type FileOrder } from './file_list';
import { CONVERT, type ConvertState } from './convert_form';
import { IDLE, type Fault, type Load } from './load';
import type { ColorMode } from './status';
import type { Strayed } from './strayed';
import type { Tab } from './tabs';
import type { Tree } from './tree';
import type { RunChoice } from './run_choice';
import type { TrendChoice } from './trends';

export type Language = 'en' | 'zh';
export type Theme = 'light' | 'dark';

export interface Graph {
  trees: { NPU: Tree; Bench: Tree | null };
  summary: Summary;
}

export interface Selection {
  side: Side;
  name: string;
}

/** A stretch of all hits. */
export interface Hits extends SearchResult {
  start: number; // of the stretch
}

export interface SearchState {
  open: boolean; // the list is shown
  side: Side;
  query: string;
  levels: Level[]; // of which a node has one; empty: any
  leaves: boolean; // only nodes without others in them
  sort: HitSort;
  result: Load<Hits>;
  active: number; // of all hits
}

/** A line about the last thing that was done. */
export interface MatchMessage {
  kind: 'made' | 'removed' | 'applied' | 'saved' | 'undone' | 'redone' | 'pending' | Refusal | 'failed';
  values: Record<string, string | number>;
  skipped: MatchChange['skipped'];
}

/** The bar in which nodes are matched by hand. */
export interface MatchPanel {
  open: boolean;
  picked: Record<Side, string | null>;
  descendants: boolean;
  state: Load<MatchState>;
  busy: boolean;
  message: MatchMessage | null;
  suggestions: PartnerSuggestion[]; // for the one node that is picked
}

export interface State {
  files: Load<FileList>;
  file: string | null;
  /** Shown instead of a graph: of a trend file, or of a directory of a monitor. */
  trend: (Partial<TrendChoice> & { file: string; run?: Partial<RunChoice> }) | null;
  config: Config | null;
  verdict: Load<Verdict>; // of the file, over all ranks and steps
  step: number;
  rank: number;
  microStep: number;
  strayed: Strayed | null; // of the link that was opened
  graph: Load<Graph>;
  revision: number; // moves when a tree was opened, closed or filled: trees are changed in place
  selection: Selection | null;
  details: Load<NodeDetails>;
  links: Load<Links>; // of the selected node
  matrix: Load<MatrixCell[]>; // of the file
  findings: Load<Findings>;
  layers: Load<Layer[]>;
  activations: Load<Activations>; // of a single graph
  search: SearchState;
  matching: MatchPanel;
  convert: ConvertState;
  notice: { text: string; fault: Fault | null } | null;
  theme: Theme;
  language: Language;
  sync: boolean; // expansion on one side is repeated on the other
  follow: boolean; // so is scrolling
  mode: ColorMode;
  rules: boolean; // the visitor prefers the colours of the earlier tool's rules to the verdict
  tab: Tab; // of the details
  mapNPU: boolean; // small picture of that side
  mapBench: boolean;
  detailsHeight: number;
  split: number; // share of the left pane
  fileKind: FileKind; // of the list of files
  fileOrder: FileOrder;
  dock: number; // share of the list of nodes beside the graphs
}

export const INITIAL: State = {
  files: IDLE,
  file: null,
  trend: null,
  config: null,
  verdict: IDLE,
  step: 0,
  rank: 0,
  microStep: -1,
  strayed: null,
  graph: IDLE,
  revision: 0,
  selection: null,
  details: IDLE,
  links: IDLE,
  matrix: IDLE,
  findings: IDLE,
  layers: IDLE,
  activations: IDLE,
  search: { open: false, side: 'NPU', query: '', levels: [], leaves: false, sort: 'execution', result: IDLE, active: -1 },
  matching: { open: false, picked: { NPU: null, Bench: null }, descendants: false, state: IDLE, busy: false, message: null, suggestions: [] },
  convert: CONVERT,
  notice: null,
  theme: 'light',
  language: 'en',
  sync: true,
  follow: true,
  mode: 'precision',
  rules: false,
  tab: 'items',
  mapNPU: true,
  mapBench: true,
  detailsHeight: 340,
  split: 0.5,
  fileKind: 'graphs',
  fileOrder: 'name',
  dock: 0.24,
};

export class Store {
  private state: State;
  private readonly listeners = new Set<() => void>();

  constructor(initial: State = INITIAL) {
    this.state = initial;
  }
  get(): State {
    return this.state;
  }
  set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    for (const listener of [...this.listeners]) listener();
  }
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** What is remembered between visits. */
const KEPT = ['theme', 'language', 'sync', 'follow', 'mapNPU', 'mapBench', 'detailsHeight', 'split', 'dock', 'fileKind', 'fileOrder', 'rules'] as const;
const KEY = 'msprobe.page';

export function readPreferences(storage: Pick<Storage, 'getItem'> | null, base: State): State {
  const text = storage?.getItem(KEY);
  if (!text) return base;
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return base;
  }
  if (typeof found !== 'object' || found === null) return base;
  const kept: Record<string, unknown> = {};
  for (const key of KEPT) {
    const value = (found as Record<string, unknown>)[key];
    if (typeof value === typeof base[key]) kept[key] = value;
  }
  if (kept['theme'] !== 'dark' && kept['theme'] !== 'light') delete kept['theme'];
  if (kept['language'] !== 'zh' && kept['language'] !== 'en') delete kept['language'];
  if (!FILE_KINDS.includes(kept['fileKind'] as FileKind)) delete kept['fileKind'];
  if (!FILE_ORDERS.some((order) => order === kept['fileOrder'])) delete kept['fileOrder'];
  return { ...base, ...kept };
}

/** Only what the user chose is written, so that the system's theme keeps deciding until then. */
export function writePreferences(storage: Pick<Storage, 'setItem' | 'getItem'> | null, change: Partial<State>): void {
  const kept: Record<string, unknown> = {};
  for (const key of KEPT) if (key in change) kept[key] = change[key];
  let before: unknown = null;
  try {
    before = JSON.parse(storage?.getItem(KEY) ?? '{}');
    storage?.setItem(KEY, JSON.stringify({ ...(before as object), ...kept }));
  } catch {
    // Storage is full or forbidden: the choice holds for this visit only.
  }
}
