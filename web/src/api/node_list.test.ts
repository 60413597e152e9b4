import { describe, expect, it } from 'vitest';
import { readNode } from './node_list';

describe('a node as a list', () => {
  it('is the node', () => {
    expect(readNode(['Functional.linear.0.forward', 3, 1, 0, 7, 0.5, 'high', true, 2, 0, 1, 0, 1, 'suspicious', 1, 2])).toEqual({
      name: 'Functional.linear.0.forward',
      label: 'linear.0.forward',
      type: 1,
      children: 0,
      order: 7,
      precision: 0.5,
      overflow: 'high',
      verdict: 'suspicious',
      matched: 'Functional.linear.0.forward',
      micro_step: 2,
      counts: { error: 0, warning: 1, unmatched: 0, overflow: 1, suspicious: 1, bug: 2 },
    });
  });

  it('has the label and the partner that it says', () => {
    const read = (name: string, parts: number, matched: string | true | null) => {
      const { label, matched: partner } = readNode([name, parts, 0, 0, 0, null, null, matched, 0, 0, 0, 0, 0, null, 0, 0]);
      return [label, partner];
    };
    expect(read('Module.head.Linear.forward.0', 5, null)).toEqual(['Module.head.Linear.forward.0', null]);
    expect(read('DefaultModel', 1, 'other')).toEqual(['DefaultModel', 'other']);
    expect(read('.a.', 3, null)).toEqual(['.a.', null]);
    expect(read('.a.', 2, null)).toEqual(['a.', null]);
    expect(read('', 1, true)).toEqual(['', '']);
    expect(read('Ein.Öl.ß', 2, null)).toEqual(['Öl.ß', null]);
  });
});
