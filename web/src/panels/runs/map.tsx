import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { panWindow, zoomWindow, type Extent, type StepWindow } from '../../model/run_view';
import { rowAt, rowsIn, RunMapPainter, stepAt, TOP, wantedTiles, type RunPicture, type RunPlace } from '../../render/run_map';
import { usePalette, useText } from '../context';

export const READABLE = 15; // pixels of a row
const TALL = 24;
const LEAST = 2;

/** What so many rows can use. */
export const mapHeight = (rows: number) => TOP + rows * TALL;

export interface RunCellPlace {
  row: number;
  step: number;
}

interface Props {
  picture: RunPicture;
  extent: Extent;
  window: StepWindow;
  fit: boolean; // all rows on the screen
  onWindow: (window: StepWindow) => void;
  onActive: (cell: RunCellPlace) => void;
  onPick: (cell: RunCellPlace) => void;
  onNames: (width: number) => void;
  painted: (settled: boolean) => void;
}

/** Rows over steps. The canvas has what is on the screen only; moving it draws the tiles that are there. */
export function RunMap(props: Props) {
  const { picture, extent, onWindow, onActive, onPick, onNames, painted } = props;
  const t = useText();
  const palette = usePalette();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<RunMapPainter | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [top, setTop] = useState(0);
  const [active, setActive] = useState<RunCellPlace | null>(null);
  const chosen = useRef<RunCellPlace | null>(null); // read by the next key, which may come before this is drawn
  const drag = useRef<{ x: number; y: number; window: StepWindow; top: number; moved: boolean } | null>(null);

  useLayoutEffect(() => {
    painter.current = new RunMapPainter(canvas.current!);
    const measure = () => setSize({ width: box.current!.clientWidth, height: box.current!.clientHeight });
    const watch = new ResizeObserver(measure);
    measure();
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);

  const count = picture.rows.length;
  const room = Math.max(1, size.height - TOP);
  const rowHeight = props.fit ? Math.max(LEAST, Math.min(TALL, room / Math.max(1, count))) : Math.min(TALL, Math.max(READABLE, room / Math.max(1, count)));
  const lowest = Math.max(0, count * rowHeight - room);
  const widest = useRef({ rows: picture.rows, width: 0 });
  if (painter.current && (widest.current.rows !== picture.rows || widest.current.width === 0)) {
    const longest = picture.rows.reduce((most, row) => (row.label.length > most.length ? row.label : most), '');
    widest.current = { rows: picture.rows, width: painter.current.measure(longest) };
  }
  const names = Math.min(Math.max(90, Math.ceil(widest.current.width) + 20), Math.max(110, Math.floor(size.width * 0.34)));
  const place: RunPlace = { ...size, names, rowHeight, top: Math.min(top, lowest), window: props.window, active };

  useLayoutEffect(() => {
    if (size.width > 0) onNames(names);
  }, [names, size.width]);
  useLayoutEffect(() => {
    if (!painter.current || size.width === 0) return;
    const [shown, next] = wantedTiles(picture, place);
    picture.tiles.want(shown, next);
    picture.other?.want(shown, next);
    painter.current.paint(picture, place, palette);
    painted(picture.tiles.settled);
  });

  const at = (event: MouseEvent): RunCellPlace | null => {
    const { left, top: above } = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - above];
    const row = rowAt(place, y);
    if (y < TOP || row < 0 || row >= count) return null;
    return { row, step: x < names ? place.window.from : stepAt(place, x) };
  };
  const choose = (cell: RunCellPlace | null) => {
    if (!cell || (chosen.current?.row === cell.row && chosen.current.step === cell.step)) return;
    chosen.current = cell;
    setActive(cell);
    onActive(cell);
  };
  const scroll = (by: number) => setTop((now) => Math.min(lowest, Math.max(0, Math.min(now, lowest) + by)));
  const span = place.window.to - place.window.from;

  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const step = stepAt(place, event.clientX - canvas.current!.getBoundingClientRect().left);
    if (event.ctrlKey || event.metaKey) onWindow(zoomWindow(place.window, 1.0015 ** event.deltaY, step, extent));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) onWindow(panWindow(place.window, ((event.deltaX || event.deltaY) / (size.width - names)) * span, extent));
    else if (lowest > 0) scroll(event.deltaY);
    else onWindow(zoomWindow(place.window, 1.0015 ** event.deltaY, step, extent));
  };
  useEffect(() => {
    const element = canvas.current!;
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  });

  const onPointerMove = (event: PointerEvent) => {
    const from = drag.current;
    if (!from) return choose(at(event));
    if (!from.moved && Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) < 4) return;
    from.moved = true;
    onWindow(panWindow(from.window, (-(event.clientX - from.x) / (size.width - names)) * (from.window.to - from.window.from), extent));
    setTop(Math.min(lowest, Math.max(0, from.top - (event.clientY - from.y))));
  };
  const onPointerUp = (event: PointerEvent) => {
    const from = drag.current;
    drag.current = null;
    const cell = at(event);
    if (!from || from.moved || !cell) return;
    choose(cell);
    onPick(cell);
  };

  const onKey = (event: KeyboardEvent) => {
    const cell = chosen.current ?? { row: 0, step: place.window.from };
    const bin = Math.max(extent.interval, span / 40);
    const moves: Record<string, [rows: number, steps: number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -bin], ArrowRight: [0, bin], PageUp: [-20, 0], PageDown: [20, 0] };
    const by = moves[event.key];
    const zoom = { w: 0.8, '+': 0.8, '=': 0.8, s: 1.25, '-': 1.25 }[event.key.toLowerCase()];
    const pan = { a: -0.2, d: 0.2 }[event.key.toLowerCase()];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (by) {
      const row = Math.max(0, Math.min(count - 1, cell.row + by[0]));
      const step = Math.max(extent.first, Math.min(extent.last, cell.step + by[1]));
      choose({ row, step });
      const [first, last] = rowsIn(place, count);
      if (row <= first) setTop(row * rowHeight);
      else if (row >= last) setTop(Math.min(lowest, (row + 1) * rowHeight - room));
      if (step < place.window.from || step >= place.window.to) onWindow(panWindow(place.window, by[1] * 4, extent));
    } else if (zoom) onWindow(zoomWindow(place.window, zoom, chosen.current?.step ?? (place.window.from + place.window.to) / 2, extent));
    else if (pan) onWindow(panWindow(place.window, pan * span, extent));
    else if (event.key === 'Home') onWindow(zoomWindow(place.window, Infinity, 0, extent));
    else if (event.key === 'Enter' || event.key === ' ') onPick(cell);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="run-map" ref={box}>
      <canvas
        ref={canvas}
        data-test="run-map"
        tabIndex={0}
        role="application"
        aria-label={t('run.mapLabel')}
        style={{ width: `${size.width}px`, height: `${size.height}px` }}
        onKeyDown={onKey}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.clientX, y: event.clientY, window: place.window, top: place.top, moved: false };
        }}
      />
      {lowest > 0 && <div class="run-scroll" aria-hidden="true" style={{ top: `${TOP + (place.top / (lowest + room)) * room}px`, height: `${(room / (lowest + room)) * room}px` }} />}
    </div>
  );
}
