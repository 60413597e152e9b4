import { describe, expect, it } from 'vitest';
import { nearestStep, niceTicks } from './line_scale';

describe('the axes of curves', () => {
  it('have round numbers within what is drawn', () => {
    expect(niceTicks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(niceTicks(0.13, 0.31, 4)).toEqual([0.15, 0.2, 0.25, 0.3]);
    expect(niceTicks(-1e-7, 1e-7, 4)).toEqual([-1e-7, -5e-8, 0, 5e-8, 1e-7]);
  });
  it('end where there is nothing between two ends', () => {
    expect(niceTicks(3, 3, 5)).toEqual([3]);
    expect(niceTicks(0, Infinity, 5)).toEqual([0]);
  });
  it('find the step that is pointed at', () => {
    expect(nearestStep([1, 200, 100], 120)).toBe(100);
    expect(nearestStep([], 3)).toBeNull();
  });
});
