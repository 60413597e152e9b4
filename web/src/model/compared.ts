import type { Config } from '../api/types';

/** The ends of two paths that tell them apart: from the first part in which they differ on. */
function ends(target: string, golden: string): [string, string] {
  const a = target.split('/');
  const b = golden.split('/');
  let same = 0;
  while (same < Math.min(a.length, b.length) - 1 && a[same] === b[same]) same++;
  return [a.slice(same).join('/'), b.slice(same).join('/')];
}

/** The dumps that a file shows: short, for where room is short, and as they were given; null where the file does not say. */
export function dumpsOf({ target, golden }: Pick<Config, 'target' | 'golden'>): { short: string[]; full: string[] } | null {
  if (!target) return null;
  if (!golden) return { short: [target.slice(target.lastIndexOf('/') + 1)], full: [target] };
  return { short: ends(target, golden), full: [target, golden] };
}
