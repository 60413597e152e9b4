import type { Layer, LayerCell, Measure } from '../api/types';
import type { ColorMode, Status } from './status';

/** How a layer is coloured: by the worst that it holds of what is looked for. */
export function layerStatus(cell: LayerCell, mode: ColorMode): Status {
  if (mode === 'overflow') return cell.overflows > 0 ? 'critical' : 'none';
  if (mode === 'verdict') return cell.verdict ?? (cell.unmatched > 0 ? 'unmatched' : 'none');
  if (cell.errors > 0) return 'error';
  if (cell.warnings > 0) return 'warning';
  if (cell.level !== null) return 'pass';
  return cell.unmatched > 0 ? 'unmatched' : 'none';
}

/** Powers of ten between which the errors are, and those that stand beside the bars. */
export interface ErrorAxis {
  least: number;
  most: number;
  ticks: number[];
}

const FEWEST_POWERS = 2;
const MOST_POWERS = 12;

/** Null where no layer has an error with a size. */
export function errorAxis(layers: Layer[]): ErrorAxis | null {
  let [low, high] = [Infinity, -Infinity];
  for (const cell of layers.flatMap(({ forward, backward }) => [forward, backward])) {
    if (typeof cell?.error !== 'number' || cell.error <= 0) continue;
    low = Math.min(low, Math.log10(cell.error));
    high = Math.max(high, Math.log10(cell.error));
  }
  if (low > high) return null;
  const most = Math.ceil(high) || 0; // no -0
  const least = Math.max(most - MOST_POWERS, Math.min(Math.floor(low), most - FEWEST_POWERS));
  const step = Math.ceil((most - least) / 3);
  const ticks: number[] = [];
  for (let power = most; power >= least; power -= step) ticks.push(power);
  return { least, most, ticks };
}

export function axisPlace(power: number, { least, most }: ErrorAxis): number {
  return (power - least) / (most - least);
}

const LOWEST = 0.06;

/** Height of a bar from 0 to 1: the error on the axis, in overflow mode the share of nodes; without either, the colour's rank. */
export function barHeight(cell: LayerCell, mode: ColorMode, axis: ErrorAxis | null): number {
  const { error, nodes, overflows } = cell;
  if (mode === 'overflow') return overflows > 0 ? Math.max(0.15, overflows / Math.max(nodes, overflows)) : LOWEST;
  if (error === 'inf') return 1;
  if (error !== null) return error > 0 && axis ? Math.min(1, Math.max(0.08, axisPlace(Math.log10(error), axis))) : LOWEST;
  const rank: Partial<Record<Status, number>> = { error: 1, bug: 1, critical: 0.9, suspicious: 0.8, warning: 0.6, inherited: 0.5, unmatched: 0.3, rewritten: 0.25, 'round-off': 0.2, pass: 0.12, 'bit-equal': 0.12 };
  return rank[layerStatus(cell, mode)] ?? LOWEST;
}

const LETTER = 7; // width, in pixels

/** Which labels stand below columns of this width: all names that fit, and as many numbers as there is room for. */
export function shownLabels(labels: string[], width: number): boolean[] {
  const fits = (text: string) => text.length * LETTER <= width;
  const isNumber = (text: string) => /^\d+$/.test(text);
  const widest = Math.max(0, ...labels.filter(isNumber).map((text) => text.length));
  const every = width > 0 ? Math.max(1, Math.ceil(((widest + 1) * LETTER) / width)) : 1;
  return labels.map((text) => (isNumber(text) ? Number(text) % every === 0 : fits(text.slice(0, 4))));
}

/** The layer that holds a module; -1 if none does. Labels may begin further up or down than its name. */
export function layerOf(layers: Layer[], module: string): number {
  const inside = (label: string) => `.${module}.`.includes(`.${label}.`);
  const whole = layers.findIndex(({ label }) => `${module}.`.startsWith(`${label}.`));
  return whole >= 0 ? whole : layers.findIndex(({ label }) => /\.\d+$/.test(label) && inside(label.split('.').slice(-2).join('.')));
}

/** "layers.3" of "model.layers.3"; short enough to stand below a bar. */
export function layerLabel(label: string): string {
  const parts = label.split('.');
  const last = (parts.at(-1) === '*' ? parts.slice(-2).join('.') : parts.at(-1)) ?? label;
  return /^\d+$/.test(last) ? last : last.length > 12 ? `${last.slice(0, 11)}…` : last;
}

/** "0.25", "3e-8", "∞"; "" when it is not known. */
export function measureText(value: Measure): string {
  if (value === null) return '';
  if (value === 'inf') return '∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1).replace('.0e', 'e') : String(Number(value.toPrecision(3)));
}

/** True when there is anything to see in the strip. */
export function worthShowing(layers: Layer[], mode: ColorMode): boolean {
  return layers.length > 1 && layers.some(({ forward, backward }) => [forward, backward].some((cell) => cell && layerStatus(cell, mode) !== 'none'));
}
