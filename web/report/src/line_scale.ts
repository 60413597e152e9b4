/** Round numbers from `low` to `high`, about `count` of them. */
export function niceTicks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const out: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

/** Of steps in any order, the one nearest to a place. */
export function nearestStep(steps: number[], place: number): number | null {
  let best: number | null = null;
  for (const step of steps) if (best === null || Math.abs(step - place) < Math.abs(best - place)) best = step;
  return best;
}
