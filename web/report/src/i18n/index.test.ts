import { describe, expect, it } from 'vitest';
import { CATALOGUES, translateDetail, translateOrigin, translateWhy, translator } from './index';

const { en, zh } = CATALOGUES;
const keys = Object.keys(en) as (keyof typeof en)[];
const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
const sources = import.meta.glob<string>('../**/*.tsx', { query: '?raw', import: 'default', eager: true });

describe('catalogues', () => {
  it('have the same keys, none empty', () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
    for (const texts of [en, zh]) for (const text of Object.values(texts)) expect(text.trim()).not.toBe('');
  });
  it('fill the same places', () => {
    for (const key of keys) expect(places(zh[key]), key).toEqual(places(en[key]));
  });
  it('hold Chinese where English words would be read out', () => {
    expect(keys.filter((key) => zh[key] === en[key])).toEqual([]);
  });
  it('have no text that nothing shows', () => {
    const all = Object.values(sources).join('\n');
    const families = /^(mode|verdict|advice|direction|measure|detail|story|ruler|judged|replay|why|part|checked|origin|float64|lab\.status|document\.kind)\./; // some are put together from a prefix and a value
    for (const key of keys) expect(all.includes(`'${key}'`) || families.test(key), key).toBe(true);
  });
});

describe('components', () => {
  it('hold no words of their own', () => {
    const own: string[] = [];
    for (const [file, source] of Object.entries(sources)) {
      const markup = source.replace(/=>/g, '').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
      for (const [, text = ''] of markup.matchAll(/<\/?[a-z0-9]+(?:\s[^<>]*)?>\s*([A-Za-z\u4e00-\u9fff][^<>{}]*)</g)) own.push(`${file}: ${text.trim()}`);
      for (const [text] of markup.matchAll(/\b(?:title|aria-label|placeholder|alt)="[^"]+"/g)) own.push(`${file}: ${text}`);
    }
    expect(own).toEqual(['../app.tsx: msprobe']); // the name of the product
  });
  it('put in no markup', () => {
    for (const source of Object.values(sources)) expect(source).not.toMatch(/innerHTML|dangerously|insertAdjacent|document\.write/);
  });
});

describe('phrases of the command', () => {
  it('are translated, others stay', () => {
    const t = translator('zh');
    expect(translateDetail(t, 'Norm differs by 12.2 %')).toBe('Norm 相差 12.2 %');
    expect(translateDetail(t, 'shape [3] against [2]')).toBe('形状 [3] 对 [2]');
    expect(translateDetail(t, 'checksum aa against bb')).toBe('校验值 aa 对 bb');
    expect(translateDetail(t, 'Max nan against 1.0')).toBe('Max nan 对 1.0');
    expect(translateDetail(t, 'agree to 3.1e-07')).toBe('一致到 3.1e-07');
    expect(translateDetail(t, 'are equal')).toBe('相等');
    expect(translateDetail(t, 'values differ by 3.39 %')).toBe('数值相差 3.39 %');
    expect(translateDetail(t, 'is of torch.bfloat16 against torch.float32')).toBe('为 torch.bfloat16，标杆侧为 torch.float32');
    expect(translateDetail(t, 'is missing in the target')).toBe('在调试侧缺失');
    expect(translateDetail(t, 'Norm 5.301337138571699 against 4.241069710')).toBe('Norm 5.30134 对 4.24107');
    expect(translateDetail(t, 'something new')).toBe('something new');
    for (const text of ['Norm differs by 12.2 %', 'shape [3] against [2]', 'are equal']) expect(translateDetail(translator('en'), text)).toBe(text);
  });
  it('say where a value comes from', () => {
    expect(translateOrigin(translator('zh'), 'default of Megatron')).toBe('Megatron 的默认值');
    expect(translateOrigin(translator('en'), 'default of Megatron')).toBe('default of Megatron');
    expect(translateOrigin(translator('zh'), 'run.sh:21')).toBe('run.sh:21');
  });
  it('say in the reader\'s language why an op cannot be called again', () => {
    const t = translator('zh');
    expect(translateWhy(t, 'it draws random numbers')).toBe('会生成随机数');
    expect(translateWhy(t, 'the dump holds no values of input.1')).toBe('数据中没有 input.1 的值');
    expect(translateWhy(t, 'called again it gives [2, 3], the dump has [3, 2] as output.0')).toBe('重新调用得到 [2, 3]，而数据中 output.0 为 [3, 2]');
    expect(translateWhy(t, 'eps is taken to be 1e-5')).toBe('eps 取为 1e-5');
    expect(translateWhy(t, 'something new')).toBe('something new');
    for (const text of ['a communication needs its ranks', 'torch refuses the call (RuntimeError: a (b))']) expect(translateWhy(translator('en'), text)).toBe(text);
  });
});
