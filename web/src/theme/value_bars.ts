/** What the two values of an origin are, to be held against each other; null where they have no size. */
export interface ValueBars {
  what: string;
  target: { text: string; share: number };
  golden: { text: string; share: number };
}

const text = (value: number) => Number(value.toPrecision(6)).toString();

/** `share`: of the larger one; values with different signs have no common scale, and equal ones nothing to show. */
export function valueBars(origin: { what?: string | null; target?: string | null; golden?: string | null } | undefined): ValueBars | null {
  if (!origin?.what || origin.what === 'checksum' || !origin.target || !origin.golden) return null;
  const [target, golden] = [Number(origin.target), Number(origin.golden)];
  const most = Math.max(Math.abs(target), Math.abs(golden));
  if (!Number.isFinite(target) || !Number.isFinite(golden) || target * golden < 0 || most === 0 || text(target) === text(golden)) return null;
  return { what: origin.what, target: { text: text(target), share: Math.abs(target) / most }, golden: { text: text(golden), share: Math.abs(golden) / most } };
}
