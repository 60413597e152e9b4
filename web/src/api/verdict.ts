// What the tool says of a whole file, over all ranks and steps; docs/en/compare/verdict.md describes the fields.
import type { Outcome, Side } from './types';

export type { Outcome };

/** How a value is wrong; docs/en/compare/anatomy.md. Of "unexplained" there is nothing but the kind. */
export interface Anatomy {
  kind: string; // "factor", "unexplained"
  item?: string;
  parameter?: Record<string, unknown>;
  residual?: number; // in rounding units, when it is undone
  compared?: number;
  elements?: number;
  from?: 'tensors' | 'statistics';
  ambiguous?: boolean;
  text?: { en: string; zh: string };
}

/** Where something begins. */
export interface VerdictOrigin {
  cause: string; // "weight", "missing_op"
  overflow: boolean;
  step: number | null;
  ranks: number[]; // the first one is where to look
  op: string; // of the target; of a missing op that of the golden run
  module: string | null;
  source: string | null; // "model.py:93"
  function: string | null;
  item: string | null;
  parameter: string | null;
  what: string | null; // "Norm"
  target: string | null;
  golden: string | null;
  percent: number | null; // relative to the golden run
  units: number | 'inf';
  inputs: string | null;
  other_op: string | null;
  since: string | null;
  replay: string | null;
  anatomy: Anatomy | null;
}

export interface Story {
  version: 1;
  outcome: Outcome;
  compared: boolean; // false: one run by itself
  origins: VerdictOrigin[]; // the cause, then what does not follow from it
  reached: { rank: number; from: number[]; through: string | null }[];
  inherited: { ops: number; forward: number; backward: number };
  ops: { bit_equal: number; round_off: number; rewritten?: number; inherited: number; suspicious: number; bug: number; target_only: number; golden_only: number };
  text: { en: string[]; zh: string[] }; // the headline, then lines with a label
}

/** 0: the file was written without one. */
export type Verdict = { version: 0 } | Story;

/** A missing op is in the golden run only. */
export function originSide(origin: VerdictOrigin): Side {
  return origin.cause === 'missing_op' ? 'Bench' : 'NPU';
}
