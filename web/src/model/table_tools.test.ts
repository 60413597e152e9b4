import { describe, expect, it } from 'vitest';
import type { ItemTable, Pair } from './table';
import { sortPairs, toCsv } from './table_tools';

const pair = (item: string, Max: string | undefined, change: Partial<Pair> = {}): Pair => ({ item, target: { name: `n.${item}`, values: Max === undefined ? {} : { Max } }, golden: null, result: null, messages: [], ...change });

describe('sorting', () => {
  const pairs = [pair('a', '10.0'), pair('b', 'nan'), pair('c', '-2%'), pair('d', undefined), pair('e', '-inf'), pair('f', '9')];
  const order = (descending: boolean) => sortPairs(pairs, { column: 'Max', descending }).map(({ item }) => item).join('');
  it('is by number, what is missing last either way', () => {
    expect([order(false), order(true)]).toEqual(['ecfabd', 'bafced']);
  });
  it('is by verdict, or not at all', () => {
    const rated = [pair('a', '1', { result: 'pass' }), pair('b', '1', { result: 'error' }), pair('c', '1')];
    expect(sortPairs(rated, { column: 'Result', descending: true }).map(({ item }) => item)).toEqual(['b', 'a', 'c']);
    expect(sortPairs(rated, null)).toBe(rated);
  });
});

describe('csv', () => {
  it('keeps all digits and starts no formula', () => {
    const values = { Max: '0.1234567890123', shape: '[2, 3]', note: '=cmd()', Min: '-5' };
    const table: ItemTable = { pairs: [pair('x', '', { target: { name: 'n.x', values }, result: 'error', messages: ['say "no"'] })], compared: ['note'], valued: ['Max', 'shape', 'Min'], rest: [] };
    expect(toCsv(table, { target: 'T', golden: 'G' })).toBe(`item,side,name,Result,Max,shape,Min,note,Err_message\r\nx,T,n.x,error,0.1234567890123,"[2, 3]",-5,'=cmd(),"say ""no"""\r\n`);
  });
});
