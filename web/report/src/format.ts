import type { Measure } from './data';

/** Short: 0, 0.0123, 1.2e-7, 1.5e+6; ∞ and – for what is not a number. */
export function formatMeasure(value: Measure): string {
  if (value === null) return '∞';
  if (value < 0) return '–';
  if (value === 0) return '0';
  return value < 1e-3 || value >= 1e4 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

/** "op: Tensor.add.0" -> its label with the colon, and the rest; together they are the line again. */
export function splitLabel(line: string): [label: string, text: string] {
  const found = /^[^\s:：][^:：]{0,24}(?:: |：)/.exec(line);
  return found ? [found[0], line.slice(found[0].length)] : ['', line];
}

/** Six digits of each number in a text tell; checksums and shapes have no point. */
export function shortDigits(text: string): string {
  return text.replace(/\d+\.\d{5,}(?:e[+-]?\d+)?/g, (number) => String(Number(Number(number).toPrecision(6))));
}

export function formatCount(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "20261121224501" -> "2026-11-21 22:45". */
export function formatTime(stamp: string): string {
  const [, y, m, d, h, min] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)/.exec(stamp) ?? [];
  return y ? `${y}-${m}-${d} ${h}:${min}` : stamp;
}

/** Numbers of table cells, also "12.5%" and " inf"; NaN for text. */
export function cellNumber(cell: string): number {
  const text = cell.trim();
  if (text === '') return NaN;
  if (text === 'inf') return Infinity;
  if (text === '-inf') return -Infinity;
  return text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text);
}

/** Numbers by size; text behind them in either order, for it mostly means that there is no value. */
export function compareCells(a: string, b: string, sign: 1 | -1): number {
  const [x, y] = [cellNumber(a), cellNumber(b)];
  if (!Number.isNaN(x) && !Number.isNaN(y)) return sign * (x === y ? 0 : x - y);
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
  return sign * (a < b ? -1 : a > b ? 1 : 0);
}
