import { describe, expect, it } from 'vitest';
import type { LayerCell } from '../api/types';
import { barHeight, errorAxis, layerLabel, layerOf, layerStatus, measureText, shownLabels, worthShowing } from './layers';

const cell = (change: Partial<LayerCell>): LayerCell => ({ level: 0, nodes: 3, errors: 0, warnings: 0, unmatched: 0, overflows: 0, error: null, units: null, node: 'n', ...change });

describe('layers', () => {
  const layer = (forward: Partial<LayerCell>, label = 'model.layers.0') => ({ label, forward: cell(forward), backward: null });

  it('have the colour of the worst in them, of what is looked for', () => {
    expect(layerStatus(cell({ errors: 1, warnings: 2 }), 'precision')).toBe('error');
    expect(layerStatus(cell({ warnings: 2, overflows: 1 }), 'precision')).toBe('warning');
    expect(layerStatus(cell({ overflows: 1 }), 'precision')).toBe('pass');
    expect(layerStatus(cell({ errors: 1, overflows: 1 }), 'overflow')).toBe('critical');
    expect(layerStatus(cell({ errors: 1 }), 'overflow')).toBe('none');
    expect(layerStatus(cell({ level: null, unmatched: 2 }), 'precision')).toBe('unmatched');
    expect(layerStatus(cell({ level: null }), 'precision')).toBe('none');
    expect(layerStatus(cell({ errors: 1, overflows: 1, verdict: 'inherited' }), 'verdict')).toBe('inherited');
    expect(layerStatus(cell({ level: null, unmatched: 2 }), 'verdict')).toBe('unmatched');
  });
  it('have an axis that spans their errors, with a few ticks', () => {
    expect(errorAxis([layer({ error: 3e-8 }), layer({ error: 0.2 }), layer({ error: 'inf' }), layer({ error: 0 })])).toEqual({ least: -8, most: 0, ticks: [0, -3, -6] });
    expect(errorAxis([layer({ error: 0.2 })])).toEqual({ least: -2, most: 0, ticks: [0, -1, -2] });
    expect(errorAxis([layer({ error: 1e-30 }), layer({ error: 1 })])).toMatchObject({ least: -12, most: 0 });
    expect(errorAxis([layer({ error: null }), layer({ error: 'inf' })])).toBeNull();
  });
  it('have bars that grow with the error, infinity at the top', () => {
    const axis = { least: -8, most: 0, ticks: [] };
    const heights = [0, 1e-8, 1e-4, 0.1, 'inf' as const].map((error) => barHeight(cell({ error }), 'precision', axis));
    expect([...heights].sort((a, b) => a - b)).toEqual(heights);
    expect(heights.at(-1)).toBe(1);
    expect(barHeight(cell({ error: 1e30 }), 'precision', axis)).toBe(1);
    expect(barHeight(cell({ errors: 1 }), 'precision', null)).toBeGreaterThan(barHeight(cell({}), 'precision', null));
    expect(barHeight(cell({ error: 0.1, overflows: 3 }), 'overflow', axis)).toBe(1);
  });
  it('are labelled as far as there is room', () => {
    const labels = ['embedding', ...Array.from({ length: 100 }, (_, i) => String(i))];
    const shown = shownLabels(labels, 9);
    expect(labels.filter((_, i) => shown[i]).slice(0, 4)).toEqual(['0', '3', '6', '9']);
    expect(shown[0]).toBe(false);
    expect(shownLabels(['embedding', '0', '1'], 60)).toEqual([true, true, true]);
  });
  it('are found by the name of a module in them', () => {
    const layers = [layer({}, 'module.module.embedding'), layer({}, 'module.module.decoder.layers.1'), layer({}, 'module.module.decoder.layers.12')];
    expect(layerOf(layers, 'module.module.decoder.layers.12.mlp.fc1')).toBe(2);
    expect(layerOf(layers, 'layers.1.mlp.linear_fc1')).toBe(1);
    expect(layerOf(layers, 'module.module.embedding')).toBe(0);
    expect(layerOf(layers, 'head')).toBe(-1);
  });
  it('are named shortly', () => {
    expect(['model.layers.31', 'lm_head', 'a.very_long_module_name', 'a.model.*', '*'].map(layerLabel)).toEqual(['31', 'lm_head', 'very_long_m…', 'model.*', '*']);
  });
  it('are shown only when there is something to see', () => {
    const quiet = { label: 'a', forward: cell({ level: null }), backward: null };
    expect(worthShowing([quiet, quiet], 'precision')).toBe(false);
    expect(worthShowing([quiet, { ...quiet, backward: cell({ errors: 1 }) }], 'precision')).toBe(true);
  });
});

describe('measures', () => {
  it('are rounded for reading', () => {
    expect([null, 'inf' as const, 0, 0.25, 1234567, 3e-8, 12.3456].map(measureText)).toEqual(['', '∞', '0', '0.25', '1.2e+6', '3e-8', '12.3']);
  });
});
