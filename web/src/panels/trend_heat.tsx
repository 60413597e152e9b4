import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { deviations } from '../model/deviations';
import { grouped } from '../model/format';
import { isInfinite, isOutside, makeScale, relativeDifference, valueText, type ScaleMode, type Thresholds } from '../model/trend_scale';
import type { MapView, TrendChoice, TrendLine, TrendMap } from '../model/trends';
import { heatCellAt, heatColor, HEAD_HEIGHT, HeatPainter, layHeat, ROW_HEIGHT, type HeatCell, type HeatPicture } from '../render/heat_map';
import { usePalette, useText } from './context';

export interface MarkedLine extends TrendLine {
  cell: HeatCell | null; // where it was asked for, as long as the map is the same
}

interface Props {
  choice: TrendChoice;
  map: TrendMap;
  mode: ScaleMode;
  view: MapView;
  limits: Thresholds;
  lines: MarkedLine[];
  onPick: (cell: HeatCell) => void;
  onDrill: (row: number) => void;
}

/** The values shown, and the scale that colours them; both runs share one, so that their colours compare. */
function useShown({ map, mode, view }: Props) {
  return useMemo(() => {
    const first = map.grid.values;
    if (view === 'difference' && map.other) {
      const values = first.map((value, i) => relativeDifference(value, map.other![i] ?? null));
      return { values, raw: values, scale: null };
    }
    const raw = view === 'other' && map.other ? map.other : first;
    if (mode === 'sigma') return { values: deviations(raw, map.grid.columns.length, map.grid.rows.length > 0 ? 'row' : 'column'), raw, scale: null };
    const both = map.other ? [...first, ...map.other] : first;
    return { values: raw, raw, scale: makeScale(both, mode) };
  }, [map, mode, view]);
}

export function TrendHeat(props: Props) {
  const { choice, map, mode, view, limits, lines, onPick, onDrill } = props;
  const t = useText();
  const palette = usePalette();
  const scroll = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<HeatPainter | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [place, setPlace] = useState({ left: 0, top: 0 });
  // Read by the next key at once, which may come before this is drawn; with another map nothing is chosen.
  const chosen = useRef<{ map: TrendMap; cell: HeatCell | null }>({ map, cell: null });
  if (chosen.current.map !== map) chosen.current = { map, cell: null };
  const active = chosen.current.cell;
  const [, drawAgain] = useState(0);
  const setActive = (cell: HeatCell | null) => {
    chosen.current.cell = cell;
    drawAgain((count) => count + 1);
  };
  const { values, raw, scale } = useShown(props);
  const { columns } = map.grid;
  const difference = view === 'difference' && map.other !== null;
  const sigma = mode === 'sigma' && !difference;
  const diverging = difference || sigma;
  const reach = sigma ? 3 : 1; // of values, to either side
  const outside = useMemo(() => (index: number) => !difference && isOutside(raw[index] ?? null, limits), [limits, difference, raw]);

  useLayoutEffect(() => {
    painter.current = new HeatPainter(canvas.current!);
    const watch = new ResizeObserver(() => setSize({ width: scroll.current!.clientWidth, height: scroll.current!.clientHeight }));
    watch.observe(scroll.current!);
    return () => watch.disconnect();
  }, []);
  const layout = useMemo(
    () => (size.width > 0 && painter.current ? layHeat(map.labels, columns.length, size.width, painter.current.measure) : null),
    [map, size.width],
  );
  useEffect(() => {
    if (!layout || !painter.current) return;
    const marked = lines.flatMap((line) => (line.cell ? [line.cell] : []));
    const picture: HeatPicture = {
      titles: [t(choice.dimension === 'target' ? 'select.rank' : 'trend.name'), t(choice.dimension === 'step' ? 'select.rank' : 'select.step')],
      labels: map.labels,
      columns,
      values,
      place: (value) => (diverging ? (value / reach + 1) / 2 : (scale?.place(value) ?? 0.5)),
      diverging,
      outside,
      marked,
    };
    painter.current.paint(picture, layout, palette, { ...size, ...place, active });
  });

  const cellOf = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return layout && heatCellAt(layout, map.labels.length, columns.length, event.clientX - box.left, event.clientY - box.top, place.left, place.top);
  };
  const isName = (event: MouseEvent) => layout !== null && event.clientX - canvas.current!.getBoundingClientRect().left < layout.names;
  const choose = (cell: HeatCell, byName: boolean) => {
    setActive(cell);
    if (byName && choice.dimension !== 'target') onDrill(cell.row);
    else onPick(cell);
  };
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-20, 0], PageDown: [20, 0] }[event.key];
    const from = chosen.current.cell;
    if (by) {
      const row = Math.max(0, Math.min(map.labels.length - 1, from ? from.row + by[0]! : 0));
      const column = Math.max(0, Math.min(columns.length - 1, from ? from.column + by[1]! : 0));
      setActive({ row, column });
      if (layout) intoView(scroll.current!, layout.names, layout.cell, row, column);
    } else if ((event.key === 'Enter' || event.key === ' ') && from) choose(from, event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const outsideCount = useMemo(() => values.reduce<number>((sum, _, at) => sum + (outside(at) ? 1 : 0), 0), [values, outside]);
  const index = active ? active.row * columns.length + active.column : -1;
  const readout = active
    ? [
        map.labels[active.row],
        `${t(choice.dimension === 'step' ? 'select.rank' : 'select.step')} ${columns[active.column]}`,
        valueText(map.grid.values[index] ?? null),
        ...(map.other ? [t('trend.otherValue', { value: valueText(map.other[index] ?? null) })] : []),
      ].join(' · ')
    : t('trend.hint');
  return (
    <>
      <div class="trend-read">
        <span class="trend-readout" data-test="trend-readout" aria-live="polite">
          {readout}
        </span>
        {outsideCount > 0 && <b class="trend-outside">{t('trend.outside', { count: outsideCount })}</b>}
        <SpecialLegend values={values} />
        <Legend steps={sigma && t(choice.dimension === 'rank' ? 'trend.sigmaSteps' : 'trend.sigmaRanks')} diverging={diverging} low={sigma ? '-3 σ' : difference ? '-100 %' : valueText(scale?.low ?? null)} high={sigma ? '+3 σ' : difference ? '+100 %' : valueText(scale?.high ?? null)} color={(at) => heatColor(at, diverging, palette)} />
      </div>
      <div class="heat-scroll" ref={scroll} onScroll={(event) => setPlace({ left: event.currentTarget.scrollLeft, top: event.currentTarget.scrollTop })}>
        <canvas
          ref={canvas}
          data-test="trend-map"
          tabIndex={0}
          role="application"
          aria-label={t('trend.mapLabel')}
          style={{ width: `${size.width}px`, height: `${size.height}px` }}
          onKeyDown={onKey}
          onMouseMove={(event) => setActive(cellOf(event) ?? chosen.current.cell)}
          onClick={(event) => {
            const cell = cellOf(event);
            if (cell) choose(cell, isName(event));
          }}
        />
        <div style={{ width: `${layout?.width ?? 0}px`, height: `${Math.max(0, (layout?.height ?? 0) - size.height)}px` }} />
      </div>
    </>
  );
}

function intoView(box: HTMLElement, names: number, cell: number, row: number, column: number): void {
  const top = row * ROW_HEIGHT;
  const left = column * cell;
  const height = box.clientHeight - HEAD_HEIGHT - ROW_HEIGHT;
  const width = box.clientWidth - names - cell;
  box.scrollTop = Math.min(top, Math.max(box.scrollTop, top - height));
  box.scrollLeft = Math.min(left, Math.max(box.scrollLeft, left - width));
}

const SPECIAL = { nan: 'trend.nan', infinite: 'trend.infinite', none: 'trend.missing' } as const;

/** What has no place on a scale, as far as it is there. */
function SpecialLegend({ values }: { values: (number | null)[] }) {
  const t = useText();
  const counts = useMemo(() => {
    const found = { nan: 0, infinite: 0, none: 0 };
    for (const value of values) {
      if (value === null) found.none++;
      else if (Number.isNaN(value)) found.nan++;
      else if (isInfinite(value)) found.infinite++;
    }
    return found;
  }, [values]);
  return (
    <>
      {(Object.keys(SPECIAL) as (keyof typeof SPECIAL)[]).map(
        (kind) =>
          counts[kind] > 0 && (
            <span key={kind} class="trend-legend" data-test={`legend-${kind}`}>
              <span class={`trend-special ${kind}`} />
              {t(SPECIAL[kind], { count: grouped(counts[kind]) })}
            </span>
          ),
      )}
    </>
  );
}

function Legend({ low, high, color, diverging, steps }: { low: string; high: string; color: (at: number) => string; diverging: boolean; steps: string | false }) {
  const t = useText();
  const stops = [0, 0.25, 0.5, 0.75, 1];
  if (steps) {
    return (
      <span class="trend-legend" title={t('trend.sigmaHint')} data-test="legend-sigma">
        {low}
        <svg viewBox="0 0 70 10" preserveAspectRatio="none" aria-hidden="true">
          {[0, 1, 2, 3, 4, 5, 6].map((band) => (
            <rect key={band} x={band * 10} width="10" height="10" fill={color(band / 6)} />
          ))}
        </svg>
        {high} {steps}
      </span>
    );
  }
  return (
    <span class="trend-legend">
      {low}
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <defs>
          <linearGradient id={diverging ? 'heat-difference' : 'heat'}>
            {stops.map((at) => (
              <stop key={at} offset={at} stop-color={color(at)} />
            ))}
          </linearGradient>
        </defs>
        <rect width="100" height="10" fill={`url(#${diverging ? 'heat-difference' : 'heat'})`} />
      </svg>
      {high}
    </span>
  );
}
