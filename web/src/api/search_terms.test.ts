import { describe, expect, it } from 'vitest';
import CASES from '../../../src/view/search/search_cases.json';
import { ApiError } from './client';
import { parseSearch, type Searched } from './search_terms';
import type { Level } from './types';

interface Given {
  name: string;
  type: number;
  level?: string;
  overflow?: string;
  verdict?: string;
  error?: number | 'inf';
  dtypes?: string[];
  matched?: boolean;
}

const COLLECTION = 9;

function searched({ name, type, level, overflow, verdict, matched = true, error = NaN, dtypes = [] }: Given): Searched {
  const levels: (string | undefined)[] = !matched ? ['unmatched', overflow] : [level ?? 'none', overflow, verdict ?? 'unjudged'];
  if (overflow) levels.push('overflow');
  return { name, type, error: error === 'inf' ? Infinity : error, dtypes, has: (wanted: Level) => type !== COLLECTION && levels.includes(wanted) };
}

const NODES = (CASES.nodes as Given[]).map(searched);

describe('the search of a page without a server', () => {
  it.each(CASES.found as { q: string; nodes: number[]; words: string[]; side?: string; rank?: number }[])('finds what the server finds: $q', ({ q, nodes, words, side, rank }) => {
    const terms = parseSearch(q);
    expect(NODES.flatMap((node, index) => (terms.keeps(node) ? [index] : []))).toEqual(nodes);
    expect(terms.words).toEqual(words);
    expect(terms.asksErrors).toBe(/error[<>]/i.test(q));
    expect(terms.asksDtypes).toBe(/dtype:/i.test(q));
    expect(terms.rank).toBe(rank ?? null);
    expect(terms.side).toBe(side === undefined ? null : side === 'golden' ? 'Bench' : 'NPU');
  });
  it.each(CASES.refused)('refuses $q in the same words', ({ q, error }) => {
    expect(() => parseSearch(q)).toThrow(new ApiError(error, 400));
  });
});
