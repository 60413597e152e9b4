import { describe, expect, it } from 'vitest';
import { splitPlace } from './headline';

describe('a headline', () => {
  it('gives the place in the run, which stands last, by itself', () => {
    expect(splitPlace('Origin: fc.weight differs (Norm 2, golden 1) (ranks 0, 2-4, step 1)')).toEqual(['Origin: fc.weight differs (Norm 2, golden 1)', ' (ranks 0, 2-4, step 1)']);
    expect(splitPlace('误差源头：fc 的输出不一致（rank 0，step 1）')[1]).toBe('（rank 0，step 1）');
    expect(splitPlace('No difference: 3 ops (all)')).toEqual(['No difference: 3 ops (all)', '']);
  });
});
