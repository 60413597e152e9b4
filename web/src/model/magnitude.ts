const COLUMN = /RelativeErr$/;
const LEAST = 1e-7; // about the rounding of float32: nothing to be seen
const MOST = 1; // 100 %

/** How long the bar of a relative error is, from 0 to 1 on a logarithmic ramp; null for other columns and for what is no number. */
export function magnitude(column: string, text: string | undefined): number | null {
  if (!COLUMN.test(column) || !text) return null;
  const percent = text.endsWith('%');
  const digits = (percent ? text.slice(0, -1) : text).trim().toLowerCase();
  if (/^[+-]?(inf|infinity|nan)$/.test(digits)) return 1;
  const value = digits === '' ? NaN : Math.abs(Number(digits)) / (percent ? 100 : 1);
  if (Number.isNaN(value)) return null;
  if (value <= LEAST) return 0;
  return Math.min(1, Math.log(value / LEAST) / Math.log(MOST / LEAST));
}
