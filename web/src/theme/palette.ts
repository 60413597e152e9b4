// All colours of the page, for the canvas and (as custom properties) for the style sheet.

export type ThemeName = 'light' | 'dark';
export type StatusName = 'pass' | 'warning' | 'error' | 'unmatched' | 'none' | 'medium' | 'high' | 'critical' | 'bug' | 'suspicious' | 'inherited' | 'rewritten' | 'round-off' | 'bit-equal';

export interface StatusColors {
  fill: string; // a closed block, the head of an open one
  edge: string; // its border; also chips and stripes
  ink: string; // text on fill
  quiet: string; // less important text on fill
  wash: string; // table cells, badges
}

export interface Palette {
  name: ThemeName;
  page: string;
  surface: string;
  raised: string;
  line: string;
  ink: string;
  muted: string;
  good: string; // an edge that says that all is well
  nan: string; // cells of NaN in maps
  alarm: string; // text of values that are not finite, of failures
  accent: string;
  accentWash: string;
  focus: string;
  nest: [string, string]; // inside of open blocks, alternating by depth
  status: Record<StatusName, StatusColors>;
}

type Rgb = [number, number, number];

function parseColor(text: string): Rgb | null {
  const match = /^#([0-9a-f]{6})$/i.exec(text);
  if (!match) return null;
  const value = parseInt(match[1]!, 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** `share` of `color` over `ground`. */
export function mix(color: string, ground: string, share: number): string {
  const a = parseColor(color);
  const b = parseColor(ground);
  if (!a || !b) return color;
  const channel = (i: 0 | 1 | 2) => Math.round(a[i] * share + b[i] * (1 - share)).toString(16).padStart(2, '0');
  return `#${channel(0)}${channel(1)}${channel(2)}`;
}

function luminance(color: string): number {
  const rgb = parseColor(color) ?? [255, 255, 255];
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** Fills of the file format (4.3: pass, warning, error, unmatched), of the overflow levels, and of verdicts: magenta to grey, told apart without red and green. */
export const FILLS: Record<StatusName, string> = {
  pass: '#FFFCF3',
  warning: '#FFDC7F',
  error: '#FF704D',
  unmatched: '#C7C7C7',
  none: '#FFFFFF',
  medium: '#E6F3FE',
  high: '#8DC5F8',
  critical: '#1668DC',
  bug: '#B5105F',
  suspicious: '#F3B04B',
  inherited: '#E2D9F6',
  rewritten: '#DFEBD8',
  'round-off': '#DCEFF2',
  'bit-equal': '#F7F9FB',
};

const EDGES: Record<StatusName, string> = {
  pass: '#D8CBA0',
  warning: '#D19A12',
  error: '#D2401A',
  unmatched: '#8C9097',
  none: '#C3CBD5',
  medium: '#8FBDE6',
  high: '#3B8AD8',
  critical: '#0D4BA6',
  bug: '#9A1257',
  suspicious: '#9A5B00',
  inherited: '#7556BD',
  rewritten: '#55783F',
  'round-off': '#27798A',
  'bit-equal': '#6D7885',
};

const DARK_EDGES: Record<StatusName, string> = {
  pass: '#7F7C54',
  warning: '#D9A93A',
  error: '#FF7A59',
  unmatched: '#7C838D',
  none: '#3C4654',
  medium: '#4A6E92',
  high: '#5BA3EA',
  critical: '#3F8CFF',
  bug: '#FF74AE',
  suspicious: '#E0A23E',
  inherited: '#AD96EE',
  rewritten: '#93BE7A',
  'round-off': '#5DBCCB',
  'bit-equal': '#8A95A3',
};

const DARK_SHARE: Record<StatusName, number> = {
  pass: 0.12,
  warning: 0.38,
  error: 0.52,
  unmatched: 0.22,
  none: 0.03,
  medium: 0.14,
  high: 0.34,
  critical: 0.75,
  bug: 0.68,
  suspicious: 0.42,
  inherited: 0.3,
  rewritten: 0.22,
  'round-off': 0.22,
  'bit-equal': 0.07,
};

const JUDGED: readonly StatusName[] = ['bug', 'suspicious', 'inherited', 'rewritten', 'round-off', 'bit-equal'];

const LIGHT = {
  page: '#EEF1F5',
  surface: '#FFFFFF',
  raised: '#F6F8FA',
  line: '#DCE2E9',
  ink: '#18212C',
  muted: '#5A6675',
  good: '#2E8B57',
  nan: '#B3199E',
  alarm: '#AE2C0A',
  accent: '#1F5FD0',
  accentWash: '#E4EDFC',
  focus: '#1F5FD0',
  nest: ['#FAFBFC', '#F2F5F8'] as [string, string],
};

const DARK = {
  page: '#0E1217',
  surface: '#161B22',
  raised: '#1D242D',
  line: '#2D3642',
  ink: '#E3E8EE',
  muted: '#98A4B3',
  good: '#4FB07C',
  nan: '#E36BD3',
  alarm: '#FF9B82',
  accent: '#7DB0FF',
  accentWash: '#1C2D47',
  focus: '#7DB0FF',
  nest: ['#12171D', '#171D25'] as [string, string],
};

/** As faint as stays readable on this fill: a fixed share would be lost on the strong ones. */
function quietInk(ink: string, fill: string): string {
  for (let share = 0.6; share < 1; share += 0.05) {
    const quiet = mix(ink, fill, share);
    if (contrast(quiet, fill) >= 4.6) return quiet;
  }
  return ink;
}

/** The palette of a theme; a file may bring its own fills, by accuracy level. */
export function makePalette(name: ThemeName, fills: Partial<Record<StatusName, string>> = {}): Palette {
  const key = JSON.stringify([name, fills]);
  const palette = made.get(key) ?? compute(name, fills);
  made.set(key, palette);
  return palette;
}

/** Several parts of the page ask for the same one, and contrasts take their time. */
const made = new Map<string, Palette>();

function compute(name: ThemeName, fills: Partial<Record<StatusName, string>>): Palette {
  const base = name === 'dark' ? DARK : LIGHT;
  const status = {} as Record<StatusName, StatusColors>;
  for (const key of Object.keys(FILLS) as StatusName[]) {
    const own = fills[key];
    const wanted = own && parseColor(own) ? own : FILLS[key];
    // Pale fills of verdicts would all be grey in the dark.
    const dark = JUDGED.includes(key) ? DARK_EDGES[key] : wanted;
    const fill = name === 'dark' ? mix(dark, base.surface, DARK_SHARE[key]) : wanted;
    const ink = contrast(fill, base.ink) >= 4.5 ? base.ink : contrast(fill, '#FFFFFF') >= contrast(fill, '#000000') ? '#FFFFFF' : '#000000';
    const edge = name === 'dark' ? DARK_EDGES[key] : EDGES[key];
    status[key] = { fill, edge, ink, quiet: quietInk(ink, fill), wash: mix(edge, base.surface, name === 'dark' ? 0.2 : 0.14) };
  }
  return { name, ...base, status };
}

/** node_colors of a file: {"#FF704D": {accuracy_level: "error"}} -> {error: "#FF704D"}. */
export function fillsOf(colors: Record<string, { accuracy_level: string }> | null): Partial<Record<StatusName, string>> {
  const fills: Partial<Record<StatusName, string>> = {};
  for (const [color, { accuracy_level: level }] of Object.entries(colors ?? {})) {
    const key = level === 'unmatched node' ? 'unmatched' : level;
    if (key === 'pass' || key === 'warning' || key === 'error' || key === 'unmatched') fills[key] = color;
  }
  return fills;
}

/** Custom properties for the style sheet. */
export function cssVariables(palette: Palette): Record<string, string> {
  const { page, surface, raised, line, ink, muted, good, nan, alarm, accent, accentWash, focus } = palette;
  const out: Record<string, string> = { page, surface, raised, line, ink, muted, good, nan, alarm, accent, 'accent-wash': accentWash, focus };
  for (const [key, colors] of Object.entries(palette.status))
    for (const [part, color] of Object.entries(colors)) out[`${key}-${part}`] = color as string;
  return Object.fromEntries(Object.entries(out).map(([key, value]) => [`--${key}`, value]));
}

export function applyPalette(palette: Palette, root: HTMLElement): void {
  for (const [key, value] of Object.entries(cssVariables(palette))) root.style.setProperty(key, value);
  root.dataset['theme'] = palette.name;
  root.style.colorScheme = palette.name;
}
