import type { Side } from '../api/types';
import { BLOCK, blockAt, contentHeight, layoutTree, leftOf, MARGIN, neededWidth, relayout, topOf, visibleBlocks, widthOf, type Placed } from '../layout/blocks';
import type { Session } from '../model/session';
import { isShown, type Tree, type TreeNode } from '../model/tree';
import type { Palette } from '../theme/palette';
import { paintEdges, visibleEdges, type Edge } from './edges';
import { CARET_WIDTH, Painter } from './painter';

export const ZOOM_MIN = 0.5;
export const ZOOM_MAX = 3;
const BAR = 12; // width of the scroll bar's strip
const THUMB_MIN = 28;
const SCROLL_MS = 160;
const WIDEST = 1000; // wider blocks only part a name from its badges

export interface PaneEvents {
  /** The pane moved by the user's hand; the other one may follow. */
  scrolled(): void;
  zoomed(zoom: number): void;
  hovered(node: TreeNode | null, x: number, y: number): void;
}

type Drag = { kind: 'pan'; x: number; y: number; scrollX: number; scrollY: number; moved: boolean } | { kind: 'bar'; grip: number };

/** One canvas with its scroll position: paints what is visible, turns the pointer into actions of the session. */
export class PaneView {
  private readonly painter: Painter;
  private readonly undo: (() => void)[] = [];
  private palette: Palette;
  private width = 0;
  private height = 0;
  private scrollX = 0;
  private scrollY = 0;
  private zoomBy = 1;
  private pending = 0;
  private drawnOf: unknown[] = [];
  private hovered: TreeNode | null = null;
  private drag: Drag | null = null;
  private glide: { from: number; to: number; start: number } | null = null;
  private readonly paintListeners = new Set<() => void>();
  lastPaintMs = 0;
  painted: Placed[] = [];
  edges: Edge[] = [];

  constructor(
    readonly canvas: HTMLCanvasElement,
    readonly side: Side,
    readonly tree: Tree,
    private readonly session: Session,
    palette: Palette,
    private readonly events: PaneEvents,
  ) {
    const ctx = canvas.getContext('2d', { alpha: false });
    if (!ctx) throw new Error('canvas 2d is not available');
    this.painter = new Painter(ctx);
    this.palette = palette;
    layoutTree(tree);
    const unlisten = tree.onChange((node) => {
      relayout(node);
      this.clampScroll();
      this.invalidate();
    });
    const observer = new ResizeObserver((entries) => this.resize(entries[0]?.devicePixelContentBoxSize?.[0]));
    observeDevicePixels(observer, canvas);
    this.undo.push(unlisten, () => observer.disconnect(), session.store.subscribe(() => this.followState()));
    this.listen();
    this.resize();
  }

  destroy(): void {
    cancelAnimationFrame(this.pending);
    for (const step of this.undo) step();
  }

  setPalette(palette: Palette): void {
    this.palette = palette;
    this.invalidate();
  }

  get zoom(): number {
    return this.zoomBy;
  }

  // --- where things are

  private contentWidth(): number {
    return Math.max(Math.min((this.width - BAR) / this.zoomBy, WIDEST), neededWidth(this.tree));
  }

  private maxScroll(): { x: number; y: number } {
    return {
      x: this.contentWidth() * this.zoomBy - (this.width - BAR),
      y: Math.max(0, contentHeight(this.tree) * this.zoomBy - this.height),
    };
  }

  private clampScroll(): void {
    const max = this.maxScroll();
    this.scrollX = max.x > 0 ? Math.min(Math.max(this.scrollX, 0), max.x) : max.x / 2; // what is narrow stands in the middle
    this.scrollY = Math.min(Math.max(this.scrollY, 0), max.y);
  }

  /** Head of a shown node in pixels of the canvas; null when a closed ancestor hides it. */
  rectOf(node: TreeNode): { x: number; y: number; width: number; height: number } | null {
    if (!isShown(node)) return null;
    const x = leftOf(node.depth) * this.zoomBy - this.scrollX;
    const y = topOf(node) * this.zoomBy - this.scrollY;
    return { x, y, width: widthOf(node.depth, this.contentWidth()) * this.zoomBy, height: BLOCK * this.zoomBy };
  }

  private at(clientX: number, clientY: number): Placed | null {
    const box = this.canvas.getBoundingClientRect();
    const x = (clientX - box.left + this.scrollX) / this.zoomBy;
    const y = (clientY - box.top + this.scrollY) / this.zoomBy;
    return blockAt(this.tree, x, y, this.contentWidth());
  }

  nodeAt(clientX: number, clientY: number): TreeNode | null {
    return this.at(clientX, clientY)?.node ?? null;
  }

  // --- moving

  private scrollTo(x: number, y: number): void {
    this.glide = null;
    this.scrollX = x;
    this.scrollY = y;
    this.clampScroll();
    this.invalidate();
  }

  /** By the user's hand: the other side follows. */
  scrollBy(x: number, y: number): void {
    this.scrollTo(this.scrollX + x, this.scrollY + y);
    this.moved();
  }

  /** What stands where now is needed before the next frame: the other side lines up with it. */
  private moved(): void {
    const top = this.scrollY / this.zoomBy;
    this.painted = visibleBlocks(this.tree, top, top + this.height / this.zoomBy, this.contentWidth());
    this.events.scrolled();
  }

  /** Brings a node into view; when it is in view already nothing moves. */
  reveal(node: TreeNode): void {
    const rect = this.rectOf(node);
    if (!rect) return;
    if (rect.y >= rect.height && rect.y + rect.height * 2 <= this.height) return;
    const { y: max } = this.maxScroll();
    this.glideTo(Math.min(Math.max(this.scrollY + rect.y - this.roomAbove(node), 0), max));
  }

  /** What is kept in sight above a revealed node: its parent's head, if both fit; it says where one is. */
  private roomAbove(node: TreeNode): number {
    const up = node.parent ? (topOf(node) - topOf(node.parent) + MARGIN) * this.zoomBy : 0;
    return up < this.height * 0.7 ? Math.max(up, this.height / 3) : this.height / 3;
  }

  private glideTo(to: number): void {
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches || Math.abs(to - this.scrollY) > 4 * this.height;
    if (still) this.scrollTo(this.scrollX, to);
    else this.glide = { from: this.scrollY, to, start: performance.now() };
    this.invalidate();
  }

  private advanceGlide(now: number): void {
    if (!this.glide) return;
    const { from, to, start } = this.glide;
    const t = Math.min(1, Math.max(0, (now - start) / SCROLL_MS));
    this.scrollY = from + (to - from) * (1 - (1 - t) ** 3);
    if (t >= 1) this.glide = null;
    this.clampScroll();
    this.invalidate();
  }

  /** Where the head of a node will stand once the pane is at rest; null when out of view. */
  restingTop(node: TreeNode): number | null {
    const rect = this.rectOf(node);
    if (!rect) return null;
    const y = rect.y + (this.glide ? this.scrollY - this.glide.to : 0);
    return y >= 0 && y + rect.height <= this.height ? y : null;
  }

  /** A matched node near the middle and where it stands, for the other side to line up with. */
  anchor(): { matched: string; y: number } | null {
    let best: { matched: string; y: number } | null = null;
    const middle = this.height / 2;
    for (const { node, y } of this.painted) {
      const matched = node.info.matched;
      const top = y * this.zoomBy - this.scrollY;
      if (matched === null || top < -BLOCK || top > this.height) continue;
      if (!best || Math.abs(top - middle) < Math.abs(best.y - middle)) best = { matched, y: top };
    }
    return best;
  }

  lineUp(name: string, y: number): void {
    const node = this.tree.get(name);
    const rect = node && this.rectOf(node);
    if (rect) this.scrollTo(this.scrollX, this.scrollY + rect.y - y);
  }

  setZoom(zoom: number, centre = this.height / 2): void {
    const next = Math.min(Math.max(zoom, ZOOM_MIN), ZOOM_MAX);
    if (next === this.zoomBy) return;
    const content = (this.scrollY + centre) / this.zoomBy;
    this.zoomBy = next;
    this.scrollTo(this.scrollX, content * next - centre);
  }

  zoomByHand(factor: number): void {
    this.setZoom(this.zoomBy * factor);
    this.events.zoomed(this.zoomBy);
  }

  /** The zoom at which the whole is seen, as far as names stay readable. */
  fitZoom(): number {
    const zoom = Math.min((this.width - BAR) / neededWidth(this.tree), this.height / contentHeight(this.tree), 1);
    return Math.min(Math.max(zoom, ZOOM_MIN), ZOOM_MAX);
  }

  showStart(): void {
    this.scrollTo(0, 0);
  }

  /** What is seen of the whole, in content coordinates. */
  seen(): { top: number; height: number; whole: number } {
    return { top: this.scrollY / this.zoomBy, height: this.height / this.zoomBy, whole: contentHeight(this.tree) };
  }

  /** By the user's hand: the content from `top` on. */
  showFrom(top: number): void {
    this.scrollTo(this.scrollX, top * this.zoomBy);
    this.moved();
  }

  onPaint(listener: () => void): () => void {
    this.paintListeners.add(listener);
    return () => this.paintListeners.delete(listener);
  }

  // --- painting

  /** `exact` is what the browser will fill: guessed from the size, it is a pixel off at odd places, and text blurs. */
  private resize(exact?: ResizeObserverSize): void {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    canvas.width = exact?.inlineSize ?? Math.round(this.width * ratio);
    canvas.height = exact?.blockSize ?? Math.round(this.height * ratio);
    this.clampScroll();
    this.paint(performance.now()); // at once: a cleared canvas would flicker
  }
  /** Draws again only when something changed that is drawn here: the tables change far more often. */
  private followState(): void {
    const { state } = this.session;
    const { revision, mode, selection, config, links, matching } = state;
    const now = [revision, mode, selection, config, links.at === 'ready' ? links.value : null, matching.picked, state.graph];
    if (this.drawnOf.length === now.length && now.every((part, i) => Object.is(part, this.drawnOf[i]))) return;
    this.drawnOf = now;
    this.invalidate();
  }

  invalidate(): void {
    if (this.pending === 0) this.pending = requestAnimationFrame((now) => this.paint(now));
  }

  private paint(now: number): void {
    this.pending = 0;
    this.advanceGlide(now);
    if (this.width === 0 || this.height === 0) return;
    const started = performance.now();
    const { mode, selection, config } = this.session.state;
    const top = this.scrollY / this.zoomBy;
    this.painted = visibleBlocks(this.tree, top, top + this.height / this.zoomBy, this.contentWidth());
    this.painter.paint(this.painted, {
      width: this.width,
      height: this.height,
      scrollX: this.scrollX,
      scrollY: this.scrollY,
      zoom: this.zoomBy,
      ratio: window.devicePixelRatio || 1,
      palette: this.palette,
      mode,
      compared: config?.graph_type === 'compare',
      selected: this.session.highlighted(this.side),
      partner: !this.session.ownHighlight(this.side),
      origin: selection === null,
      begins: this.begins(),
      hovered: this.drag ? null : this.hovered,
    });
    this.paintFlow();
    this.paintBar();
    this.lastPaintMs = performance.now() - started;
    for (const listener of this.paintListeners) listener();
  }

  private begins(): string | null {
    const origin = this.session.problems.originHere();
    return origin?.side === this.side ? origin.name : null;
  }

  /** Where the values of the selected node come from and go to. */
  private paintFlow(): void {
    const { links, selection } = this.session.state;
    const selected = selection?.side === this.side ? this.tree.get(selection.name) : undefined;
    this.edges = selected && links.at === 'ready' ? visibleEdges(this.tree, selected, links.value) : [];
    if (this.edges.length > 0) paintEdges(this.canvas.getContext('2d')!, this.edges, (node) => this.rectOf(node), this.palette, window.devicePixelRatio || 1);
  }

  private thumb(): { top: number; height: number } | null {
    const full = contentHeight(this.tree) * this.zoomBy;
    if (full <= this.height) return null;
    const height = Math.max(THUMB_MIN, (this.height * this.height) / full);
    return { top: (this.scrollY / (full - this.height)) * (this.height - height), height };
  }

  private paintBar(): void {
    const thumb = this.thumb();
    if (!thumb) return;
    const ctx = this.canvas.getContext('2d')!;
    const ratio = window.devicePixelRatio || 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.beginPath();
    ctx.roundRect(this.width - 9, thumb.top + 2, 6, thumb.height - 4, 3);
    ctx.globalAlpha = this.drag?.kind === 'bar' ? 0.75 : 0.4;
    ctx.fillStyle = this.palette.muted;
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  // --- the pointer

  private listen(): void {
    const on = <K extends keyof HTMLElementEventMap>(kind: K, handle: (event: HTMLElementEventMap[K]) => void) => {
      this.canvas.addEventListener(kind, handle, { passive: false });
      this.undo.push(() => this.canvas.removeEventListener(kind, handle));
    };
    on('wheel', (event) => this.onWheel(event));
    on('pointerdown', (event) => this.onDown(event));
    on('pointermove', (event) => this.onMove(event));
    on('pointerup', (event) => this.onUp(event));
    on('pointercancel', () => (this.drag = null));
    on('pointerleave', () => this.hover(null, 0, 0));
    on('dblclick', (event) => this.onDouble(event));
  }

  private onWheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 24 : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? this.height : 1;
    if (event.ctrlKey || event.metaKey) {
      const box = this.canvas.getBoundingClientRect();
      this.setZoom(this.zoomBy * Math.exp(-event.deltaY * unit * 0.002), event.clientY - box.top);
      this.events.zoomed(this.zoomBy);
    } else if (event.shiftKey) this.scrollBy(event.deltaY * unit + event.deltaX * unit, 0);
    else this.scrollBy(event.deltaX * unit, event.deltaY * unit);
    this.hover(null, 0, 0);
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const box = this.canvas.getBoundingClientRect();
    const thumb = this.thumb();
    const y = event.clientY - box.top;
    if (thumb && event.clientX - box.left > this.width - BAR) {
      const inside = y >= thumb.top && y <= thumb.top + thumb.height;
      this.drag = { kind: 'bar', grip: inside ? y - thumb.top : thumb.height / 2 };
      this.moveBar(y);
    } else {
      const { scrollX, scrollY } = this;
      this.drag = { kind: 'pan', x: event.clientX, y: event.clientY, scrollX, scrollY, moved: false };
    }
  }

  private moveBar(y: number): void {
    const thumb = this.thumb();
    if (!thumb || this.drag?.kind !== 'bar') return;
    const share = (y - this.drag.grip) / (this.height - thumb.height);
    this.scrollTo(this.scrollX, share * this.maxScroll().y);
    this.moved();
  }

  private onMove(event: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      this.hover(this.at(event.clientX, event.clientY)?.node ?? null, event.clientX, event.clientY);
      return;
    }
    if (drag.kind === 'bar') {
      this.moveBar(event.clientY - this.canvas.getBoundingClientRect().top);
      return;
    }
    const dx = event.clientX - drag.x;
    const dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag.moved = true;
    this.hover(null, 0, 0);
    this.canvas.style.cursor = 'grabbing';
    this.scrollTo(drag.scrollX - dx, drag.scrollY - dy);
    this.moved();
  }

  private onUp(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    this.canvas.style.cursor = '';
    this.invalidate();
    if (drag?.kind !== 'pan' || drag.moved) return;
    const block = this.at(event.clientX, event.clientY);
    if (!block) return;
    const onHead = event.clientY - this.canvas.getBoundingClientRect().top + this.scrollY < (block.y + BLOCK) * this.zoomBy;
    if (onHead && this.onCaret(block, event.clientX)) void this.session.toggle(this.side, block.node);
    else void this.session.select(this.side, block.node);
  }

  private onCaret(block: Placed, clientX: number): boolean {
    const x = (clientX - this.canvas.getBoundingClientRect().left + this.scrollX) / this.zoomBy;
    return block.node.info.children > 0 && x < block.x + CARET_WIDTH;
  }

  private onDouble(event: MouseEvent): void {
    const block = this.at(event.clientX, event.clientY);
    if (!block || block.node.info.children === 0 || this.onCaret(block, event.clientX)) return;
    void this.session.toggle(this.side, block.node);
  }

  private hover(node: TreeNode | null, x: number, y: number): void {
    if (node !== this.hovered) {
      this.hovered = node;
      this.invalidate();
    }
    this.canvas.style.cursor = node ? 'pointer' : '';
    this.events.hovered(node, x, y);
  }
}

function observeDevicePixels(observer: ResizeObserver, canvas: HTMLCanvasElement): void {
  try {
    observer.observe(canvas, { box: 'device-pixel-content-box' });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    observer.observe(canvas); // Safari does not know the exact box
  }
}
