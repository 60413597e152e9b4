import { describe, expect, it } from 'vitest';
import { CATALOGUES, translator } from './index';

const { en, zh } = CATALOGUES;
const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();

describe('catalogues', () => {
  it('have the same keys, none empty', () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
    for (const texts of [en, zh]) for (const text of Object.values(texts)) expect(text.trim()).not.toBe('');
  });
  it('fill the same places', () => {
    for (const key of Object.keys(en) as (keyof typeof en)[]) expect(places(zh[key]), key).toEqual(places(en[key]));
  });
  it('hold Chinese where English words would be read out', () => {
    const same = (Object.keys(en) as (keyof typeof en)[]).filter((key) => zh[key] === en[key]);
    expect(same.sort()).toEqual(['select.microStep', 'select.rank', 'select.step']);
  });
  it('have no text that nothing shows', () => {
    const files = import.meta.glob<string>('../**/*.tsx', { query: '?raw', import: 'default', eager: true });
    const source = Object.values(files).join('\n');
    const families = /^(status|side|view|files|details|theme|fault|overview|finding|figure|match|refusal|verdict|said|legend|single|merge|report|run\.health|search\.sort)\./; // some are put together from a prefix and a value
    for (const key of Object.keys(en)) expect(source.includes(`'${key}'`) || families.test(key), key).toBe(true);
  });
});

describe('components', () => {
  it('hold no words of their own', () => {
    const files = import.meta.glob<string>('../**/*.tsx', { query: '?raw', import: 'default', eager: true });
    const own: string[] = [];
    for (const [file, source] of Object.entries(files)) {
      const markup = source.replace(/=>/g, '').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
      // Letters between tags, and attributes that are read out or shown.
      for (const [, text = ''] of markup.matchAll(/<\/?[a-z]+(?:\s[^<>]*)?>\s*([A-Za-z\u4e00-\u9fff][^<>{}]*)</g)) own.push(`${file}: ${text.trim()}`);
      for (const [text] of markup.matchAll(/\b(?:title|aria-label|placeholder|alt)="[^"]+"/g)) own.push(`${file}: ${text}`);
    }
    expect(own).toEqual(['../panels/top_bar.tsx: msprobe']); // the name of the product
  });
});

describe('translator', () => {
  it('fills in values', () => {
    expect(translator('en')('said.level', { level: 'Error', text: 'x is bad' })).toBe('Error: x is bad');
    expect(translator('zh')('graph.level', { level: 3 })).toBe('第 3 层');
  });
});
