import { describe, expect, it } from 'vitest';
import { markdownOf, splitPlace } from './headline';

describe('a headline', () => {
  it('is copied with its lines as Markdown that keeps the names', () => {
    expect(markdownOf(['Origin: fc_1.weight differs', 'op: Tensor.__mul__.0', 'next: a*b'])).toBe('**Origin: fc\\_1.weight differs**\n\n- op: Tensor.\\_\\_mul\\_\\_.0\n- next: a\\*b\n');
    expect(markdownOf(['No difference'])).toBe('**No difference**\n');
  });
  it('gives the place in the run, which stands last, by itself', () => {
    expect(splitPlace('Origin: fc.weight differs (Norm 2, golden 1) (ranks 0, 2-4, step 1)')).toEqual(['Origin: fc.weight differs (Norm 2, golden 1)', ' (ranks 0, 2-4, step 1)']);
    expect(splitPlace('误差源头：fc 的输出不一致（rank 0，step 1）')[1]).toBe('（rank 0，step 1）');
    expect(splitPlace('No difference: 3 ops (all)')).toEqual(['No difference: 3 ops (all)', '']);
  });
});
