import { isInfinite } from '../model/trend_scale';
import { mix, type Palette } from '../theme/palette';

export const ROW_HEIGHT = 18;
export const HEAD_HEIGHT = 22;
const MIN_CELL = 7;
const MAX_CELL = 64;
const MIN_NAMES = 112; // both titles of axes
const PAD = 8;

/** Dark to bright, told apart by lightness alone. */
const HEAT = ['#440154', '#3b528b', '#21918c', '#5ec962', '#fde725'];

export interface HeatCell {
  row: number;
  column: number;
}

export interface HeatPicture {
  titles: [rows: string, columns: string];
  labels: string[];
  columns: number[];
  values: (number | null)[];
  /** 0 to 1; null has no colour. */
  place: (value: number) => number;
  diverging: boolean; // 0.5 is no difference
  outside: (index: number) => boolean; // of values
  marked: HeatCell[]; // cells with a line
}

export interface HeatLayout {
  names: number; // width of the column of names
  cell: number; // width of a cell
  width: number; // of everything
  height: number;
}

export function layHeat(labels: string[], columns: number, width: number, measure: (text: string) => number): HeatLayout {
  const widest = labels.reduce((most, label) => Math.max(most, measure(label)), 0);
  const names = Math.min(Math.max(MIN_NAMES, Math.ceil(widest) + 2 * PAD), Math.max(120, Math.floor(width * 0.42)));
  const cell = Math.max(MIN_CELL, Math.min(MAX_CELL, Math.floor((width - names) / Math.max(1, columns))));
  return { names, cell, width: names + cell * columns, height: HEAD_HEIGHT + ROW_HEIGHT * labels.length };
}

export function heatColor(t: number, diverging: boolean, palette: Palette): string {
  if (diverging) return mix(t < 0.5 ? palette.status.high.edge : palette.status.error.edge, palette.raised, Math.abs(t - 0.5) * 2);
  const at = t * (HEAT.length - 1);
  const i = Math.min(HEAT.length - 2, Math.floor(at));
  return mix(HEAT[i + 1]!, HEAT[i]!, at - i);
}

function cellColor(value: number, picture: HeatPicture, palette: Palette): string {
  if (Number.isNaN(value)) return palette.nan;
  return isInfinite(value) ? palette.alarm : heatColor(picture.place(value), picture.diverging, palette);
}

/** The cell at a point of the scrolled picture. */
export function heatCellAt(layout: HeatLayout, rows: number, columns: number, x: number, y: number, scrollLeft: number, scrollTop: number): HeatCell | null {
  if (y < HEAD_HEIGHT) return null;
  const row = Math.floor((y - HEAD_HEIGHT + scrollTop) / ROW_HEIGHT);
  const column = x < layout.names ? 0 : Math.floor((x - layout.names + scrollLeft) / layout.cell);
  return row >= 0 && row < rows && column < columns ? { row, column } : null;
}

/** A name that does not fit loses its middle: both ends tell names apart. */
export function fitName(text: string, room: number, measure: (text: string) => number): string {
  const width = measure(text);
  if (width <= room) return text;
  const keep = Math.max(2, Math.floor((text.length * room) / width) - 1);
  const front = Math.floor(keep * 0.4);
  return `${text.slice(0, front)}…${text.slice(text.length - (keep - front))}`;
}

export class HeatPainter {
  private readonly ctx: CanvasRenderingContext2D;
  lastMs = 0;

  constructor(readonly canvas: HTMLCanvasElement) {
    const ctx = canvas.getContext('2d', { alpha: false });
    if (!ctx) throw new Error('canvas 2d is not available');
    this.ctx = ctx;
  }

  measure = (text: string): number => {
    this.ctx.font = this.font;
    return this.ctx.measureText(text).width;
  };

  private get font(): string {
    return `11px ${getComputedStyle(this.canvas).fontFamily}`;
  }

  paint(picture: HeatPicture, layout: HeatLayout, palette: Palette, view: { width: number; height: number; left: number; top: number; active: HeatCell | null }): void {
    const began = performance.now();
    const { ctx, canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.max(1, Math.round(view.width * ratio)), Math.max(1, Math.round(view.height * ratio))];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = palette.surface;
    ctx.fillRect(0, 0, view.width, view.height);
    ctx.font = this.font;
    ctx.textBaseline = 'middle';
    this.paintCells(picture, layout, palette, view);
    this.paintNames(picture, layout, palette, view);
    this.paintHead(picture, layout, palette, view);
    this.lastMs = performance.now() - began;
  }

  private paintCells(picture: HeatPicture, layout: HeatLayout, palette: Palette, view: { width: number; height: number; left: number; top: number; active: HeatCell | null }): void {
    const { ctx } = this;
    const gap = layout.cell > 12 ? 1 : 0;
    const firstColumn = Math.floor(view.left / layout.cell);
    const lastColumn = Math.min(picture.columns.length - 1, Math.ceil((view.left + view.width - layout.names) / layout.cell));
    const box = (row: number, column: number) => [layout.names + column * layout.cell - view.left, HEAD_HEIGHT + row * ROW_HEIGHT - view.top] as const;
    for (const row of this.rowsIn(picture, view)) {
      for (let column = firstColumn; column <= lastColumn; column++) {
        const index = row * picture.columns.length + column;
        const value = picture.values[index] ?? null;
        if (value === null) continue;
        const [x, y] = box(row, column);
        ctx.fillStyle = cellColor(value, picture, palette);
        ctx.fillRect(x, y, layout.cell - gap, ROW_HEIGHT - 1);
        if (Number.isNaN(value)) this.cross(x, y, layout.cell - gap, palette);
        if (!picture.outside(index)) continue;
        ctx.strokeStyle = palette.alarm;
        ctx.lineWidth = 2;
        ctx.strokeRect(x + 1, y + 1, layout.cell - gap - 2, ROW_HEIGHT - 3);
      }
    }
    const outline = (cell: HeatCell, color: string, thick: number) => {
      const [x, y] = box(cell.row, cell.column);
      ctx.strokeStyle = color;
      ctx.lineWidth = thick;
      ctx.strokeRect(x + 0.5, y + 0.5, layout.cell - 1, ROW_HEIGHT - 2);
    };
    for (const cell of picture.marked) outline(cell, palette.ink, 1);
    if (view.active) outline(view.active, palette.focus, 2.5);
  }

  /** NaN is told from an infinity without its colour, too. */
  private cross(x: number, y: number, width: number, palette: Palette): void {
    const { ctx } = this;
    const [half, middle] = [Math.min(width, ROW_HEIGHT) / 2 - 3, [x + width / 2, y + (ROW_HEIGHT - 1) / 2] as const];
    ctx.strokeStyle = palette.surface;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    for (const sign of [1, -1]) {
      ctx.moveTo(middle[0] - half, middle[1] - sign * half);
      ctx.lineTo(middle[0] + half, middle[1] + sign * half);
    }
    ctx.stroke();
  }

  private paintNames(picture: HeatPicture, layout: HeatLayout, palette: Palette, view: { height: number; top: number; active: HeatCell | null }): void {
    const { ctx } = this;
    ctx.fillStyle = palette.surface;
    ctx.fillRect(0, 0, layout.names, view.height);
    ctx.textAlign = 'right';
    for (const row of this.rowsIn(picture, view)) {
      ctx.fillStyle = row === view.active?.row ? palette.accent : palette.ink;
      const text = fitName(picture.labels[row]!, layout.names - 2 * PAD, this.measure);
      ctx.fillText(text, layout.names - PAD, HEAD_HEIGHT + row * ROW_HEIGHT - view.top + ROW_HEIGHT / 2);
    }
  }

  private paintHead(picture: HeatPicture, layout: HeatLayout, palette: Palette, view: { width: number; left: number; active: HeatCell | null }): void {
    const { ctx } = this;
    ctx.fillStyle = palette.raised;
    ctx.fillRect(0, 0, view.width, HEAD_HEIGHT);
    // Both axes are named in the corner, with arrows along them.
    ctx.fillStyle = palette.muted;
    ctx.textAlign = 'right';
    ctx.fillText(`${picture.titles[1]} →`, layout.names - PAD, HEAD_HEIGHT / 2);
    ctx.textAlign = 'left';
    ctx.fillText(`${picture.titles[0]} ↓`, PAD, HEAD_HEIGHT / 2);
    ctx.textAlign = 'center';
    const widest = Math.max(...picture.columns.map((at) => String(at).length)) * 7 + 6;
    const every = Math.max(1, Math.ceil(widest / layout.cell));
    ctx.save();
    ctx.beginPath();
    ctx.rect(layout.names, 0, view.width - layout.names, HEAD_HEIGHT);
    ctx.clip();
    picture.columns.forEach((at, column) => {
      const x = layout.names + (column + 0.5) * layout.cell - view.left;
      if (column % every !== 0 || x < layout.names - 20 || x > view.width + 20) return;
      ctx.fillStyle = column === view.active?.column ? palette.accent : palette.muted;
      ctx.fillText(String(at), x, HEAD_HEIGHT / 2);
    });
    ctx.restore();
  }

  private *rowsIn(picture: HeatPicture, view: { height: number; top: number }): Generator<number> {
    const last = Math.min(picture.labels.length - 1, Math.floor((view.top + view.height - HEAD_HEIGHT) / ROW_HEIGHT));
    for (let row = Math.max(0, Math.floor(view.top / ROW_HEIGHT)); row <= last; row++) yield row;
  }
}
