import { describe, expect, it } from 'vitest';
import type { CompareReport } from './data';
import { pairOfOrigin } from './pairs';

const reportOf = (labels: string[], origin: object | null) =>
  ({ summary: { pairs: labels.map((label) => ({ label })), verdict: { outcome: origin ? 'origin' : 'equal', origins: origin ? [origin] : [] } } }) as unknown as CompareReport;

describe('the pair to begin with', () => {
  it('is that of the rank and step of the origin', () => {
    expect(pairOfOrigin(reportOf(['rank0', 'rank1', 'rank12', 'rank2'], { ranks: [2, 1], step: 0 }))).toBe(3);
    expect(pairOfOrigin(reportOf(['step0 rank0', 'step0 rank1', 'step1 rank0', 'step1 rank1'], { ranks: [1], step: 1 }))).toBe(3);
  });
  it('is the first where no rank is known, or none has a pair', () => {
    expect(pairOfOrigin(reportOf([''], { ranks: [], step: null }))).toBe(0);
    expect(pairOfOrigin(reportOf(['rank', 'debug'], { ranks: [0], step: 0 }))).toBe(0);
    expect(pairOfOrigin(reportOf(['rank0', 'rank1'], null))).toBe(0);
  });
});
