// From a value of a run to its place between two colours: robust, so that one odd value does not hide all others.
import type { RunRow, RunRows } from '../api/runs';
import type { ScaleMode } from './trend_scale';

const CONSISTENT = 1.4826; // a median distance in standard deviations, of normal values
const EQUAL = 1e-6; // of the size: what is nearer than that is no deviation
export const REACH = 3; // standard deviations to either side

export interface RunScale {
  serial: number; // another scale places values elsewhere, if only because rows have other medians
  mode: ScaleMode;
  low: number;
  high: number;
  /** 0 to 1; values outside are at the ends. */
  place(value: number, row: RunRow | undefined): number;
}

const clamp = (t: number) => (t < 0 ? 0 : t > 1 ? 1 : t);

let made = 0;

export function runScale(mode: ScaleMode, all: RunRows[]): RunScale | null {
  const serial = ++made;
  const finite = (pick: (rows: RunRows) => number | null) => all.map(pick).filter((v): v is number => v !== null);
  const [low, high] = [Math.min(...finite((r) => r.low)), Math.max(...finite((r) => r.high))];
  if (!Number.isFinite(low) || !Number.isFinite(high)) return null;
  if (mode === 'sigma') {
    const place = (value: number, row: RunRow | undefined) => {
      const far = deviation(value, row);
      return far === null ? 0.5 : clamp((far / REACH + 1) / 2);
    };
    return { serial, mode, low: -REACH, high: REACH, place };
  }
  if (mode === 'linear') return { serial, mode, low, high, place: (value) => (high > low ? clamp((value - low) / (high - low)) : 0.5) };
  // Negative values are mirrored; nothing below the smallest magnitude or a 1e12th of the largest is told apart.
  const most = Math.max(Math.abs(low), Math.abs(high));
  const floor = Math.max(Math.min(...finite((r) => r.least), most || 1), low > 0 ? low / 2 : most * 1e-12) || 1e-30;
  const lift = (value: number) => Math.sign(value) * Math.max(0, Math.log10(Math.abs(value) / floor) + 1);
  const [bottom, top] = [lift(low), lift(high)];
  return { serial, mode, low, high, place: (value) => (top > bottom ? clamp((lift(value) - bottom) / (top - bottom)) : 0.5) };
}

/** From the median of the row, in standard deviations as its median distance gives them. */
export function deviation(value: number, row: RunRow | undefined): number | null {
  if (!row || row.middle === null) return null;
  const least = EQUAL * Math.abs(row.middle);
  const far = value - row.middle;
  return Math.abs(far) <= least ? 0 : far / Math.max(CONSISTENT * row.spread, least, 1e-30);
}
