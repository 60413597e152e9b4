import { expect, it } from 'vitest';
import { formatLink, parseLink } from './link';

it('brings every part back', () => {
  const link = { file: 'a b/compare_2026.vis.db', step: 2, rank: 13, side: 'Bench' as const, node: 'Module.a&b=c#.Linear.forward.0' };
  expect(parseLink(formatLink(link))).toEqual(link);
});
it('needs a file and nothing else', () => {
  expect(parseLink('')).toBeNull();
  expect(parseLink('#step=1')).toBeNull();
  expect(parseLink('#file=x.vis.db')).toEqual({ file: 'x.vis.db', step: undefined, rank: undefined, side: undefined, node: undefined });
});
it('drops what is not a number or a side', () => {
  expect(parseLink('#file=x&step=-1&rank=1e9&side=Evil')).toMatchObject({ step: undefined, rank: undefined, side: undefined });
});
