// The map of a run: rows over steps, drawn from tiles; a picture of each tile is kept, so that panning only copies.
import type { RunEvent, RunRow } from '../api/runs';
import { NO_VALUE } from '../api/runs';
import type { RunScale } from '../model/run_scale';
import { axisSteps, levelFor, TILE_BINS, TILE_ROWS, tilesOf, tileSteps, type StepWindow, type TilePlace } from '../model/run_view';
import type { HeldTile, RunTiles } from '../model/run_tiles';
import { relativeDifference } from '../model/trend_scale';
import { mix, type Palette } from '../theme/palette';
import { fitName, heatColor } from './heat_map';

export const AXIS_HEIGHT = 24;
export const EVENT_HEIGHT = 14;
export const TOP = AXIS_HEIGHT + EVENT_HEIGHT;
const PAD = 8;
const COLORS = 256;

export interface RunPicture {
  rows: RunRow[];
  tiles: RunTiles;
  other: RunTiles | null;
  view: 'first' | 'other' | 'difference';
  scale: RunScale | null;
  interval: number;
  coarsest: number; // level that holds the whole run in one tile
  events: RunEvent[];
  marked: string[]; // rows with a line
  title: string; // of the axis of steps
}

export interface RunPlace {
  width: number;
  height: number;
  names: number; // width of the column of names
  rowHeight: number;
  top: number; // scrolled
  window: StepWindow;
  active: { row: number; step: number } | null;
}

/** Of all rows, the first and the last on the screen. */
export function rowsIn(place: RunPlace, rows: number): [first: number, last: number] {
  const first = Math.max(0, Math.floor(place.top / place.rowHeight));
  return [first, Math.max(first, Math.min(rows - 1, Math.floor((place.top + place.height - TOP) / place.rowHeight)))];
}

export const stepAt = (place: RunPlace, x: number) => place.window.from + ((x - place.names) / (place.width - place.names)) * (place.window.to - place.window.from);
export const rowAt = (place: RunPlace, y: number) => Math.floor((y - TOP + place.top) / place.rowHeight);

/** What is needed now, and, behind it, the whole run in a few tiles: what is drawn until finer ones are there. */
export function wantedTiles(picture: RunPicture, place: RunPlace): [shown: TilePlace[], next: TilePlace[]] {
  const level = levelFor(place.window, place.width - place.names, picture.interval);
  const rows = rowsIn(place, picture.rows.length);
  const span = place.window.to - place.window.from;
  const shown = tilesOf(place.window, level, rows, picture.interval);
  const around = tilesOf({ from: place.window.from - span / 2, to: place.window.to + span / 2 }, level, rows, picture.interval).filter(
    ({ column }) => column >= 0 && !shown.some((tile) => tile.column === column),
  );
  const coarse = level < picture.coarsest ? tilesOf(place.window, picture.coarsest, rows, picture.interval) : [];
  return [shown, [...coarse, ...around]];
}

export class RunMapPainter {
  private readonly ctx: CanvasRenderingContext2D;
  private colors: { look: string; table: Uint32Array; special: { nan: number; infinite: number } } | null = null;
  lastMs = 0;

  constructor(readonly canvas: HTMLCanvasElement) {
    const ctx = canvas.getContext('2d', { alpha: false });
    if (!ctx) throw new Error('canvas 2d is not available');
    this.ctx = ctx;
  }

  private get font(): string {
    return `11px ${getComputedStyle(this.canvas).fontFamily}`;
  }

  measure(text: string): number {
    this.ctx.font = this.font;
    return this.ctx.measureText(text).width;
  }

  paint(picture: RunPicture, place: RunPlace, palette: Palette): void {
    const began = performance.now();
    const { ctx, canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.max(1, Math.round(place.width * ratio)), Math.max(1, Math.round(place.height * ratio))];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = palette.surface;
    ctx.fillRect(0, 0, place.width, place.height);
    ctx.font = this.font;
    ctx.textBaseline = 'middle';
    this.paintTiles(picture, place, palette);
    this.paintActive(picture, place, palette);
    this.paintNames(picture, place, palette);
    this.paintAxis(picture, place, palette);
    this.lastMs = performance.now() - began;
  }

  private x(place: RunPlace, step: number): number {
    return place.names + ((step - place.window.from) / (place.window.to - place.window.from)) * (place.width - place.names);
  }

  private paintTiles(picture: RunPicture, place: RunPlace, palette: Palette): void {
    const { ctx } = this;
    const { interval, rows } = picture;
    const level = levelFor(place.window, place.width - place.names, interval);
    ctx.save();
    ctx.beginPath();
    ctx.rect(place.names, TOP, place.width - place.names, place.height - TOP);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    for (const at of tilesOf(place.window, level, rowsIn(place, rows.length), interval)) {
      const drawn = this.imageOf(picture, at, palette);
      if (!drawn) continue;
      const steps = tileSteps(level, interval);
      const [left, right] = [this.x(place, at.column * steps), this.x(place, (at.column + 1) * steps)];
      const top = TOP + at.page * TILE_ROWS * place.rowHeight - place.top;
      ctx.drawImage(drawn.image, drawn.from, 0, drawn.bins, drawn.rows, left, top, right - left, drawn.rows * place.rowHeight);
    }
    ctx.restore();
  }

  private imageOf(picture: RunPicture, at: TilePlace, palette: Palette): { image: CanvasImageSource; from: number; bins: number; rows: number } | null {
    const tiles = picture.view === 'other' && picture.other ? picture.other : picture.tiles;
    const found = tiles.find(at, picture.coarsest);
    if (!found) return null;
    const { tile } = found;
    const second = picture.view === 'difference' ? picture.other?.get(tile.place) : undefined;
    if (picture.view === 'difference' && !second) return null;
    const { scale } = picture;
    const look = [palette.name, picture.view, scale?.serial, tile.serial, second?.serial].join();
    if (tile.picture?.look !== look) tile.picture = { look, image: this.draw(picture, tile, second, palette) };
    return { image: tile.picture.image, from: found.from, bins: found.bins, rows: tile.rows };
  }

  private draw(picture: RunPicture, tile: HeldTile, second: HeldTile | undefined, palette: Palette): CanvasImageSource {
    const image = new ImageData(TILE_BINS, Math.max(1, tile.rows));
    const pixels = new Uint32Array(image.data.buffer);
    const { table, special } = this.tableOf(picture, palette);
    const { scale } = picture;
    for (let row = 0; row < tile.rows; row++) {
      const about = picture.rows[tile.place.page * TILE_ROWS + row];
      for (let bin = 0; bin < tile.bins; bin++) {
        let value = tile.values[row * tile.bins + bin]!;
        if (second) {
          const other = row < second.rows ? second.values[row * second.bins + bin]! : NO_VALUE;
          if (value === NO_VALUE || other === NO_VALUE) continue;
          value = relativeDifference(value, other)!;
        } else if (value === NO_VALUE) continue;
        let color: number;
        if (Number.isNaN(value)) color = special.nan;
        else if (!Number.isFinite(value)) color = special.infinite;
        else color = table[Math.round((second ? (value + 1) / 2 : (scale?.place(value, about) ?? 0.5)) * (COLORS - 1))]!;
        pixels[row * TILE_BINS + bin] = color;
      }
    }
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext('2d')!.putImageData(image, 0, 0);
    return canvas;
  }

  private tableOf(picture: RunPicture, palette: Palette) {
    const diverging = picture.view === 'difference' || picture.scale?.mode === 'sigma';
    const look = `${palette.name}${diverging}`;
    if (this.colors?.look !== look) {
      const table = Uint32Array.from({ length: COLORS }, (_, i) => packed(heatColor(i / (COLORS - 1), diverging, palette)));
      this.colors = { look, table, special: { nan: packed(palette.nan), infinite: packed(palette.alarm) } };
    }
    return this.colors;
  }

  private paintActive(picture: RunPicture, place: RunPlace, palette: Palette): void {
    const { active } = place;
    if (!active) return;
    const { ctx } = this;
    const width = picture.interval * 2 ** levelFor(place.window, place.width - place.names, picture.interval);
    const from = Math.floor(active.step / width) * width;
    const [left, right] = [this.x(place, from), this.x(place, from + width)];
    ctx.strokeStyle = palette.focus;
    ctx.lineWidth = 2;
    const size = Math.max(6, right - left);
    ctx.strokeRect((left + right - size) / 2, TOP + active.row * place.rowHeight - place.top, size, Math.max(3, place.rowHeight - 1));
  }

  private paintNames(picture: RunPicture, place: RunPlace, palette: Palette): void {
    const { ctx } = this;
    ctx.fillStyle = palette.surface;
    ctx.fillRect(0, 0, place.names, place.height);
    ctx.textAlign = 'right';
    const every = Math.max(1, Math.ceil(12 / place.rowHeight));
    const [first, last] = rowsIn(place, picture.rows.length);
    for (let row = first; row <= last; row++) {
      const label = picture.rows[row]?.label ?? '';
      const active = row === place.active?.row;
      if (row % every !== 0 && !active) continue;
      ctx.fillStyle = active ? palette.accent : picture.marked.includes(label) ? palette.ink : palette.muted;
      if (every === 1) ctx.fillStyle = active ? palette.accent : palette.ink;
      ctx.fillText(fitName(label, place.names - 2 * PAD, (text) => ctx.measureText(text).width), place.names - PAD, TOP + (row + 0.5) * place.rowHeight - place.top);
    }
  }

  private paintAxis(picture: RunPicture, place: RunPlace, palette: Palette): void {
    const { ctx } = this;
    ctx.fillStyle = palette.raised;
    ctx.fillRect(0, 0, place.width, TOP);
    ctx.fillStyle = palette.muted;
    ctx.textAlign = 'right';
    ctx.fillText(`${picture.title} →`, place.names - PAD, AXIS_HEIGHT / 2);
    ctx.textAlign = 'center';
    for (const step of axisSteps(place.window, (place.width - place.names) / 90)) {
      const x = this.x(place, step);
      if (x < place.names || x > place.width) continue;
      ctx.fillStyle = palette.muted;
      if (x > place.names + 14 && x < place.width - 24) ctx.fillText(String(step), x, AXIS_HEIGHT / 2 - 1);
      ctx.fillStyle = palette.line;
      ctx.fillRect(Math.round(x), AXIS_HEIGHT - 5, 1, 5);
    }
    this.paintEvents(picture, place, palette);
  }

  /** A mark for each place with events; two ways, so that colour is not all that tells them apart. */
  private paintEvents(picture: RunPicture, place: RunPlace, palette: Palette): void {
    const { ctx } = this;
    let before = -Infinity;
    for (const event of picture.events) {
      const x = Math.round(this.x(place, event.step + picture.interval / 2));
      if (x < place.names || x > place.width || x - before < 3) continue;
      before = x;
      ctx.fillStyle = event.source === 'judgement' ? palette.status.bug.edge : palette.alarm;
      ctx.beginPath();
      if (event.source === 'judgement') ctx.rect(x - 3, AXIS_HEIGHT + 4, 6, 6);
      else [ctx.moveTo(x - 4, AXIS_HEIGHT + 3), ctx.lineTo(x + 4, AXIS_HEIGHT + 3), ctx.lineTo(x, AXIS_HEIGHT + 11)];
      ctx.fill();
    }
  }
}

function packed(color: string): number {
  const value = parseInt(mix(color, color, 1).slice(1), 16);
  return (0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
