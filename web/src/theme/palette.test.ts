import { describe, expect, it } from 'vitest';
import { contrast, cssVariables, fillsOf, makePalette, mix, type StatusName } from './palette';

describe('palette', () => {
  it('keeps the fills of the file format in the light theme', () => {
    const { status } = makePalette('light');
    expect([status.pass.fill, status.warning.fill, status.error.fill, status.unmatched.fill]).toEqual(['#FFFCF3', '#FFDC7F', '#FF704D', '#C7C7C7']);
  });
  it('is readable in both themes', () => {
    for (const theme of ['light', 'dark'] as const) {
      const palette = makePalette(theme);
      expect(contrast(palette.ink, palette.surface)).toBeGreaterThan(7);
      expect(contrast(palette.muted, palette.surface)).toBeGreaterThan(4.5);
      expect(contrast(palette.muted, palette.raised)).toBeGreaterThan(4.5);
      for (const [name, colors] of Object.entries(palette.status)) {
        expect(contrast(colors.ink, colors.fill), `${theme} ${name}`).toBeGreaterThan(4.5);
        expect(contrast(colors.quiet, colors.fill), `${theme} ${name}`).toBeGreaterThan(4.5);
        for (const text of [palette.ink, palette.muted, palette.alarm]) expect(contrast(text, colors.wash), `${theme} ${name}`).toBeGreaterThan(4.5);
      }
    }
  });
  it('draws marks and edges of verdicts with enough contrast, on every ground and on their own fill', () => {
    for (const theme of ['light', 'dark'] as const) {
      const { status, surface, page, raised, nest } = makePalette(theme);
      for (const name of ['bug', 'suspicious', 'inherited', 'rewritten', 'round-off', 'bit-equal'] as const) {
        for (const ground of [surface, page, raised, ...nest]) expect(contrast(status[name].edge, ground), `${theme} ${name} on ${ground}`).toBeGreaterThan(3);
        expect(contrast(status[name].ink, status[name].fill), `${theme} ${name}`).toBeGreaterThan(4.5);
      }
      expect(contrast(status.bug.fill, status['bit-equal'].fill), theme).toBeGreaterThan(3);
    }
  });
  it('tells the results of the rules apart in both themes', () => {
    for (const theme of ['light', 'dark'] as const) {
      const fills = (['pass', 'warning', 'error', 'unmatched'] as StatusName[]).map((name) => makePalette(theme).status[name].fill);
      expect(new Set(fills).size).toBe(4);
    }
  });
  it("takes a file's own colours and refuses what is none", () => {
    const fills = fillsOf({ '#112233': { accuracy_level: 'error' }, 'url(x)': { accuracy_level: 'pass' }, '#C0C0C0': { accuracy_level: 'unmatched node' } });
    const { status } = makePalette('light', fills);
    expect([status.error.fill, status.pass.fill, status.unmatched.fill]).toEqual(['#112233', '#FFFCF3', '#C0C0C0']);
  });
  it('mixes and names', () => {
    expect(mix('#ffffff', '#000000', 0.5)).toBe('#808080');
    expect(cssVariables(makePalette('dark'))).toMatchObject({ '--error-fill': expect.stringMatching(/^#/), '--accent-wash': expect.stringMatching(/^#/) });
  });
});
