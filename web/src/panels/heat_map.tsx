import { useEffect, useRef, useState } from 'preact/hooks';
import type { HeatMap, Value } from '../api/tensor';
import { cellSpan, spanText, valueText } from '../model/tensor';
import { mix, type Palette } from '../theme/palette';
import { usePalette, useText } from './context';

interface HeatProps {
  title: string;
  map: HeatMap;
  scale: number; // the magnitude of full colour
}

function colorOf(value: Value, scale: number, palette: Palette): string {
  if (value === 'nan') return palette.ink;
  const positive = typeof value === 'number' ? value >= 0 : value === 'inf';
  const share = typeof value !== 'number' ? 1 : scale > 0 ? Math.min(Math.abs(value) / scale, 1) : 0;
  return mix(positive ? palette.accent : palette.status.error.edge, palette.raised, share);
}

/** A picture of a slice; the pointer or the arrow keys read its cells. */
export function HeatMapView({ title, map, scale }: HeatProps) {
  const t = useText();
  const palette = usePalette();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<{ row: number; column: number } | null>(null);
  const { cell_rows: rows, cell_columns: columns } = map;
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        context.fillStyle = colorOf(map.cells[row * columns + column]!, scale, palette);
        context.fillRect(column, row, 1, 1);
      }
    }
  }, [map, scale, palette]);
  if (rows === 0 || columns === 0) return null;
  // Cells are square where there is room; a vector is a band.
  const width = Math.max(columns * 3, 96);
  const height = Math.max(rows * 3, 12);
  const within = (row: number, column: number) => ({ row: Math.min(Math.max(row, 0), rows - 1), column: Math.min(Math.max(column, 0), columns - 1) });
  const onPointer = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    setAt(within(Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * columns)));
  };
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by) return;
    setAt((before) => (before ? within(before.row + by[0]!, before.column + by[1]!) : { row: 0, column: 0 }));
    event.preventDefault();
    event.stopPropagation();
  };
  const read = at && {
    rows: spanText(cellSpan(at.row, rows, map.rows)),
    columns: spanText(cellSpan(at.column, columns, map.columns)),
    value: valueText(map.cells[at.row * columns + at.column]!),
  };
  return (
    <figure class="heat">
      <figcaption>{title}</figcaption>
      <div class="heat-frame">
        <canvas ref={canvas} width={columns} height={rows} tabIndex={0} role="img" data-test="heat" aria-label={`${title}. ${t('tensor.cellHint')}`} style={{ width: `${width}px`, height: `${height}px` }} onPointerMove={onPointer} onPointerLeave={() => setAt(null)} onKeyDown={onKey} />
        {at && <span class="heat-mark" style={{ left: `${(at.column / columns) * width}px`, top: `${(at.row / rows) * height}px`, width: `${width / columns}px`, height: `${height / rows}px` }} />}
      </div>
      <span class="heat-read" role="status">
        {read ? t('tensor.cell', read) : t('tensor.scale', { value: valueText(scale), rows: map.rows, columns: map.columns })}
      </span>
    </figure>
  );
}
