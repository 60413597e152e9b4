// What the server says about monitored runs; docs/page_api.md is the contract.

export interface RunInfo {
  ranks: number[];
  metrics: { name: string; stats: string[]; series: number }[];
  first_step: number;
  last_step: number; // -1: none yet
  interval: number; // steps between two records
  version: number; // another one: there are other values
  behind: boolean; // the files hold more than what was read so far
  cut_rows: number; // of csv files, as where the run was killed: left out
  cut_file: string; // that has the first
  changed: number; // seconds since 1970
  health?: RunHealth; // by the heartbeats of all ranks, the worst; none of a run without them
  ranks_with_it?: number[]; // the first few
}

export type RunHealth = 'ended' | 'running' | 'behind' | 'hung' | 'failed' | 'killed';

export interface RunRow {
  label: string;
  series: number; // in it
  middle: number | null; // median over the steps
  spread: number; // median distance from it
}

export interface RunRows {
  rows: RunRow[];
  low: number | null; // 98 % of the values lie between these
  high: number | null;
  least: number | null; // magnitude above zero
  odd: number; // cells with NaN or an infinity
  behind: boolean;
}

export const RUN_FOLDS = ['layer', 'none'] as const;
export type RunFold = (typeof RUN_FOLDS)[number];
export const RUN_CELLS = ['highest', 'mean', 'lowest'] as const;
export type RunCell = (typeof RUN_CELLS)[number];

/** Which rows, and what a cell says of the values in it. */
export interface RunSource {
  run: string;
  rank: number;
  metric: string;
  stat: string;
  fold: RunFold;
  q: string;
  as?: string; // the rows of this run, by their names
  as_rank?: number;
}

export interface TileQuery extends RunSource {
  cell: RunCell;
  level: number; // a bin is interval << level steps
  from: number; // first bin
  bins: number;
  offset: number; // first row
  limit: number;
  labels?: string[] | undefined; // these rows instead
}

/** Row by row; NO_VALUE where there is none. */
export interface RunTile {
  rows: number;
  bins: number;
  values: Float32Array;
  final: boolean; // all of its steps are over
  behind: boolean;
}

export interface RunBands extends Omit<RunTile, 'values'> {
  lowest: Float32Array;
  highest: Float32Array;
  mean: Float32Array;
}

export interface RunEvent {
  step: number;
  rank: number; // -1: of no rank alone
  series: string;
  text: string;
  source: 'anomaly' | 'judgement';
  text_zh?: string;
  metric?: string; // that shows it
  stat?: string;
  rows?: string[]; // labels of the series that began it
  leads?: boolean; // of all that was found, what does most harm
}

/** What was found so far; more may come while the server judges. */
export interface RunFound {
  events: RunEvent[];
  judging?: boolean;
  unjudged?: string; // why the series say nothing
  unjudged_zh?: string;
}

export const NO_VALUE = Math.fround(-3.4028235e38);

export interface RunApi {
  info(run: string, rank?: number): Promise<RunInfo>;
  rows(source: RunSource & { cell: RunCell }): Promise<RunRows>;
  tile(query: TileQuery): Promise<RunTile>;
  bands(query: TileQuery): Promise<RunBands>;
  events(run: string): Promise<RunFound>;
}

export function unpackFloats(text: string): Float32Array {
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  return new Float32Array(bytes.buffer, 0, bytes.length >> 2);
}

type Get = <T>(what: string, params: Record<string, string | number | undefined>) => Promise<T>;
const keyOf = (what: string, params: Record<string, string | number | undefined>) => JSON.stringify([what, Object.entries(params).sort()]);
type Packed<T> = { [K in keyof T]: T[K] extends Float32Array ? string : T[K] };

export class HttpRunApi implements RunApi {
  private readonly early = new Map<string, Promise<unknown>>();

  constructor(private readonly ask: Get) {}

  /** Asks for what a link names before anything is drawn; the first to ask for it gets that answer. */
  prefetch({ run, rank, metric, stat, fold = 'layer', q = '', cell = 'highest' }: Partial<RunSource> & { run: string; cell?: RunCell }): void {
    const keep = (what: string, params: Record<string, string | number | undefined>) => {
      const answer = this.ask(what, params);
      answer.catch(() => undefined); // who asks for it is told
      this.early.set(keyOf(what, params), answer);
    };
    keep('run', { run, rank });
    if (rank !== undefined && metric !== undefined && stat !== undefined) keep('run/rows', { run, rank, metric, stat, fold, q, cell });
  }

  private get<T>(what: string, params: Record<string, string | number | undefined>): Promise<T> {
    const key = keyOf(what, params);
    const known = this.early.get(key) as Promise<T> | undefined;
    this.early.delete(key);
    return known ?? this.ask<T>(what, params);
  }

  info(run: string, rank?: number) {
    return this.get<RunInfo>('run', { run, rank });
  }
  rows(source: RunSource & { cell: RunCell }) {
    return this.get<RunRows>('run/rows', { ...source });
  }
  async tile({ labels, ...query }: TileQuery) {
    const { values, ...rest } = await this.get<Packed<RunTile>>('run/tile', { ...query, labels: labels?.join('\n') });
    return { ...rest, values: unpackFloats(values) };
  }
  async bands({ labels, ...query }: TileQuery) {
    const { lowest, highest, mean, ...rest } = await this.get<Packed<RunBands>>('run/tile', { ...query, cell: 'all', labels: labels?.join('\n') });
    return { ...rest, lowest: unpackFloats(lowest), highest: unpackFloats(highest), mean: unpackFloats(mean) };
  }
  events(run: string) {
    return this.get<RunFound>('run/events', { run });
  }
}
