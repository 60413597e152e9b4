import type { Layer, LayerCell, Measure } from '../api/types';
import type { Status } from './status';

/** How a layer is coloured: by the worst that it holds. */
export function layerStatus(cell: LayerCell): Status {
  if (cell.errors > 0) return 'error';
  if (cell.overflows > 0) return 'critical';
  if (cell.warnings > 0) return 'warning';
  if (cell.level !== null) return 'pass';
  return cell.unmatched > 0 ? 'unmatched' : 'none';
}

const LEAST = -9; // powers of ten that the strip spans
const MOST = 1;

/** Height of a bar from 0 to 1: the error on a logarithmic scale; without one, the colour's rank. */
export function barHeight(cell: LayerCell): number {
  const { error } = cell;
  if (error === 'inf') return 1;
  if (error !== null) {
    if (error <= 0) return 0.06;
    return Math.min(1, Math.max(0.08, (Math.log10(error) - LEAST) / (MOST - LEAST)));
  }
  const rank: Partial<Record<Status, number>> = { error: 1, critical: 0.9, warning: 0.6, unmatched: 0.3, pass: 0.12 };
  return rank[layerStatus(cell)] ?? 0.06;
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
export function worthShowing(layers: Layer[]): boolean {
  return layers.length > 1 && layers.some(({ forward, backward }) => [forward, backward].some((cell) => cell && layerStatus(cell) !== 'none'));
}
