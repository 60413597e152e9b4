import { layerOf } from '../api/run_names';
import { RUN_CELLS, RUN_FOLDS, type RunCell, type RunEvent, type RunFold, type RunInfo } from '../api/runs';
import type { ScaleMode } from './trend_scale';

/** What is looked at of a monitored run: enough to show a colleague the same. */
export interface RunChoice {
  run: string;
  other: string | null; // a second run
  rank: number;
  metric: string;
  stat: string;
  fold: RunFold;
  cell: RunCell;
  q: string;
  scale: ScaleMode;
  steps: [from: number, to: number] | null; // null: all, also those to come
}

/** Metrics that say most, first. */
const LEADING = ['grad_reduced', 'grad_unreduced', 'param_update', 'actv'];

export function fitRunChoice(info: RunInfo, wanted: Partial<RunChoice> & { run: string }): RunChoice | null {
  const best = LEADING.map((name) => info.metrics.find((m) => m.name === name)).find(Boolean);
  const metric = info.metrics.find((m) => m.name === wanted.metric) ?? best ?? info.metrics[0];
  if (!metric) return null;
  const stat = metric.stats.find((s) => s === wanted.stat) ?? metric.stats.find((s) => s === 'norm') ?? metric.stats[0] ?? '';
  const rank = wanted.rank !== undefined && info.ranks.includes(wanted.rank) ? wanted.rank : (info.ranks[0] ?? 0);
  const { run, other = null, fold = 'layer', cell = 'highest', q = '', scale = 'log', steps = null } = wanted;
  return { run, other, rank, metric: metric.name, stat, fold, cell, q, scale, steps };
}

const oneOf = <T extends string>(values: readonly T[], text: string | null): T | undefined => values.find((value) => value === text);

export function parseRunLink(hash: string): (Partial<RunChoice> & { run: string }) | null {
  const query = new URLSearchParams(hash.replace(/^#/, ''));
  const run = query.get('run');
  if (!run) return null;
  const whole = (name: string) => (/^-?\d{1,12}$/.test(query.get(name) ?? '') ? Number(query.get(name)) : undefined);
  const [from, to] = [whole('from'), whole('to')];
  const wanted: Partial<RunChoice> = {
    other: query.get('with'),
    rank: whole('rank'),
    metric: query.get('metric') ?? undefined,
    stat: query.get('stat') ?? undefined,
    fold: oneOf(RUN_FOLDS, query.get('fold')),
    cell: oneOf(RUN_CELLS, query.get('cell')),
    q: query.get('q') ?? undefined,
    scale: oneOf<ScaleMode>(['linear', 'log', 'sigma'], query.get('scale')),
    steps: from !== undefined && to !== undefined && from < to ? [from, to] : undefined,
  } as Partial<RunChoice>;
  for (const key of Object.keys(wanted) as (keyof RunChoice)[]) if (wanted[key] === undefined) delete wanted[key];
  return { run, ...wanted };
}

export function formatRunLink(choice: RunChoice): string {
  const { run, other, rank, metric, stat, fold, cell, q, scale, steps } = choice;
  const query = new URLSearchParams({ run, metric, stat, rank: String(rank), fold, cell, scale });
  if (other !== null) query.set('with', other);
  if (q) query.set('q', q);
  if (steps) [query.set('from', String(steps[0])), query.set('to', String(steps[1]))];
  return `#${query}`;
}

/** The loss of the run that is looked at, where it was recorded. */
export function lossOf(info: RunInfo, choice: RunChoice): RunChoice | null {
  const known = info.metrics.find(({ name }) => name === 'loss');
  return known ? { ...choice, metric: 'loss', stat: known.stats[0] ?? 'loss', fold: 'layer', cell: 'mean', q: '' } : null;
}

/** Rows of the map that a finding is about, as they are named where layers are folded and where not. */
export function rowsOf(event: RunEvent, fold: RunFold): string[] {
  const rows = event.rows ?? [];
  return [...new Set(fold === 'layer' ? rows.map(layerOf) : rows)];
}

/** Whether a link names a run and nothing of it: the page may then choose what to open. */
export function isBare(wanted: Partial<RunChoice> | null | undefined): boolean {
  return !wanted || (wanted.metric === undefined && wanted.steps === undefined && wanted.rank === undefined && !wanted.q && !wanted.other);
}

/** What a run is opened at: the finding that leads, where the run has what shows it. */
export function leadingOf(info: RunInfo, events: RunEvent[]): RunEvent | null {
  return events.find(({ leads, metric }) => leads && info.metrics.some(({ name }) => name === metric)) ?? null;
}

/** What a finding is best seen in: its metric, statistic and rank, where the run has them. */
export function choiceOf(info: RunInfo, choice: RunChoice, event: RunEvent): RunChoice {
  const rank = event.rank >= 0 ? event.rank : choice.rank;
  const { metric = choice.metric, stat = choice.stat } = event;
  return fitRunChoice(info, { ...choice, rank, metric, stat, q: '' }) ?? choice;
}
