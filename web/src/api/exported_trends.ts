// The trends of an exported page: the values are in the page, src/view/trend/trend_export.cc wrote them.
import { ApiError } from './client';
import { outlierOrder } from './outliers';
import { received, type GridQuery, type LineQuery, type SentValue, type TrendApi, type TrendGrid, type TrendInfo, type TrendPoint, type TrendTarget } from './trends';

type TargetRow = [id: number, name: string, vppStage: number, microStep: number];
type Block = SentValue[] | null; // targets by steps; null: no values at all

interface MetricData {
  targets: TargetRow[]; // by their ids
  tags: number[][]; // of each tag of the metric: which targets
  values: Block[][]; // by statistic and rank
}

export interface ExportedTrend {
  file: string;
  size: number;
  mtime: number;
  data: { info: TrendInfo; metrics: MetricData[] };
}

interface Chosen {
  info: TrendInfo;
  metric: MetricData;
  blocks: Block[]; // by rank
}

export class ExportedTrendApi implements TrendApi {
  constructor(private readonly trends: ExportedTrend[]) {}

  async info(file: string): Promise<TrendInfo> {
    return this.find(file).info;
  }

  async grid(file: string, query: GridQuery): Promise<TrendGrid> {
    const { info, metric, blocks } = this.choose(file, query);
    const { dimension, value, offset, limit, order } = query;
    const valueAt = (rank: number, target: number, step: number) => received(blocks[rank]?.[target * info.steps.length + step] ?? null);
    if (dimension === 'target') {
      const target = metric.targets.findIndex(([id]) => id === value);
      const all = info.ranks.map((_, rank) => info.steps.map((_, step) => valueAt(rank, target, step)));
      const rows = order ? outlierOrder(all.flat(), info.steps.length, 'column') : info.ranks.map((_, rank) => rank);
      const shown = rows.slice(offset, offset + limit);
      return { total: info.ranks.length, columns: info.steps, rows: [], ranks: shown.map((rank) => info.ranks[rank]!), values: shown.flatMap((rank) => all[rank]!) };
    }
    const along = dimension === 'step' ? info.ranks : info.steps;
    const fixed = (dimension === 'step' ? info.steps : info.ranks).indexOf(value);
    if (fixed < 0) throw new ApiError(`${file}: ${dimension} ${value}`, 404);
    const all = this.chosenTargets(info, metric, query);
    const rowOf = (target: number) => along.map((_, at) => (dimension === 'step' ? valueAt(at, target, fixed) : valueAt(fixed, target, at)));
    const sorted = order ? outlierOrder(all.flatMap(rowOf), along.length, 'row').map((row) => all[row]!) : all;
    const shown = sorted.slice(offset, offset + limit);
    const values = shown.flatMap(rowOf);
    return { total: all.length, columns: along, rows: shown.map((target) => named(metric.targets[target]!)), ranks: [], values };
  }

  async line(file: string, query: LineQuery): Promise<TrendPoint[]> {
    const { info, metric, blocks } = this.choose(file, query);
    const { name, vpp_stage, micro_step, rank, step } = query;
    const target = metric.targets.findIndex((row) => row[1] === name && row[2] === vpp_stage && row[3] === micro_step);
    if (target < 0) throw new ApiError(`${file}: ${name}`, 404);
    const along = rank !== undefined ? info.steps : info.ranks;
    const points = along.map((at): TrendPoint => {
      const [r, s] = rank !== undefined ? [rank, at] : [at, step!];
      return [at, received(blocks[info.ranks.indexOf(r)]?.[target * info.steps.length + info.steps.indexOf(s)] ?? null)];
    });
    return points.filter(([, value]) => value !== null);
  }

  private find(file: string) {
    const found = this.trends.find((trend) => trend.file === file);
    if (!found) throw new ApiError(file, 404);
    return found.data;
  }

  private choose(file: string, { metric, stat }: { metric: string; stat: string }): Chosen {
    const { info, metrics } = this.find(file);
    const index = info.metrics.findIndex(({ name }) => name === metric);
    const blocks = metrics[index]?.values[info.metrics[index]!.stats.indexOf(stat)];
    if (!blocks) throw new ApiError(`${file}: ${metric} ${stat}`, 404);
    return { info, metric: metrics[index]!, blocks };
  }

  /** Which targets have all tags, and the text in their names. */
  private chosenTargets(info: TrendInfo, metric: MetricData, { metric: name, tags, q }: GridQuery): number[] {
    const known = info.metrics.find((m) => m.name === name)!.tags;
    const tagged = tags.map((tag) => new Set(metric.tags[known.findIndex((t) => t.name === tag)]));
    const text = q.toLowerCase();
    const all = metric.targets.map((_, index) => index);
    return all.filter((index) => tagged.every((set) => set.has(index)) && metric.targets[index]![1].toLowerCase().includes(text));
  }
}

function named([id, name, vpp_stage, micro_step]: TargetRow): TrendTarget {
  return { id, name, vpp_stage, micro_step };
}
