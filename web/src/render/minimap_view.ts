import { minimapScale, minimapStrips } from '../layout/minimap';
import type { Session } from '../model/session';
import type { Palette } from '../theme/palette';
import type { PaneView } from './pane_view';

const MARGIN_X = 5;
const INDENT = 2;
const WINDOW_MIN = 10; // so that it can be gripped in a long graph

/** The whole of a side as a narrow picture with a window on what its pane shows: drag it, or click to go there. */
export class MinimapView {
  private readonly picture = document.createElement('canvas');
  private readonly undo: (() => void)[] = [];
  private drawn = '';
  private grip: number | null = null; // where the window is held, from its top

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly pane: PaneView,
    private readonly session: Session,
    private palette: Palette,
  ) {
    const observer = new ResizeObserver(() => this.paint());
    observer.observe(canvas);
    this.undo.push(() => observer.disconnect(), pane.onPaint(() => this.paint()));
    this.on('pointerdown', (event) => this.onDown(event));
    this.on('pointermove', (event) => this.grip !== null && this.move(event, this.grip));
    this.on('pointerup', () => (this.grip = null));
    this.on('pointercancel', () => (this.grip = null));
    this.on('wheel', (event) => {
      event.preventDefault();
      pane.scrollBy(0, event.deltaY);
    });
    this.paint();
  }

  private on<K extends keyof HTMLElementEventMap>(kind: K, handle: (event: HTMLElementEventMap[K]) => void): void {
    this.canvas.addEventListener(kind, handle, { passive: false });
    this.undo.push(() => this.canvas.removeEventListener(kind, handle));
  }

  destroy(): void {
    for (const step of this.undo) step();
  }

  setPalette(palette: Palette): void {
    this.palette = palette;
    this.paint();
  }

  /** What the pane shows, in pixels of the picture. */
  window(): { top: number; height: number } {
    const { top, height, whole } = this.pane.seen();
    const scale = minimapScale(whole, this.canvas.clientHeight);
    const all = whole * scale;
    const shown = Math.min(Math.max(height * scale, WINDOW_MIN), all);
    const rest = whole - height;
    return { top: rest > 0 ? (Math.max(top, 0) / rest) * (all - shown) : 0, height: shown };
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const { top, height } = this.window();
    const y = this.yOf(event);
    this.grip = y >= top && y <= top + height ? y - top : height / 2;
    this.move(event, this.grip);
  }

  private yOf(event: PointerEvent): number {
    return event.clientY - this.canvas.getBoundingClientRect().top;
  }

  private move(event: PointerEvent, grip: number): void {
    const { height, whole } = this.pane.seen();
    const scale = minimapScale(whole, this.canvas.clientHeight);
    const room = whole * scale - this.window().height;
    if (room <= 0) return;
    const share = Math.min(Math.max((this.yOf(event) - grip) / room, 0), 1);
    this.pane.showFrom(share * (whole - height));
  }

  private paint(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const { revision, mode } = this.session.state;
    const key = [revision, mode, this.palette.name, width, height, ratio, this.pane.seen().whole].join(' ');
    if (key !== this.drawn) {
      this.drawn = key;
      this.paintPicture(width, height, ratio);
    }
    const ctx = this.canvas.getContext('2d')!;
    const { top, height: shown } = this.window();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.drawImage(this.picture, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.globalAlpha = 0.14;
    ctx.fillStyle = this.palette.accent;
    ctx.fillRect(1, top, width - 2, shown);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = this.palette.accent;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(1.5, top + 0.75, width - 3, Math.max(shown - 1.5, 1));
  }

  private paintPicture(width: number, height: number, ratio: number): void {
    const { mode, config } = this.session.state;
    for (const canvas of [this.canvas, this.picture]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const ctx = this.picture.getContext('2d')!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = this.palette.page;
    ctx.fillRect(0, 0, width, height);
    const { tree } = this.pane;
    const scale = minimapScale(this.pane.seen().whole, height);
    for (const { y, height: tall, depth, status, inside } of minimapStrips(tree, scale, mode, config?.graph_type === 'compare')) {
      const x = Math.min(MARGIN_X + depth * INDENT, width / 2);
      ctx.fillStyle = inside ? this.palette.nest[depth % 2 === 0 ? 0 : 1] : this.palette.status[status].edge;
      ctx.fillRect(x, y, width - MARGIN_X - x, tall > 3 && !inside ? tall - 1 : tall);
    }
  }
}
