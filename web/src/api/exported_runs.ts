// The monitored runs of an exported page: the values are in the page, src/view/run/run_export.cc wrote them.
import { ApiError } from './client';
import { layerOf, naturalOrder } from './run_names';
import { NO_VALUE, unpackFloats, type RunApi, type RunBands, type RunCell, type RunEvent, type RunFound, type RunInfo, type RunRow, type RunRows, type RunSource, type RunTile, type TileQuery } from './runs';

interface MetricData {
  metric: string;
  stat: string;
  from: number; // first bin
  bins: number;
  labels: string[];
  mean: string;
  lowest?: string; // where a bin has several steps
  highest?: string;
}

interface RankData {
  rank: number;
  width: number; // steps of a bin
  first_step: number;
  last_step: number;
  cut_rows?: number;
  cut_file?: string;
  metrics: MetricData[];
}

export interface ExportedRun {
  file: string;
  size: number;
  mtime: number;
  ranks: number;
  data: { changed: number; events: { events: RunEvent[] }; ranks: RankData[] };
}

type Part = 'lowest' | 'mean' | 'highest';
interface Row {
  label: string;
  members: number[];
}

export class ExportedRunApi implements RunApi {
  private readonly unpacked = new Map<string, Float32Array>();

  constructor(private readonly runs: ExportedRun[]) {}

  async info(run: string, rank?: number): Promise<RunInfo> {
    const { data } = this.find(run);
    const { width, first_step, last_step, cut_rows, cut_file, metrics } = this.rank(run, rank ?? data.ranks[0]?.rank ?? 0);
    return {
      ranks: data.ranks.map((each) => each.rank),
      metrics: metrics.map(({ metric, stat, labels }) => ({ name: metric, stats: [stat], series: labels.length })),
      first_step: Math.floor(first_step / width) * width,
      last_step,
      interval: width,
      version: 1,
      behind: false,
      cut_rows: cut_rows ?? 0,
      cut_file: cut_file ?? '',
      changed: data.changed,
    };
  }

  async rows(source: RunSource & { cell: RunCell }): Promise<RunRows> {
    const metric = this.metric(source);
    const all: number[] = [];
    let [least, odd] = [Infinity, 0];
    const rows = this.chosen(metric, source).map((row): RunRow => {
      const own: number[] = [];
      for (let bin = 0; bin < metric.bins; bin++) {
        const value = this.together(source, metric, row, source.cell, bin, bin + 1);
        if (value === NO_VALUE) continue;
        if (!Number.isFinite(value)) odd++;
        else own.push(value);
        if (Number.isFinite(value) && value !== 0) least = Math.min(least, Math.abs(value));
      }
      all.push(...own);
      const middle = share(own, 0.5);
      return { label: row.label, series: row.members.length, middle, spread: middle === null ? 0 : (share(own.map((v) => Math.abs(v - middle)), 0.5) ?? 0) };
    });
    return { rows, low: share(all, 0.01), high: share(all, 0.99), least: Number.isFinite(least) ? least : null, odd, behind: false };
  }

  async tile(query: TileQuery): Promise<RunTile> {
    return this.fill(query, [query.cell], ([values]) => ({ values: values! }));
  }

  async bands(query: TileQuery): Promise<RunBands> {
    return this.fill(query, ['lowest', 'highest', 'mean'], ([lowest, highest, mean]) => ({ lowest: lowest!, highest: highest!, mean: mean! }));
  }

  async events(run: string): Promise<RunFound> {
    return { events: this.find(run).data.events.events };
  }

  private fill<T>(query: TileQuery, parts: Part[], make: (arrays: Float32Array[]) => T): T & { rows: number; bins: number; final: boolean; behind: boolean } {
    const metric = this.metric(query);
    const scale = 2 ** query.level;
    const labels = query.labels ?? (query.as === undefined ? null : this.chosen(this.metric({ ...query, run: query.as, rank: query.as_rank ?? query.rank }), query).map(({ label }) => label).slice(query.offset, query.offset + query.limit));
    const all = this.chosen(metric, query);
    const rows = labels ? labels.map((label) => all.find((row) => row.label === label) ?? { label, members: [] }) : all.slice(query.offset, query.offset + query.limit);
    const arrays = parts.map((part) => {
      const values = new Float32Array(rows.length * query.bins).fill(NO_VALUE);
      rows.forEach((row, r) => {
        for (let bin = 0; bin < query.bins; bin++) {
          const first = (query.from + bin) * scale - metric.from;
          values[r * query.bins + bin] = this.together(query, metric, row, part, Math.max(0, first), Math.min(metric.bins, first + scale));
        }
      });
      return values;
    });
    return { ...make(arrays), rows: rows.length, bins: query.bins, final: true, behind: false };
  }

  /** Of all series of a row in some bins; NaN and infinities before all else. */
  private together(source: RunSource, metric: MetricData, row: Row, part: Part, from: number, to: number): number {
    const values = this.values(source, metric, part);
    let [out, count, sum] = [NO_VALUE, 0, 0];
    for (const member of row.members) {
      for (let bin = from; bin < to; bin++) {
        const value = values[member * metric.bins + bin]!;
        if (value === NO_VALUE) continue;
        if (Number.isNaN(value)) return NaN;
        if (!Number.isFinite(value)) out = value;
        if (!Number.isFinite(out)) continue;
        out = count++ === 0 ? value : part === 'lowest' ? Math.min(out, value) : Math.max(out, value);
        sum += value;
      }
    }
    return part === 'mean' && count > 0 && Number.isFinite(out) ? sum / count : out;
  }

  private values({ run, rank }: RunSource, metric: MetricData, part: Part): Float32Array {
    const key = [run, rank, metric.metric, part].join('\n');
    const known = this.unpacked.get(key) ?? unpackFloats(metric[part] ?? metric.mean);
    this.unpacked.set(key, known);
    return known;
  }

  private chosen({ labels }: MetricData, { fold, q }: RunSource): Row[] {
    const rows = new Map<string, Row>();
    labels.forEach((label, index) => {
      if (q && !label.toLowerCase().includes(q.toLowerCase())) return;
      const name = fold === 'layer' ? layerOf(label) : label;
      const row = rows.get(name) ?? { label: name, members: [] };
      row.members.push(index);
      rows.set(name, row);
    });
    return [...rows.values()].sort((a, b) => naturalOrder(a.label, b.label));
  }

  private find(run: string): ExportedRun {
    const found = this.runs.find(({ file }) => file === run);
    if (!found) throw new ApiError(run, 404);
    return found;
  }

  private rank(run: string, rank: number): RankData {
    const found = this.find(run).data.ranks.find((each) => each.rank === rank);
    if (!found) throw new ApiError(`${run}: rank ${rank}`, 404);
    return found;
  }

  private metric({ run, rank, metric, stat }: RunSource): MetricData {
    const found = this.rank(run, rank).metrics.find((each) => each.metric === metric && each.stat === stat);
    if (!found) throw new ApiError(`${run}: ${metric} ${stat}`, 404);
    return found;
  }
}

function share(values: number[], at: number): number | null {
  if (values.length === 0) return null;
  return values.sort((a, b) => a - b)[Math.floor(at * (values.length - 1))]!;
}
