import { expect, test } from 'vitest';
import { dumpsOf } from './compared';

test('two dumps are told apart by where their paths part', () => {
  expect(dumpsOf({ target: '/data/runs/new/dump', golden: '/data/runs/good/dump' })?.short).toEqual(['new/dump', 'good/dump']);
  expect(dumpsOf({ target: '/data/a', golden: '/data/a/b' })?.short).toEqual(['a', 'a/b']);
  expect(dumpsOf({ target: '/data/a', golden: '/data/a' })?.short).toEqual(['a', 'a']);
});

test('a run by itself has one path, and older files have none', () => {
  expect(dumpsOf({ target: '/data/run', golden: '' })).toEqual({ short: ['run'], full: ['/data/run'] });
  expect(dumpsOf({ target: '', golden: '' })).toBeNull();
  expect(dumpsOf({})).toBeNull();
});
