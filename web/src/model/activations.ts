import { ACTIVATION_KINDS, type ActivationCell, type ActivationLayer, type Activations } from '../api/activations';
import type { Layer, LayerCell } from '../api/types';

export const MAGNITUDES = ['max', 'norm'] as const;
export type Magnitude = (typeof MAGNITUDES)[number];

/** The layers as the strip draws them: the magnitude stands where an error does. */
export function magnitudeLayers(layers: ActivationLayer[], which: Magnitude): Layer[] {
  const cell = (from: ActivationCell | null): LayerCell | null =>
    from && { level: null, nodes: from.items, errors: 0, warnings: 0, unmatched: 0, overflows: 0, units: null, node: from.node, error: from.not_finite ? 'inf' : from[which] };
  return layers.map(({ label, forward, backward }) => ({ label, forward: cell(forward), backward: cell(backward) }));
}

/** Nothing in the run is odd; masks are not. */
export function isQuiet(found: Activations): boolean {
  return ACTIVATION_KINDS.every((kind) => kind === 'mask' || found[kind].count === 0);
}
