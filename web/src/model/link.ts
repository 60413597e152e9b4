import type { Side } from '../api/types';

/** What the address names: enough to show a colleague the same node. */
export interface Link {
  file: string;
  step?: number | undefined;
  rank?: number | undefined;
  side?: Side | undefined;
  node?: string | undefined;
}

function wholeNumber(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

export function parseLink(hash: string): Link | null {
  const query = new URLSearchParams(hash.replace(/^#/, ''));
  const file = query.get('file');
  if (!file) return null;
  const side = query.get('side');
  return {
    file,
    step: wholeNumber(query.get('step')),
    rank: wholeNumber(query.get('rank')),
    side: side === 'NPU' || side === 'Bench' ? side : undefined,
    node: query.get('node') || undefined,
  };
}

export function formatLink(link: Link): string {
  const query = new URLSearchParams({ file: link.file });
  if (link.step !== undefined) query.set('step', String(link.step));
  if (link.rank !== undefined) query.set('rank', String(link.rank));
  if (link.node) {
    query.set('side', link.side ?? 'NPU');
    query.set('node', link.node);
  }
  return `#${query}`;
}
