const NUMBER = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(%?)$/i;

/** A number as text, rounded for reading: 6 significant digits, no trailing zeros. Other text comes back as it is. */
export function shortNumber(text: string): string {
  const trimmed = text.trim();
  const match = NUMBER.exec(trimmed);
  if (!match) return trimmed;
  const [, digits = '', percent = ''] = match;
  if (/^[+-]?\d+$/.test(digits)) return trimmed;
  const value = Number(digits);
  if (!Number.isFinite(value)) return trimmed;
  if (value === 0) return `0${percent}`;
  const size = Math.abs(value);
  const places = percent ? 4 : 6;
  const shown = size >= 1e7 || size < 1e-4 ? value.toExponential(places - 2) : value.toPrecision(places);
  return shown.replace(/(\.\d*?)0+(?=e|$)/, '$1').replace(/\.(?=e|$)/, '') + percent;
}

/** 1234567 -> "1,234,567", in both languages. toLocaleString() loads tables for every language first, a tenth of a second. */
export const grouped = (value: number) => String(value).replace(/\B(?=(\d{3})+$)/g, ',');

export function fileSize(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** 12345 -> "12.3k": room in a badge is short. */
export function shortCount(count: number): string {
  if (count < 1000) return String(count);
  if (count < 10_000) return `${(count / 1000).toFixed(1).replace(/\.0$/, '')}k`;
  if (count < 1_000_000) return `${Math.round(count / 1000)}k`;
  return `${(count / 1e6).toFixed(1).replace(/\.0$/, '')}M`;
}
