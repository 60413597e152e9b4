import { HIT_SORTS, LEVELS, type Config, type HitSort, type Level, type Side } from '../api/types';
import type { ColorMode } from './status';
import type { State } from './store';
import { TABS, type Tab } from './tabs';

/** What the search keeps. */
export interface LinkFilter {
  side: Side;
  query: string;
  levels: Level[];
  leaves: boolean;
  sort: HitSort;
}

/** The colours that an address can ask for. */
const COLORS = ['rules', 'overflow'] as const;
export type LinkColors = (typeof COLORS)[number];

function colorsOf({ mode, config }: State): LinkColors | undefined {
  if (config?.graph_type !== 'compare') return undefined;
  return mode === 'overflow' ? 'overflow' : mode === 'precision' && config.verdicts ? 'rules' : undefined;
}

/** The verdict leads where there is one, unless the address or the visitor (`rules`) wants otherwise. */
export function modeFor({ overflow_check, graph_type, verdicts }: Config, { colors }: Link, rules: boolean): ColorMode {
  if (overflow_check && (colors === 'overflow' || graph_type === 'build')) return 'overflow';
  return verdicts && colors !== 'rules' && !rules ? 'verdict' : 'precision';
}

/** What the address names: enough to show a colleague the same. */
export interface Link {
  file: string;
  step?: number | undefined;
  rank?: number | undefined;
  side?: Side | undefined;
  node?: string | undefined;
  microStep?: number | undefined;
  tab?: Tab | undefined;
  colors?: LinkColors | undefined; // none: as the file and the visitor have it
  filter?: LinkFilter | undefined;
}

/** Of what is shown. */
export function linkOf(state: State): Link | null {
  const { file, step, rank, microStep, selection, tab, search } = state;
  if (!file) return null;
  const { side, query, levels, leaves, sort } = search;
  return {
    file,
    step,
    rank,
    microStep,
    ...(selection ? { side: selection.side, node: selection.name } : {}),
    tab: selection ? tab : undefined,
    colors: colorsOf(state),
    filter: { side, query: query.trim(), levels, leaves, sort },
  };
}

/** What another graph of the file can show as well. */
export function keptOf(state: State): Pick<Link, 'side' | 'node' | 'filter'> {
  const { side, node, filter } = linkOf(state) ?? {};
  const looking = filter && (filter.query !== '' || filter.levels.length > 0);
  return { ...(node ? { side, node } : {}), ...(looking ? { filter } : {}) };
}

/** The wanted step or rank, where the file has it. */
export function oneOfThese(list: number[], wanted: number | null | undefined): number {
  return typeof wanted === 'number' && list.includes(wanted) ? wanted : (list[0] ?? 0);
}

function wholeNumber(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

const oneOf = <T extends string>(list: readonly T[], text: string | null): T | undefined => list.find((value) => value === text);
const sideOf = (text: string | null) => oneOf(['NPU', 'Bench'] as const, text);

export function parseLink(hash: string): Link | null {
  const query = new URLSearchParams(hash.replace(/^#/, ''));
  const file = query.get('file');
  if (!file) return null;
  const named = (query.get('level') ?? '').split(',');
  const levels = LEVELS.filter((level) => named.includes(level));
  const text = query.get('q') ?? '';
  return {
    file,
    step: wholeNumber(query.get('step')),
    rank: wholeNumber(query.get('rank')),
    side: sideOf(query.get('side')),
    node: query.get('node') || undefined,
    microStep: wholeNumber(query.get('micro_step')),
    tab: oneOf(TABS, query.get('tab')),
    colors: oneOf(COLORS, query.get('colors')),
    filter: levels.length > 0 || text ? { side: sideOf(query.get('in')) ?? 'NPU', query: text, levels, leaves: query.get('leaves') === '1', sort: oneOf(HIT_SORTS, query.get('sort')) ?? 'execution' } : undefined,
  };
}

/** Which graph and node it is about, whatever the tab or the filter. */
export function placeOf({ file, step, rank, side, node }: Link): string {
  return JSON.stringify([file, step, rank, node ? (side ?? 'NPU') : null, node ?? null]);
}

export function formatLink(link: Link): string {
  const query = new URLSearchParams({ file: link.file });
  if (link.step !== undefined) query.set('step', String(link.step));
  if (link.rank !== undefined) query.set('rank', String(link.rank));
  if (link.microStep !== undefined && link.microStep >= 0) query.set('micro_step', String(link.microStep));
  if (link.node) {
    query.set('side', link.side ?? 'NPU');
    query.set('node', link.node);
  }
  if (link.tab && link.tab !== 'items') query.set('tab', link.tab);
  if (link.colors) query.set('colors', link.colors);
  const { filter } = link;
  if (filter && (filter.levels.length > 0 || filter.query)) {
    if (filter.query) query.set('q', filter.query);
    if (filter.levels.length > 0) query.set('level', filter.levels.join(','));
    if (filter.leaves) query.set('leaves', '1');
    if (filter.sort !== 'execution') query.set('sort', filter.sort);
    if (filter.side !== 'NPU') query.set('in', filter.side);
  }
  return `#${query}`;
}
