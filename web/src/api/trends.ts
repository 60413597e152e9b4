// What the server says about .trend.db files; docs/page_api.md is the contract.

export type TrendDimension = 'step' | 'rank' | 'target';

export interface TrendMetric {
  name: string;
  stats: string[];
  tags: { name: string; category: string }[];
}

export interface TrendInfo {
  metrics: TrendMetric[];
  ranks: number[];
  steps: number[];
}

export interface TrendTarget {
  id: number;
  name: string;
  vpp_stage: number;
  micro_step: number;
}

export interface TrendGrid {
  total: number; // rows without offset and limit
  columns: number[];
  rows: TrendTarget[]; // of a step or a rank
  ranks: number[]; // the rows of a target
  values: (number | null)[]; // row by row; NaN and infinities were recorded, null: there is no value
}

/** Which values; a target has all of the tags. */
export interface TrendFilter {
  metric: string;
  stat: string;
  dimension: TrendDimension;
  value: number;
  tags: string[];
  q: string;
  offset: number;
}

export interface GridQuery extends TrendFilter {
  limit: number;
  order?: 'outliers' | undefined; // rows with a value far from the others of its line first
}

export interface LineQuery {
  metric: string;
  stat: string;
  name: string;
  vpp_stage: number;
  micro_step: number;
  rank?: number | undefined;
  step?: number | undefined;
}

export type TrendPoint = [at: number, value: number | null];

export interface TrendApi {
  info(file: string): Promise<TrendInfo>;
  grid(file: string, query: GridQuery): Promise<TrendGrid>;
  line(file: string, query: LineQuery): Promise<TrendPoint[]>;
}

/** As an answer has it: JSON knows neither NaN nor infinities. */
export type SentValue = number | 'nan' | 'inf' | '-inf' | null;
const SPECIAL = { nan: NaN, inf: Infinity, '-inf': -Infinity };
export function received(value: SentValue): number | null {
  return typeof value === 'string' ? SPECIAL[value] : value;
}

type Get = <T>(what: string, params: Record<string, string | number | undefined>) => Promise<T>;

export class HttpTrendApi implements TrendApi {
  constructor(private readonly get: Get) {}

  info(file: string) {
    return this.get<TrendInfo>('trend', { file });
  }
  async grid(file: string, { tags, ...query }: GridQuery) {
    const grid = await this.get<Omit<TrendGrid, 'values'> & { values: SentValue[] }>('trend/grid', { file, ...query, tags: tags.join('\n') });
    return { ...grid, values: grid.values.map(received) };
  }
  async line(file: string, query: LineQuery) {
    const { points } = await this.get<{ points: [number, SentValue][] }>('trend/line', { file, ...query });
    return points.map(([at, value]): TrendPoint => [at, received(value)]);
  }
}
