import { describe, expect, it } from 'vitest';
import { makePalette, fillsOf } from '../theme/palette';
import { fitName, HEAD_HEIGHT, heatCellAt, heatColor, layHeat, ROW_HEIGHT } from './heat_map';

const measure = (text: string) => text.length * 6;

describe('the map of values', () => {
  it('gives names their room and cells the rest', () => {
    const layout = layHeat(['short', 'x'.repeat(20)], 10, 1000, measure);
    expect(layout.names).toBe(136);
    expect(layout.cell).toBe(64);
    expect(layHeat(['x'.repeat(500)], 1000, 1000, measure)).toMatchObject({ names: 420, cell: 7, width: 7420 });
  });
  it('finds the cell under the pointer, scrolled or not', () => {
    const layout = layHeat(['abc'], 10, 400, measure);
    const y = HEAD_HEIGHT + ROW_HEIGHT * 1.5;
    expect(heatCellAt(layout, 5, 10, layout.names + layout.cell * 2 + 1, y, 0, 0)).toEqual({ row: 1, column: 2 });
    expect(heatCellAt(layout, 5, 10, layout.names + 1, y, layout.cell * 3, ROW_HEIGHT)).toEqual({ row: 2, column: 3 });
    expect(heatCellAt(layout, 5, 10, layout.names + 1, 5, 0, 0)).toBeNull();
    expect(heatCellAt(layout, 1, 10, layout.names + 1, y, 0, 0)).toBeNull();
    expect(heatCellAt(layout, 5, 10, layout.names + layout.cell * 11, y, 0, 0)).toBeNull();
  });
  it('cuts names in the middle', () => {
    const text = fitName('Module.layers.0.mlp.down_proj.Linear.input.0', 120, measure);
    expect(text.length * 6).toBeLessThanOrEqual(120);
    expect(text.startsWith('Module')).toBe(true);
    expect(text.endsWith('input.0')).toBe(true);
    expect(fitName('short', 120, measure)).toBe('short');
  });
  it('has colours from end to end in both themes', () => {
    for (const theme of ['light', 'dark'] as const) {
      const palette = makePalette(theme, fillsOf(null));
      expect(heatColor(0, false, palette).toLowerCase()).toBe('#440154');
      expect(heatColor(1, false, palette).toLowerCase()).toBe('#fde725');
      expect(heatColor(0.5, true, palette).toLowerCase()).toBe(palette.raised.toLowerCase());
    }
  });
});
