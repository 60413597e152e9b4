import type { CompareReport } from './data';

/** The pair to begin with: the one in which the origin is, so that its rows are those of the answer. */
export function pairOfOrigin({ summary: { pairs, verdict } }: Pick<CompareReport, 'summary'>): number {
  const origin = verdict.outcome === 'origin' ? verdict.origins[0] : undefined;
  const rank = origin?.ranks?.[0];
  if (origin === undefined || rank === undefined) return 0;
  // "rank2", "step0 rank2", "pynative step0 rank2"
  const found = pairs.findIndex(({ label }) => {
    const words = label.split(' ');
    const steps = words.filter((word) => /^step\d+$/.test(word));
    return words.includes(`rank${rank}`) && (steps.length === 0 || steps.includes(`step${origin.step}`));
  });
  return Math.max(found, 0);
}
