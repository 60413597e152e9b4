import type { TensorFit } from '../api/tensor';

/** One range for both axes, so that equal values stand on the diagonal; null where there is nothing to draw. */
export function scatterRange(values: number[]): [low: number, high: number] | null {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return null;
  const [low, high] = finite.reduce(([l, h], v) => [Math.min(l, v), Math.max(h, v)], [Infinity, -Infinity]);
  return low < high ? [low, high] : [low - 1, high + 1];
}

/** "1.25", "0.003", "1.000": r near 1 is cut, not rounded up to it. */
export function fitText({ slope, offset, correlation }: TensorFit): { slope: string; offset: string; r: string } {
  const short = (value: unknown) => Number(Number(value).toPrecision(4)).toString();
  const r = Number(correlation);
  return { slope: short(slope), offset: short(offset), r: Math.abs(r) === 1 ? r.toFixed(3) : (Math.trunc(r * 1000) / 1000).toFixed(3) };
}
