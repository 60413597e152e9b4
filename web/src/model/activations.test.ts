import { describe, expect, it } from 'vitest';
import type { ActivationCell } from '../api/activations';
import { magnitudeLayers } from './activations';
import { errorAxis } from './layers';

const cell = (change: Partial<ActivationCell>): ActivationCell => ({ items: 1, norm: 10, max: 2, not_finite: false, node: 'n', ...change });

describe('magnitudes', () => {
  it('are drawn as errors are: by powers of ten, what is not finite at the top', () => {
    const layers = [
      { label: 'l.0', forward: cell({}), backward: null },
      { label: 'l.1', forward: cell({ max: 5e4, norm: 1e6 }), backward: cell({ not_finite: true }) },
    ];
    const [first, second] = magnitudeLayers(layers, 'max');
    expect([first!.forward?.error, first!.backward, second!.backward?.error]).toEqual([2, null, 'inf']);
    expect(errorAxis(magnitudeLayers(layers, 'max'))).toMatchObject({ least: 0, most: 5 });
    expect(errorAxis(magnitudeLayers(layers, 'norm'))).toMatchObject({ least: 1, most: 6 });
  });
});
