import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isFiniteValue, isInfinite, makeScale, valueText, type Scale, type ScaleMode, type Thresholds } from '../model/trend_scale';
import type { LineAxis, TrendLine } from '../model/trends';
import type { TrendPoint } from '../api/trends';
import { useText } from './context';
import { Icon } from './icons';
import { Segments } from './segments';

const HEIGHT = 190;
const MARGIN = { left: 78, right: 14, top: 10, bottom: 34 };

interface Props {
  lines: TrendLine[];
  mode: ScaleMode;
  limits: Thresholds;
  axis: LineAxis;
  names: [string, string | null];
  onAxis: (axis: LineAxis) => void;
  onClear: () => void;
}

/** Lines through chosen cells; those of the second run are dashed. */
export function TrendLines({ lines, mode, limits, axis, names, onAxis, onClear }: Props) {
  const t = useText();
  const [at, setAt] = useState<number | null>(null);
  return (
    <section class="trend-lines" aria-label={t('trend.lines')}>
      <div class="trend-bar">
        <Segments test="trend" label={t('trend.axis')} value={axis} values={['step', 'rank']} text={(v) => t(v === 'step' ? 'trend.overSteps' : 'trend.overRanks')} onChange={onAxis} />
        {names[1] !== null && lines.length > 0 && (
          <span class="muted">
            {t('trend.solid', { file: names[0] })} · {t('trend.dashed', { file: names[1] })}
          </span>
        )}
        <span class="spacer" />
        {lines.length > 0 && (
          <button class="text-button" onClick={onClear}>
            <Icon name="close" />
            {t('trend.clear')}
          </button>
        )}
      </div>
      {lines.length === 0 ? (
        <p class="muted trend-none">{t('trend.noLines')}</p>
      ) : (
        <>
          <Chart lines={lines} mode={mode === 'sigma' ? 'linear' : mode} limits={limits} at={at} onAt={setAt} label={t('trend.lines')} axis={t(axis === 'step' ? 'select.step' : 'select.rank')} />
          <ul class="trend-names">
            {lines.map((line, i) => (
              <li key={line.label}>
                <span class={`trend-swatch line-${i % 8}`} />
                <code>{line.label}</code>
                {at !== null && <b>{[line.points, line.other].map((points) => points && valueText(valueAt(points, at))).filter((text) => text !== null).join(' / ')}</b>}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

const valueAt = (points: TrendPoint[], at: number) => points.find(([x]) => x === at)?.[1] ?? null;

interface ChartProps {
  lines: TrendLine[];
  mode: Exclude<ScaleMode, 'sigma'>;
  limits: Thresholds;
  at: number | null;
  onAt: (at: number | null) => void;
  label: string;
  axis: string; // what the lines run along
}

function Chart({ lines, mode, limits, at, onAt, label, axis }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setWidth(Math.max(200, box.current!.clientWidth)));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const all = useMemo(() => lines.flatMap((line) => [...line.points, ...(line.other ?? [])]), [lines]);
  const places = useMemo(() => [...new Set(all.map(([x]) => x))].sort((a, b) => a - b), [all]);
  const marks = [limits.low, limits.high].filter((v): v is number => v !== null);
  const scale = useMemo(() => makeScale([...all.map(([, v]) => v), ...marks], mode), [all, mode, limits]);
  const [low, high] = [places[0] ?? 0, places.at(-1) ?? 0];
  const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const x = (value: number) => MARGIN.left + (high > low ? (value - low) / (high - low) : 0.5) * inner.width;
  const y = (value: number) => MARGIN.top + (1 - (scale?.place(value) ?? 0.5)) * inner.height;
  const nearest = (event: MouseEvent) => {
    const px = event.clientX - box.current!.getBoundingClientRect().left;
    onAt(places.reduce<number | null>((best, p) => (best === null || Math.abs(x(p) - px) < Math.abs(x(best) - px) ? p : best), null));
  };
  return (
    <div ref={box} class="trend-chart" onMouseMove={nearest} onMouseLeave={() => onAt(null)}>
      <svg width={width} height={HEIGHT} role="img" aria-label={label}>
        <Axes scale={scale} places={places} x={x} y={y} width={width} />
        <text class="trend-axis" x={MARGIN.left + inner.width / 2} y={HEIGHT - 4} text-anchor="middle">
          {axis}
        </text>
        <text class="trend-axis" transform={`translate(12 ${MARGIN.top + inner.height / 2}) rotate(-90)`} text-anchor="middle">
          {[...new Set(lines.map(({ query }) => query.stat))].join(', ')}
        </text>
        {marks.map((mark) => (
          <line key={mark} class="trend-mark" x1={MARGIN.left} x2={width - MARGIN.right} y1={y(mark)} y2={y(mark)} />
        ))}
        {at !== null && <line class="trend-guide" x1={x(at)} x2={x(at)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />}
        {lines.map((line, i) => (
          <g key={line.label} class={`line-${i % 8}`}>
            <Path points={line.points} x={x} y={y} />
            {line.other && <Path points={line.other} x={x} y={y} dashed />}
          </g>
        ))}
      </svg>
    </div>
  );
}

function Axes({ scale, places, x, y, width }: { scale: Scale | null; places: number[]; x: (v: number) => number; y: (v: number) => number; width: number }) {
  const every = Math.max(1, Math.ceil((places.length * 44) / width));
  return (
    <>
      {(scale?.ticks() ?? []).map((tick) => (
        <g key={tick}>
          <line class="trend-grid" x1={MARGIN.left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
          <text x={MARGIN.left - 6} y={y(tick) + 4} text-anchor="end">
            {valueText(tick)}
          </text>
        </g>
      ))}
      {places.map(
        (at, i) =>
          i % every === 0 && (
            <text key={at} x={x(at)} y={HEIGHT - MARGIN.bottom + 14} text-anchor="middle">
              {at}
            </text>
          ),
      )}
    </>
  );
}

/** A gap where there is no value; an infinity is a cross at the edge, NaN one on the axis. */
function Path({ points, x, y, dashed }: { points: TrendPoint[]; x: (v: number) => number; y: (v: number) => number; dashed?: boolean }) {
  let path = '';
  let pen = 'M';
  for (const [at, value] of points) {
    if (isFiniteValue(value)) {
      path += `${pen}${x(at).toFixed(1)},${y(value).toFixed(1)}`;
      pen = 'L';
    } else pen = 'M';
  }
  const few = points.length <= 60;
  return (
    <>
      <path d={path} class={dashed ? 'dashed' : undefined} />
      {points.map(([at, value]) => {
        if (value === null) return null;
        if (Number.isNaN(value)) return <path key={at} class="nan" d={`M${x(at) - 4},${HEIGHT - MARGIN.bottom - 4}l8,8m0,-8l-8,8`} />;
        if (isInfinite(value)) return <path key={at} class="infinite" d={`M${x(at) - 4},${y(value) - 4}l8,8m0,-8l-8,8`} />;
        return few && <circle key={at} cx={x(at)} cy={y(value)} r={2.5} />;
      })}
    </>
  );
}
