import { expect, it } from 'vitest';
import { formatLink, parseLink } from './link';

it('brings every part back', () => {
  const link = { file: 'a b/compare_2026.vis.db', step: 2, rank: 13, side: 'Bench' as const, node: 'Module.a&b=c#.Linear.forward.0' };
  expect(parseLink(formatLink(link))).toEqual(link);
});
it('brings back what is filtered and how it is shown', () => {
  const filter = { side: 'Bench' as const, query: 'mlp & co', levels: ['error' as const, 'warning' as const], leaves: true, sort: 'module' as const };
  const link = { file: 'x.vis.db', step: 0, rank: 1, side: 'NPU' as const, node: 'a', microStep: 3, tab: 'flow' as const, colors: 'rules' as const, filter };
  expect(parseLink(formatLink(link))).toEqual(link);
  expect(parseLink('#file=x&q=a&sort=evil')?.filter?.sort).toBe('execution');
  expect(formatLink({ file: 'x', filter: { ...filter, sort: 'execution' } })).not.toContain('sort');
  expect(parseLink('#file=x&level=evil&tab=evil&colors=evil&micro_step=-1')).toMatchObject({ filter: undefined, tab: undefined, colors: undefined, microStep: undefined });
  expect(formatLink({ file: 'x', step: 0, rank: 0, microStep: -1, tab: 'items', colors: undefined, filter: { side: 'NPU', query: '', levels: [], leaves: true, sort: 'error' } })).toBe('#file=x&step=0&rank=0');
});
it('needs a file and nothing else', () => {
  expect(parseLink('')).toBeNull();
  expect(parseLink('#step=1')).toBeNull();
  expect(parseLink('#file=x.vis.db')).toEqual({ file: 'x.vis.db', step: undefined, rank: undefined, side: undefined, node: undefined });
});
it('drops what is not a number or a side', () => {
  expect(parseLink('#file=x&step=-1&rank=1e9&side=Evil')).toMatchObject({ step: undefined, rank: undefined, side: undefined });
});
