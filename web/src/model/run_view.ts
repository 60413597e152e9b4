// Which steps and rows of a run are on the screen.

export interface Extent {
  first: number;
  last: number;
  interval: number;
}

/** Steps from the left to the right edge of the map. */
export interface StepWindow {
  from: number;
  to: number;
}

export const TILE_BINS = 256;
export const TILE_ROWS = 64;
const MIN_BIN = 1.5; // pixels
const MOST_LEVEL = 30;
const LEAST_BINS = 8; // that a window shows at least

export function wholeWindow({ first, last, interval }: Extent): StepWindow {
  return { from: first, to: Math.max(last + interval, first + LEAST_BINS * interval) };
}

/** Kept within the run; at least a few records wide. */
export function boundWindow({ from, to }: StepWindow, extent: Extent): StepWindow {
  const all = wholeWindow(extent);
  const span = Math.min(all.to - all.from, Math.max(to - from, LEAST_BINS * extent.interval));
  const begin = Math.min(Math.max(from, all.from), all.to - span);
  return { from: begin, to: begin + span };
}

/** By a factor around a step, which stays where it is. */
export function zoomWindow({ from, to }: StepWindow, factor: number, around: number, extent: Extent): StepWindow {
  const span = Math.min(Math.max((to - from) * factor, LEAST_BINS * extent.interval), wholeWindow(extent).to - extent.first);
  const share = to > from ? (around - from) / (to - from) : 0.5;
  return boundWindow({ from: around - share * span, to: around + (1 - share) * span }, extent);
}

export function panWindow({ from, to }: StepWindow, by: number, extent: Extent): StepWindow {
  return boundWindow({ from: from + by, to: to + by }, extent);
}

/** The finest level whose bins are wide enough to be seen. */
export function levelFor({ from, to }: StepWindow, width: number, interval: number): number {
  const wanted = ((to - from) / Math.max(1, width)) * MIN_BIN;
  return Math.min(MOST_LEVEL, Math.max(0, Math.ceil(Math.log2(wanted / interval) - 1e-9)));
}

export interface TilePlace {
  level: number;
  column: number; // holds the bins from column * TILE_BINS
  page: number; // and the rows from page * TILE_ROWS
}

/** Steps of a column of tiles. */
export const tileSteps = (level: number, interval: number) => interval * 2 ** level * TILE_BINS;

/** The tiles that a window needs, from its middle outwards. */
export function tilesOf(window: StepWindow, level: number, rows: [first: number, last: number], interval: number): TilePlace[] {
  const steps = tileSteps(level, interval);
  const places: TilePlace[] = [];
  for (let page = Math.floor(rows[0] / TILE_ROWS); page <= Math.floor(rows[1] / TILE_ROWS); page++) {
    for (let column = Math.floor(window.from / steps); column * steps < window.to; column++) places.push({ level, column, page });
  }
  return places;
}

/** Round steps for an axis with room for about `most` of them. */
export function axisSteps({ from, to }: StepWindow, most: number): number[] {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const every = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  const steps: number[] = [];
  for (let step = Math.ceil(from / every) * every; step <= to; step += every) steps.push(step);
  return steps;
}
