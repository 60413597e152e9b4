import type { GridQuery, LineQuery, TrendApi, TrendFilter, TrendGrid, TrendInfo, TrendPoint, TrendTarget } from '../api/trends';
import { parseRunLink, type RunChoice } from './run_choice';
import type { ScaleMode } from './trend_scale';

export const PAGE_ROWS = 1000;
export const MOST_LINES = 8;
const MOST_PAGES = 8; // of a second run, for one of the first

/** What is looked at: enough to show a colleague the same. */
export interface TrendChoice extends TrendFilter {
  file: string;
  other: string | null; // a second run
  outliers: boolean; // rows with a value far from the others of its line first
}

export interface TrendLine {
  label: string;
  query: LineQuery;
  points: TrendPoint[];
  other: TrendPoint[] | null; // of the second run
}

/** The map as it is drawn; the second run's values stand where the first has the same target and column. */
export interface TrendMap {
  grid: TrendGrid;
  other: (number | null)[] | null;
  labels: string[]; // of rows
}

export function targetLabel(target: TrendTarget): string {
  const more = [target.vpp_stage ? `vpp ${target.vpp_stage}` : '', target.micro_step ? `#${target.micro_step}` : ''];
  return [target.name, ...more.filter(Boolean)].join(' ');
}

/** Choices that the file has; what it has not becomes its first. */
export function fitChoice(info: TrendInfo, wanted: Partial<TrendChoice> & { file: string }): TrendChoice | null {
  const metric = info.metrics.find((m) => m.name === wanted.metric) ?? info.metrics[0];
  if (!metric) return null;
  const stat = metric.stats.find((s) => s === wanted.stat) ?? metric.stats[0] ?? '';
  const dimension = wanted.dimension ?? 'rank';
  const values = dimension === 'rank' ? info.ranks : info.steps;
  const value = wanted.value !== undefined && (dimension === 'target' || values.includes(wanted.value)) ? wanted.value : (values[0] ?? 0);
  const names = new Set(metric.tags.map((tag) => tag.name));
  return {
    file: wanted.file,
    other: wanted.other ?? null,
    metric: metric.name,
    stat,
    dimension,
    value,
    tags: (wanted.tags ?? []).filter((tag) => names.has(tag)),
    q: wanted.q ?? '',
    outliers: wanted.outliers ?? false,
    offset: wanted.offset ?? 0,
  };
}

/** What a link names and the file does not have, in the words of links. */
export function missingChoice(info: TrendInfo, wanted: Partial<TrendChoice>): string[] {
  const metric = info.metrics.find((m) => m.name === wanted.metric);
  const { dimension, value, tags = [] } = wanted;
  const places = dimension === 'rank' ? info.ranks : dimension === 'step' ? info.steps : null;
  const known = new Set(metric?.tags.map((tag) => tag.name));
  return [
    ...(wanted.metric !== undefined && !metric ? [`metric ${wanted.metric}`] : []),
    ...(wanted.stat !== undefined && metric && !metric.stats.includes(wanted.stat) ? [`stat ${wanted.stat}`] : []),
    ...(places && value !== undefined && !places.includes(value) ? [`${dimension} ${value}`] : []),
    ...(metric ? tags.filter((tag) => !known.has(tag)).map((tag) => `tag ${tag}`) : []),
  ];
}

const key = (target: TrendTarget) => `${target.name}\n${target.vpp_stage}\n${target.micro_step}`;

/** The values of `other` in the rows and columns of `grid`. */
export function alignGrid(grid: TrendGrid, other: TrendGrid): (number | null)[] {
  const columns = new Map(other.columns.map((at, index) => [at, index]));
  const rows = new Map<string | number, number>(other.rows.length > 0 ? other.rows.map((row, i) => [key(row), i]) : other.ranks.map((rank, i) => [rank, i]));
  const names: (string | number)[] = grid.rows.length > 0 ? grid.rows.map(key) : grid.ranks;
  return names.flatMap((name) => {
    const row = rows.get(name);
    return grid.columns.map((at) => {
      const column = columns.get(at);
      return row === undefined || column === undefined ? null : (other.values[row * other.columns.length + column] ?? null);
    });
  });
}

export async function loadMap(api: TrendApi, choice: TrendChoice, target: TrendTarget | null): Promise<TrendMap> {
  const { metric, stat, dimension, value, tags, q, offset, outliers } = choice;
  const query: GridQuery = { metric, stat, dimension, value, tags, q, offset, limit: PAGE_ROWS, order: outliers ? 'outliers' : undefined };
  const grid = await api.grid(choice.file, query);
  const labels = dimension === 'target' ? grid.ranks.map(String) : grid.rows.map(targetLabel);
  return { grid, labels, other: choice.other === null ? null : await loadOther(api, choice.other, { ...query, order: undefined }, grid, target) };
}

/** Targets have other ids in another file, and what it does not have at all is left empty. */
async function loadOther(api: TrendApi, file: string, query: GridQuery, grid: TrendGrid, target: TrendTarget | null): Promise<(number | null)[]> {
  const info = await api.info(file);
  const none = grid.values.map(() => null);
  const has = info.metrics.find((m) => m.name === query.metric);
  if (!has?.stats.includes(query.stat)) return none;
  if (query.dimension !== 'target') {
    const values = query.dimension === 'rank' ? info.ranks : info.steps;
    if (!values.includes(query.value)) return none;
    const tags = query.tags.filter((tag) => has.tags.some((t) => t.name === tag));
    return loadRows(api, file, { ...query, tags }, grid);
  }
  const named = target && (await api.grid(file, { ...query, dimension: 'rank', value: info.ranks[0] ?? 0, q: target.name, tags: [], offset: 0 }));
  const same = named?.rows.find((row) => key(row) === key(target!));
  return same ? alignGrid(grid, await api.grid(file, { ...query, value: same.id })) : none;
}

/** The rows of `grid` in another file: mostly they stand on the same page, else behind or before it. Pages may be short. */
async function loadRows(api: TrendApi, file: string, query: GridQuery, grid: TrendGrid): Promise<(number | null)[]> {
  const out: (number | null)[] = grid.values.map(() => null);
  const left = new Set(grid.rows.map(key));
  let asked = 0;
  let size = 0; // of a page
  const more = () => left.size > 0 && asked < MOST_PAGES;
  const take = async (offset: number, limit: number) => {
    asked++;
    const page = await api.grid(file, { ...query, offset, limit });
    alignGrid(grid, page).forEach((value, index) => (out[index] = value ?? out[index]!));
    for (const row of page.rows) left.delete(key(row));
    size = page.rows.length || size;
    return page;
  };
  for (let at = query.offset, end = Infinity; more() && at < end; ) {
    const { total, rows } = await take(at, PAGE_ROWS);
    at += rows.length;
    end = rows.length > 0 ? total : 0;
  }
  for (let end = query.offset; more() && end > 0; ) {
    const offset = Math.max(0, end - (size || PAGE_ROWS));
    const { rows } = await take(offset, end - offset);
    if (rows.length === 0) break; // it has fewer rows than that
    if (offset + rows.length >= end) end = offset;
  }
  return out;
}

export type LineAxis = 'step' | 'rank';

/** The line through a cell: along the steps of its rank, or along the ranks of its step. */
export function lineQuery(choice: TrendChoice, map: TrendMap, row: number, column: number, target: TrendTarget | null, axis: LineAxis): LineQuery | null {
  const at = map.grid.columns[column];
  const named = choice.dimension === 'target' ? target : map.grid.rows[row];
  const rank = choice.dimension === 'step' ? at : choice.dimension === 'rank' ? choice.value : map.grid.ranks[row];
  const step = choice.dimension === 'step' ? choice.value : at;
  if (!named || rank === undefined || step === undefined) return null;
  const { metric, stat } = choice;
  const { name, vpp_stage, micro_step } = named;
  return { metric, stat, name, vpp_stage, micro_step, ...(axis === 'step' ? { rank } : { step }) };
}

export async function loadLine(api: TrendApi, choice: TrendChoice, query: LineQuery): Promise<TrendLine> {
  const points = await api.line(choice.file, query);
  const other = choice.other === null ? null : await api.line(choice.other, query).catch(() => []); // the run may not have it
  const place = query.rank !== undefined ? `rank ${query.rank}` : `step ${query.step}`;
  const label = `${targetLabel({ id: 0, ...query })} · ${query.metric} ${query.stat} · ${place}`;
  return { label, query, points, other };
}

export function parseTrendLink(hash: string): (Partial<TrendChoice> & { file: string; run?: Partial<RunChoice> }) | null {
  const run = parseRunLink(hash);
  if (run) return { file: run.run, run };
  const query = new URLSearchParams(hash.replace(/^#/, ''));
  const file = query.get('trend');
  if (!file) return null;
  const dimension = query.get('by');
  const value = query.get('value');
  return {
    file,
    other: query.get('with'),
    ...(query.has('metric') ? { metric: query.get('metric')! } : {}),
    ...(query.has('stat') ? { stat: query.get('stat')! } : {}),
    // Ids of targets are those of one file as it is now: a link does not name them.
    ...(dimension === 'step' || dimension === 'rank' ? { dimension, ...(value !== null && /^\d{1,9}$/.test(value) ? { value: Number(value) } : {}) } : {}),
    tags: query.getAll('tag'),
    q: query.get('q') ?? '',
    outliers: query.get('order') === 'outliers',
  };
}

export function formatTrendLink(choice: TrendChoice): string {
  const query = new URLSearchParams({ trend: choice.file, metric: choice.metric, stat: choice.stat, by: choice.dimension, value: String(choice.value) });
  if (choice.other !== null) query.set('with', choice.other);
  if (choice.q) query.set('q', choice.q);
  if (choice.outliers) query.set('order', 'outliers');
  for (const tag of choice.tags) query.append('tag', tag);
  return `#${query}`;
}

const quote = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
/** A name that a spreadsheet would take for a formula is kept from that. */
const name = (text: string) => quote(/^[=+\-@]/.test(text) ? `'${text}` : text);

export function mapCsv(choice: TrendChoice, map: TrendMap): string {
  const { columns, values } = map.grid;
  const lines = [[choice.dimension === 'target' ? 'rank' : 'name', ...columns.map((at) => `${choice.dimension === 'step' ? 'rank' : 'step'} ${at}`)].join(',')];
  map.labels.forEach((label, row) => {
    lines.push([name(label), ...columns.map((_, i) => String(values[row * columns.length + i] ?? ''))].join(','));
  });
  return `${lines.join('\n')}\n`;
}

export type MapView = 'first' | 'other' | 'difference';

export interface MapLook {
  mode: ScaleMode;
  view: MapView;
}
