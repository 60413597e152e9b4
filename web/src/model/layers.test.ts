import { describe, expect, it } from 'vitest';
import type { LayerCell } from '../api/types';
import { barHeight, layerLabel, layerStatus, measureText, worthShowing } from './layers';

const cell = (change: Partial<LayerCell>): LayerCell => ({ level: 0, nodes: 3, errors: 0, warnings: 0, unmatched: 0, overflows: 0, error: null, units: null, node: 'n', ...change });

describe('layers', () => {
  it('have the colour of the worst in them', () => {
    expect(layerStatus(cell({ errors: 1, warnings: 2 }))).toBe('error');
    expect(layerStatus(cell({ warnings: 2, overflows: 1 }))).toBe('critical');
    expect(layerStatus(cell({ warnings: 2 }))).toBe('warning');
    expect(layerStatus(cell({ level: null, unmatched: 2 }))).toBe('unmatched');
    expect(layerStatus(cell({ level: null }))).toBe('none');
  });
  it('have bars that grow with the error, infinity at the top', () => {
    const heights = [0, 1e-8, 1e-4, 0.1, 'inf' as const].map((error) => barHeight(cell({ error })));
    expect([...heights].sort((a, b) => a - b)).toEqual(heights);
    expect(heights.at(-1)).toBe(1);
    expect(barHeight(cell({ error: 1e30 }))).toBe(1);
    expect(barHeight(cell({ errors: 1 }))).toBeGreaterThan(barHeight(cell({})));
  });
  it('are named shortly', () => {
    expect(['model.layers.31', 'lm_head', 'a.very_long_module_name', 'a.model.*', '*'].map(layerLabel)).toEqual(['31', 'lm_head', 'very_long_m…', 'model.*', '*']);
  });
  it('are shown only when there is something to see', () => {
    const quiet = { label: 'a', forward: cell({ level: null }), backward: null };
    expect(worthShowing([quiet, quiet])).toBe(false);
    expect(worthShowing([quiet, { ...quiet, backward: cell({ errors: 1 }) }])).toBe(true);
  });
});

describe('measures', () => {
  it('are rounded for reading', () => {
    expect([null, 'inf' as const, 0, 0.25, 1234567, 3e-8, 12.3456].map(measureText)).toEqual(['', '∞', '0', '0.25', '1.2e+6', '3e-8', '12.3']);
  });
});
