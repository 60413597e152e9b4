// From a value of a trend to its place on a scale of colours or heights.

export type ScaleMode = 'linear' | 'log' | 'sigma';

export function isInfinite(value: number): boolean {
  return Math.abs(value) === Infinity;
}

/** NaN is a value that was recorded; null: there is none. */
export function isFiniteValue(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

export interface Scale {
  low: number; // of the finite values
  high: number;
  /** 0 to 1; values outside are at the ends. */
  place(value: number): number;
  /** Values for marks along an axis, from low to high. */
  ticks(): number[];
}

const clamp = (t: number) => Math.min(1, Math.max(0, t));

function linear(low: number, high: number): Scale {
  const span = high - low;
  return {
    low,
    high,
    place: (value) => (span > 0 ? clamp((value - low) / span) : 0.5),
    ticks: () => (span > 0 ? linearTicks(low, high) : [low]),
  };
}

/** 1, 2 or 5 times a power of ten apart. */
function linearTicks(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12) && ticks.length < 12; i++) ticks.push(i * step);
  return ticks;
}

/**
 * Logarithmic from the smallest value that is not zero; with values of both signs, the negative ones mirrored and zero
 * in between.
 */
function logarithmic(values: number[], low: number, high: number): Scale {
  let floor = Infinity;
  for (const value of values) if (value !== 0) floor = Math.min(floor, Math.abs(value));
  if (!Number.isFinite(floor)) return linear(low, high);
  const lift = (value: number) => Math.sign(value) * Math.max(0, Math.log10(Math.abs(value) / floor) + 1);
  const [bottom, top] = [lift(low), lift(high)];
  const place = (value: number) => (top > bottom ? clamp((lift(value) - bottom) / (top - bottom)) : 0.5);
  const ticks = () => {
    const powers: number[] = [];
    const size = Math.max(Math.abs(low), Math.abs(high));
    for (let e = Math.ceil(Math.log10(floor)); 10 ** e <= size; e++) powers.push(10 ** e);
    const every = Math.ceil(powers.length / 4) || 1;
    const some = powers.filter((_, i) => i % every === 0);
    const seen = [...some.map((p) => -p).reverse(), ...(low <= 0 && high >= 0 ? [0] : []), ...some].filter((v) => v >= low && v <= high);
    return seen.length < 2 && high > low ? linearTicks(low, high) : seen; // a stretch within one power of ten
  };
  return { low, high, place, ticks };
}

export function makeScale(all: Iterable<number | null>, mode: Exclude<ScaleMode, 'sigma'>): Scale | null {
  const values: number[] = [];
  let [low, high] = [Infinity, -Infinity];
  for (const value of all) {
    if (!isFiniteValue(value)) continue;
    values.push(value);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (values.length === 0) return null;
  return mode === 'log' ? logarithmic(values, low, high) : linear(low, high);
}

/** How far two runs are apart, -1 to 1: of the larger of the two. NaN where either is. */
export function relativeDifference(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return null;
  if (Number.isNaN(a) || Number.isNaN(b)) return NaN;
  if (isInfinite(a) || isInfinite(b)) return a === b ? 0 : Infinity;
  const size = Math.max(Math.abs(a), Math.abs(b));
  return size === 0 ? 0 : Math.max(-1, Math.min(1, (a - b) / size));
}

export interface Thresholds {
  low: number | null;
  high: number | null;
}

/** NaN and infinities are outside of any threshold. */
export function isOutside(value: number | null, { low, high }: Thresholds): boolean {
  if (value === null || (low === null && high === null)) return false;
  return (low !== null && value < low) || (high !== null && value > high) || !isFiniteValue(value);
}

/** A number that a user typed; null for none, undefined for what is not a number. */
export function parseThreshold(text: string): number | null | undefined {
  if (text.trim() === '') return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

export function valueText(value: number | null): string {
  if (value === null) return '–';
  if (Number.isNaN(value)) return 'NaN';
  if (isInfinite(value)) return value > 0 ? '∞' : '-∞';
  if (Math.abs(value) === 1e9) return value > 0 ? '≥ 1e9' : '≤ -1e9';
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(3) : value.toPrecision(5);
  return text.replace(/(\.\d*?)0+(?=e|$)/, '$1').replace(/\.(?=e|$)/, '');
}
