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
  values: (number | null)[]; // row by row
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

type Get = <T>(what: string, params: Record<string, string | number | undefined>) => Promise<T>;

export class HttpTrendApi implements TrendApi {
  constructor(private readonly get: Get) {}

  info(file: string) {
    return this.get<TrendInfo>('trend', { file });
  }
  grid(file: string, { tags, ...query }: GridQuery) {
    return this.get<TrendGrid>('trend/grid', { file, ...query, tags: tags.join('\n') });
  }
  async line(file: string, query: LineQuery) {
    return (await this.get<{ points: TrendPoint[] }>('trend/line', { file, ...query })).points;
  }
}
