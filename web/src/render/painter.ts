import type { NodeSummary } from '../api/types';
import { BLOCK, type Placed } from '../layout/blocks';
import { fitText, type Measure } from '../layout/text';
import { shortCount } from '../model/format';
import { hiddenBelow, statusOf, type ColorMode, type Status } from '../model/status';
import type { TreeNode } from '../model/tree';
import type { Palette, StatusColors } from '../theme/palette';
import { hasMark, traceMark } from './marks';

const FONT = '12.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", sans-serif';
const STRONG = `600 ${FONT}`;
const SMALL = '600 10.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const STRIPE = 5;
const MARK = 5; // half the width of the mark of a verdict
export const CARET_WIDTH = 24;

export interface Frame {
  width: number; // of the pane, in CSS pixels
  height: number;
  scrollX: number; // in CSS pixels, after zoom
  scrollY: number;
  zoom: number;
  ratio: number; // device pixels per CSS pixel
  palette: Palette;
  mode: ColorMode;
  compared: boolean;
  selected: string | null;
  partner: boolean; // the selection is on the other side, here its partner is marked
  origin: boolean; // nothing is selected: what is marked is where the difference begins
  begins: string | null; // the node of this side that it all begins with
  hovered: TreeNode | null;
}

/** Draws placed blocks on a canvas. Text widths are remembered: measuring is the slow part of a frame. */
export class Painter {
  private readonly widths = new Map<string, number>();
  private readonly fitted = new Map<string, string>();

  constructor(private readonly ctx: CanvasRenderingContext2D) {}

  paint(blocks: Placed[], frame: Frame): void {
    const { ctx } = this;
    const { ratio, zoom, palette } = frame;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = palette.surface;
    ctx.fillRect(0, 0, frame.width, frame.height);
    ctx.setTransform(ratio * zoom, 0, 0, ratio * zoom, -frame.scrollX * ratio, -frame.scrollY * ratio);
    ctx.textBaseline = 'middle';
    const top = frame.scrollY / zoom;
    const bottom = top + frame.height / zoom;
    for (const block of blocks) this.paintBlock(block, frame, top, bottom);
  }

  private paintBlock(block: Placed, frame: Frame, top: number, bottom: number): void {
    const { ctx } = this;
    const { node } = block;
    const colors = frame.palette.status[statusOf(node.info, frame.mode, frame.compared)];
    const isOpen = node.open && node.extent.tops !== null;
    if (isOpen) this.paintBody(block, colors, frame, top, bottom);
    const headVisible = block.y + BLOCK >= top && block.y < bottom;
    if (headVisible) this.paintHead(block, colors, frame, isOpen);
    if (frame.selected === node.info.name) this.paintRing(block, frame, isOpen);
    else if (frame.hovered === node && headVisible) {
      this.shape(block.x, block.y, block.width, BLOCK, node, isOpen);
      ctx.strokeStyle = frame.palette.accent;
      ctx.lineWidth = 1;
      ctx.stroke();
    }
  }

  /** The inside of an open block: quiet ground, the status in its border. Clipped, so that huge blocks cost nothing. */
  private paintBody(block: Placed, colors: StatusColors, frame: Frame, top: number, bottom: number): void {
    const { ctx } = this;
    const y = Math.max(block.y, top - 20);
    const height = Math.min(block.y + block.height, bottom + 20) - y;
    ctx.beginPath();
    ctx.roundRect(block.x + 0.5, y + 0.5, block.width - 1, height - 1, 7);
    ctx.fillStyle = frame.palette.nest[block.node.depth % 2 === 0 ? 0 : 1];
    ctx.fill();
    ctx.strokeStyle = colors.edge;
    ctx.lineWidth = 1;
    ctx.stroke();
  }

  private paintHead(block: Placed, colors: StatusColors, frame: Frame, isOpen: boolean): void {
    const { ctx } = this;
    const { x, y, width, node } = block;
    const status = statusOf(node.info, frame.mode, frame.compared);
    this.shape(x + 0.5, y + 0.5, width - 1, BLOCK - 1, node, isOpen);
    ctx.fillStyle = colors.fill;
    ctx.fill();
    ctx.strokeStyle = colors.edge;
    ctx.lineWidth = 1;
    if (node.info.type === 9) ctx.setLineDash([4, 3]);
    ctx.stroke();
    ctx.setLineDash([]);
    const hidden = isOpen ? [] : hiddenBelow(node.info, frame.mode, frame.compared);
    const worst = hidden[0];
    if (worst && worst.status !== status) this.paintStripe(block, frame.palette.status[worst.status]);
    let right = x + width - 8;
    if (frame.begins === node.info.name) right = this.paintOrigin(right, y + BLOCK / 2, frame, colors);
    for (const { status, count } of [...hidden].reverse()) right = this.paintBadge(right, y, count, status, frame);
    if (node.info.children > 0) {
      this.paintCaret(x + 15, y + BLOCK / 2, isOpen, colors.ink);
      if (!isOpen && !worst) right = this.paintCount(right, y, node.info.children, colors.quiet);
    } else if (hasMark(status)) this.paintMark(x + 15, y + BLOCK / 2, status, colors.ink);
    else this.paintDot(x + 15, y + BLOCK / 2, colors);
    this.paintLabel(node.info, x + CARET_WIDTH + 2, y + BLOCK / 2 + 0.5, right - 6, colors);
  }

  private shape(x: number, y: number, width: number, height: number, node: TreeNode, isOpen: boolean): void {
    const radius = node.info.children === 0 ? height / 2 : 6;
    this.ctx.beginPath();
    this.ctx.roundRect(x, y, width, height, isOpen ? [7, 7, 0, 0] : radius);
  }

  /** A collapsed block shows the colour of the worst thing in it, so that nothing bad is hidden. */
  private paintStripe(block: Placed, colors: StatusColors): void {
    const { ctx } = this;
    ctx.beginPath();
    ctx.roundRect(block.x + 1, block.y + 1, STRIPE, BLOCK - 2, [5, 0, 0, 5]);
    ctx.fillStyle = colors.edge;
    ctx.fill();
  }

  private paintBadge(right: number, y: number, count: number, status: Status, frame: Frame): number {
    const { ctx } = this;
    const colors = frame.palette.status[status];
    const text = shortCount(count);
    const mark = hasMark(status) ? 2 * MARK + 2 : 0;
    const width = Math.max(18, this.widthOf(SMALL, text) + 10 + mark);
    ctx.font = SMALL;
    ctx.beginPath();
    ctx.roundRect(right - width, y + 5.5, width, BLOCK - 11, 7.5);
    ctx.fillStyle = colors.fill;
    ctx.fill();
    ctx.strokeStyle = colors.edge;
    ctx.lineWidth = frame.palette.name === 'dark' ? 1 : 1.2;
    ctx.stroke();
    ctx.fillStyle = colors.ink;
    ctx.textAlign = 'center';
    ctx.fillText(text, right - (width - mark) / 2, y + BLOCK / 2 + 0.5);
    ctx.textAlign = 'left';
    if (mark) this.paintMark(right - width + 5 + MARK, y + BLOCK / 2, status, colors.ink);
    return right - width - 4;
  }

  /** A colour is never alone. */
  private paintMark(x: number, y: number, status: Status, color: string): void {
    const { ctx } = this;
    if (traceMark(ctx, x, y, MARK, status) === 'line') {
      ctx.strokeStyle = color;
      ctx.lineWidth = 1.8;
      ctx.stroke();
      return;
    }
    ctx.fillStyle = color;
    ctx.fill();
  }

  /** The node that it all begins with, in whatever colours. */
  private paintOrigin(right: number, y: number, frame: Frame, colors: StatusColors): number {
    const { ctx } = this;
    traceMark(ctx, right - MARK - 1, y, MARK + 1.5, 'bug');
    ctx.fillStyle = frame.palette.surface;
    ctx.fill();
    ctx.strokeStyle = frame.mode === 'verdict' ? colors.edge : frame.palette.alarm;
    ctx.lineWidth = 2.5;
    ctx.stroke();
    return right - 2 * MARK - 8;
  }

  private paintCount(right: number, y: number, count: number, ink: string): number {
    const { ctx } = this;
    const text = shortCount(count);
    const width = this.widthOf(SMALL, text);
    ctx.font = SMALL;
    ctx.fillStyle = ink;
    ctx.fillText(text, right - width - 2, y + BLOCK / 2 + 0.5);
    return right - width - 6;
  }

  private paintCaret(x: number, y: number, isOpen: boolean, ink: string): void {
    const { ctx } = this;
    ctx.beginPath();
    if (isOpen) {
      ctx.moveTo(x - 4, y - 2);
      ctx.lineTo(x, y + 2.5);
      ctx.lineTo(x + 4, y - 2);
    } else {
      ctx.moveTo(x - 2, y - 4);
      ctx.lineTo(x + 2.5, y);
      ctx.lineTo(x - 2, y + 4);
    }
    ctx.strokeStyle = ink;
    ctx.lineWidth = 1.6;
    ctx.lineCap = 'round';
    ctx.lineJoin = 'round';
    ctx.stroke();
  }

  private paintDot(x: number, y: number, colors: StatusColors): void {
    const { ctx } = this;
    ctx.beginPath();
    ctx.arc(x, y, 2.5, 0, Math.PI * 2);
    ctx.fillStyle = colors.edge;
    ctx.fill();
  }

  /** The name strong, its direction and number quiet: "fc2.Linear" ".forward.0". */
  private paintLabel(info: NodeSummary, x: number, y: number, right: number, colors: StatusColors): void {
    const { ctx } = this;
    const { head, tail } = splitLabel(info.label);
    const headFont = info.type === 1 ? FONT : STRONG;
    const room = right - x;
    const tailWidth = tail ? this.widthOf(FONT, tail) : 0;
    const shown = this.fit(headFont, head, room - tailWidth);
    const shownWidth = tail ? this.widthOf(headFont, shown) : 0; // measuring sets the font, so it comes first
    ctx.font = headFont;
    ctx.fillStyle = colors.ink;
    ctx.fillText(shown, x, y);
    if (!tail) return;
    ctx.font = FONT;
    ctx.fillStyle = colors.quiet;
    ctx.fillText(tail, x + shownWidth, y);
  }

  private paintRing(block: Placed, frame: Frame, isOpen: boolean): void {
    const { ctx } = this;
    this.shape(block.x - 1, block.y - 1, block.width + 2, BLOCK + 2, block.node, isOpen);
    ctx.strokeStyle = frame.origin ? frame.palette.alarm : frame.palette.focus;
    ctx.lineWidth = 2.5;
    if (frame.partner) ctx.setLineDash([6, 3]);
    ctx.stroke();
    ctx.setLineDash([]);
    // A line of the ground inside keeps the ring apart from fills of its own colour.
    this.shape(block.x + 1, block.y + 1, block.width - 2, BLOCK - 2, block.node, isOpen);
    ctx.strokeStyle = frame.palette.surface;
    ctx.lineWidth = 1;
    ctx.stroke();
  }

  private widthOf(font: string, text: string): number {
    const key = `${font}\n${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      this.ctx.font = font;
      width = this.ctx.measureText(text).width;
      if (this.widths.size > 20_000) this.widths.clear();
      this.widths.set(key, width);
    }
    return width;
  }

  private fit(font: string, text: string, width: number): string {
    const key = `${font}\n${Math.round(width)}\n${text}`;
    let shown = this.fitted.get(key);
    if (shown === undefined) {
      const measure: Measure = (part) => {
        this.ctx.font = font;
        return this.ctx.measureText(part).width;
      };
      shown = fitText(text, width, measure);
      if (this.fitted.size > 20_000) this.fitted.clear();
      this.fitted.set(key, shown);
    }
    return shown;
  }
}

export function splitLabel(label: string): { head: string; tail: string } {
  const match = /^(.+?)(\.(?:forward|backward|parameters_grad)(?:\.\d+)?)$/.exec(label);
  return match ? { head: match[1]!, tail: match[2]! } : { head: label, tail: '' };
}
