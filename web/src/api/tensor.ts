import type { GraphRef, Side } from './types';

/** JSON has no names for these. */
export type Value = number | 'nan' | 'inf' | '-inf';

export interface Histogram {
  from: Value;
  to: Value;
  counts: number[];
}

export interface HeatMap {
  rows: number;
  columns: number;
  cell_rows: number;
  cell_columns: number;
  cells: Value[];
}

export interface TensorSide {
  item: string;
  file: string;
  dtype: string;
  shape: number[];
  count: number;
  nan: number;
  plus_inf: number;
  minus_inf: number;
  slices: number;
  min: Value;
  max: Value;
  histogram: Histogram;
  heat: HeatMap;
}

/** The line that fits the target best over the golden side. */
export interface TensorFit {
  count: number; // elements
  slope: Value;
  offset: Value;
  correlation: Value;
}

export interface WorstElement {
  place: number[];
  value: Value;
  partner: Value | null;
  distance: Value;
}

export interface TensorPreview {
  tensor: TensorSide;
  partner: TensorSide | null;
  missing: string; // why there is no partner
  difference: { equal: number; not_finite: number; histogram: Histogram; heat: HeatMap; fit?: TensorFit; points_golden?: number[]; points_target?: number[] } | null; // points: pages of earlier releases have none
  slice: number;
  place: number[];
  worst: WorstElement[];
}

export interface TensorQuery extends Record<string, string | number | undefined> {
  side: Side;
  name: string;
  item: string;
  partner_item?: string | undefined;
  slice?: number | undefined;
}

/** Of hosts that can read the files of a dump. */
export type TensorApi = (graph: GraphRef, query: TensorQuery) => Promise<TensorPreview>;
