// The points of the curves, from the cells that the command counted.
import { DIRECTIONS, type Bin, type Cell, type Direction, type Measure, type PairPage } from './data';

export interface Spot {
  x: number;
  value: Measure; // never -1
  op: string;
  rows: number;
  errors: number;
}
export interface Series {
  direction: Direction;
  spots: Spot[];
}

/** The larger one; what is not finite is largest. */
export function larger(a: Measure, b: Measure): Measure {
  if (a === null || b === null) return null;
  return Math.max(a, b);
}

const ORDER: Direction[] = ['forward', 'backward', 'gradient', 'other'];

function collect(points: { direction: number; x: number; value: Measure; op: string; rows: number; errors: number }[]): Series[] {
  const found = new Map<Direction, Map<number, Spot>>();
  for (const { direction, x, value, op, rows, errors } of points) {
    if (value !== null && value < 0) continue;
    const name = DIRECTIONS[direction] ?? 'other';
    const spots = found.get(name) ?? new Map<number, Spot>();
    found.set(name, spots);
    const spot = spots.get(x);
    if (!spot) {
      spots.set(x, { x, value, op, rows, errors });
      continue;
    }
    const most = larger(spot.value, value);
    if (most !== spot.value) [spot.value, spot.op] = [most, op];
    spot.rows += rows;
    spot.errors += errors;
  }
  return ORDER.filter((direction) => found.has(direction)).map((direction) => ({
    direction,
    spots: [...found.get(direction)!.values()].sort((a, b) => a.x - b.x),
  }));
}

const read = (entry: Cell | Bin, at: number) => entry[at] as Measure;

/** By layer; `part` -1: the largest of all parts. */
export function layerSeries(page: PairPage, stack: number, part: number, measure: number): Series[] {
  return collect(
    page.curves.cells
      .filter((cell) => cell[0] === stack && (part < 0 || cell[3] === part))
      .map((cell) => ({ direction: cell[1], x: cell[2], rows: cell[4], errors: cell[6], op: cell[7], value: read(cell, 8 + measure) })),
  );
}

/** Over the run, x in percent. */
export function runSeries(page: PairPage, measure: number): Series[] {
  return collect(
    page.curves.run.map((bin) => ({
      direction: bin[0],
      x: ((bin[1] + 0.5) / page.curves.bins) * 100,
      rows: bin[2],
      errors: bin[4],
      op: bin[5],
      value: read(bin, 6 + measure),
    })),
  );
}

/** Stacks by the number of layers, the deepest first. */
export function stacksByDepth(page: PairPage): { stack: number; name: string; layers: number }[] {
  const layers = page.curves.stacks.map(() => new Set<number>());
  for (const cell of page.curves.cells) layers[cell[0]]?.add(cell[2]);
  return page.curves.stacks
    .map((name, stack) => ({ stack, name, layers: layers[stack]!.size }))
    .sort((a, b) => b.layers - a.layers || a.stack - b.stack);
}

export function partsOf(page: PairPage, stack: number): number[] {
  return [...new Set(page.curves.cells.filter((cell) => cell[0] === stack).map((cell) => cell[3]))];
}

export interface HeatRow {
  part: number;
  worst: Measure;
  values: Map<number, { value: Measure; op: string }>;
}

/** Parts of a stack in order of appearance, at most `most` of them: those with the largest errors. */
export function heatRows(page: PairPage, stack: number, direction: Direction, measure: number, most: number): { rows: HeatRow[]; layers: number[]; total: number } {
  const rows = new Map<number, HeatRow>();
  const layers = new Set<number>();
  for (const cell of page.curves.cells) {
    if (cell[0] !== stack || DIRECTIONS[cell[1]] !== direction) continue;
    const value = read(cell, 8 + measure);
    if (value !== null && value < 0) continue;
    layers.add(cell[2]);
    const row = rows.get(cell[3]) ?? { part: cell[3], worst: -1, values: new Map() };
    rows.set(cell[3], row);
    row.values.set(cell[2], { value, op: cell[7] });
    row.worst = larger(row.worst, value);
  }
  const all = [...rows.values()];
  const size = (row: HeatRow) => (row.worst === null ? Infinity : row.worst);
  const kept = all.length <= most ? all : all.filter((row) => [...all].sort((a, b) => size(b) - size(a)).slice(0, most).includes(row));
  return { rows: kept, layers: [...layers].sort((a, b) => a - b), total: all.length };
}

export interface Scale {
  low: number; // the smallest positive value, rounded down to a power of ten
  high: number;
  decades: number[];
  place(value: Measure): number; // 0 (zero) to 1 (not finite)
}

/** Logarithmic, with a line of its own for zero below and for what is not finite above. */
export function logScale(values: Measure[], also: number[] = []): Scale {
  const positive = [...values, ...also].filter((v): v is number => v !== null && v > 0);
  let low = positive.length ? Math.floor(Math.log10(Math.min(...positive))) : -1;
  let high = positive.length ? Math.ceil(Math.log10(Math.max(...positive))) : 0;
  if (high === low) low -= 1; // a single value is the largest
  low = Math.max(low, high - 16);
  const step = Math.ceil((high - low) / 8);
  const decades: number[] = [];
  for (let d = low; d <= high; d += step) decades.push(10 ** d);
  const [from, to] = [0.1, values.includes(null) ? 0.9 : 1];
  const place = (value: Measure) => {
    if (value === null) return 1;
    if (value <= 0) return 0;
    return Math.max(from, from + ((Math.log10(value) - low) / (high - low)) * (to - from));
  };
  return { low: 10 ** low, high: 10 ** high, decades, place };
}
