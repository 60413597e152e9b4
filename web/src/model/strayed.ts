import type { Config } from '../api/types';

/** What a link names and the file does not have. */
export interface Strayed {
  step?: number | undefined;
  rank?: number | undefined;
  microStep?: number | undefined;
}

/** Null when the file has everything that the link names. */
export function strayedFrom({ step, rank, microStep }: Strayed, { steps, ranks, micro_steps }: Config): Strayed | null {
  const strayed: Strayed = {
    ...(step !== undefined && !steps.includes(step) ? { step } : {}),
    ...(rank !== undefined && !ranks.includes(rank) ? { rank } : {}),
    ...(microStep !== undefined && microStep >= Math.max(micro_steps, 1) ? { microStep } : {}),
  };
  return Object.keys(strayed).length > 0 ? strayed : null;
}
