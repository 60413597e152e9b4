import { LEVELS, type Level, type Side } from '../api/types';
import type { State } from './store';

export const TABS = ['overview', 'items', 'tensor', 'flow', 'stack', 'merge'] as const;
export type Tab = (typeof TABS)[number];

/** What the search keeps. */
export interface LinkFilter {
  side: Side;
  query: string;
  levels: Level[];
  leaves: boolean;
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
  overflow?: boolean | undefined; // colours of overflow levels
  filter?: LinkFilter | undefined;
}

/** Of what is shown. */
export function linkOf(state: State): Link | null {
  const { file, step, rank, microStep, selection, tab, mode, config, search } = state;
  if (!file) return null;
  const { side, query, levels, leaves } = search;
  return {
    file,
    step,
    rank,
    microStep,
    ...(selection ? { side: selection.side, node: selection.name } : {}),
    tab: selection ? tab : undefined,
    overflow: mode === 'overflow' && config?.graph_type === 'compare',
    filter: { side, query: query.trim(), levels, leaves },
  };
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
    overflow: query.get('colors') === 'overflow' ? true : undefined,
    filter: levels.length > 0 || text ? { side: sideOf(query.get('in')) ?? 'NPU', query: text, levels, leaves: query.get('leaves') === '1' } : undefined,
  };
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
  if (link.overflow) query.set('colors', 'overflow');
  const { filter } = link;
  if (filter && (filter.levels.length > 0 || filter.query)) {
    if (filter.query) query.set('q', filter.query);
    if (filter.levels.length > 0) query.set('level', filter.levels.join(','));
    if (filter.leaves) query.set('leaves', '1');
    if (filter.side !== 'NPU') query.set('in', filter.side);
  }
  return `#${query}`;
}
