import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { NO_VALUE, type RunBands, type RunEvent } from '../../api/runs';
import { axisSteps, type StepWindow } from '../../model/run_view';
import { makeScale, valueText, type ScaleMode } from '../../model/trend_scale';
import { useText } from '../context';
import { Icon } from '../icons';

const LEAST_HEIGHT = 150;
const TOP = 8;
const BOTTOM = 32;
const FLAT_BOTTOM = 8;
const FLAT_HEIGHT = 96;

export interface RunLine {
  label: string;
  bands: RunBands | null; // on its way
  other: RunBands | null; // of the second run
  row: number; // in the bands
}

/** Steps that the bands of lines hold: bins of `width` steps from `from`. */
export interface LineBins {
  from: number;
  width: number;
  bins: number;
}

interface Props {
  lines: RunLine[];
  bins: LineBins | null;
  window: StepWindow;
  mode: ScaleMode;
  events: RunEvent[];
  names: [string, string | null];
  stat: string;
  step: number | null; // that the map points at
  left: number; // where the map begins
  onRemove: (label: string) => void;
  onClear: () => void;
}

/** Lines of rows: the mean of each stretch of steps, and how far its values reach. Those of the second run are dashed. */
export function RunLines(props: Props) {
  const { lines, names, onRemove, onClear } = props;
  const t = useText();
  return (
    <section class={`trend-lines ${lines.length > 0 ? 'some' : ''}`} aria-label={t('trend.lines')}>
      {lines.length === 0 ? (
        <p class="muted trend-none">{t('run.noLines')}</p>
      ) : (
        <>
          <LineChart {...props} />
          <div class="run-legend">
            <ul class="trend-names">
              {lines.map((line, i) => (
                <li key={line.label}>
                  <span class={`trend-swatch line-${i % 8}`} />
                  <code>{line.label}</code>
                  <b>{readoutOf(props, line)}</b>
                  <button class="icon-button" title={t('run.remove', { name: line.label })} aria-label={t('run.remove', { name: line.label })} onClick={() => onRemove(line.label)}>
                    <Icon name="close" />
                  </button>
                </li>
              ))}
            </ul>
            <span class="muted run-dash">
              {names[1] !== null && `${t('trend.solid', { file: names[0] })} · ${t('trend.dashed', { file: names[1] })}`}
              <button class="text-button" onClick={onClear}>
                {t('trend.clear')}
              </button>
            </span>
          </div>
        </>
      )}
    </section>
  );
}

const shown = (value: number | undefined) => (value === undefined || value === NO_VALUE ? null : value);

function readoutOf({ bins, step }: Props, line: RunLine): string {
  if (!bins || step === null) return '';
  const bin = Math.floor((step - bins.from) / bins.width);
  const text = (bands: RunBands | null) => {
    if (!bands || bin < 0 || bin >= bands.bins) return null;
    const at = line.row * bands.bins + bin;
    const [low, mean, high] = [bands.lowest[at], bands.mean[at], bands.highest[at]].map(shown);
    if (mean === null || mean === undefined) return null;
    return low === high ? valueText(mean) : `${valueText(mean)} (${valueText(low ?? null)} … ${valueText(high ?? null)})`;
  };
  return [text(line.bands), text(line.other)].filter((part) => part !== null).join(' / ');
}

type ChartProps = Pick<Props, 'lines' | 'bins' | 'window' | 'mode' | 'events' | 'stat' | 'step' | 'left'> & { flat?: boolean };

/** `flat`: without the numbers of steps, which what stands below it has. */
export function LineChart({ lines, bins, window, mode, events, stat, step, left, flat = false }: ChartProps) {
  const t = useText();
  const clip = flat ? 'loss-clip' : 'run-clip';
  const box = useRef<HTMLDivElement>(null);
  const [{ width, height }, setSize] = useState({ width: 800, height: flat ? FLAT_HEIGHT : LEAST_HEIGHT });
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setSize({ width: Math.max(200, box.current!.clientWidth), height: Math.max(flat ? FLAT_HEIGHT : LEAST_HEIGHT, box.current!.clientHeight) }));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const scale = useMemo(() => {
    const all: (number | null)[] = [];
    for (const line of lines) {
      for (const bands of [line.bands, line.other]) {
        if (!bands) continue;
        for (const part of [bands.lowest, bands.highest]) for (let i = 0; i < bands.bins; i++) all.push(shown(part[line.row * bands.bins + i]));
      }
    }
    return makeScale(all, mode === 'log' ? 'log' : 'linear');
  }, [lines, mode]);
  const bottom = flat ? FLAT_BOTTOM : BOTTOM;
  const inner = { width: width - left, height: height - TOP - bottom };
  const x = (at: number) => left + ((at - window.from) / (window.to - window.from)) * inner.width;
  const y = (value: number) => TOP + (1 - (scale?.place(value) ?? 0.5)) * inner.height;
  return (
    <div ref={box} class="trend-chart">
      <svg width={width} height={height} role="img" aria-label={stat}>
        <clipPath id={clip}>
          <rect x={left} y={0} width={inner.width} height={height} />
        </clipPath>
        {(scale?.ticks() ?? []).map((tick) => (
          <g key={tick}>
            <line class="trend-grid" x1={left} x2={width} y1={y(tick)} y2={y(tick)} />
            <text x={left - 6} y={y(tick) + 4} text-anchor="end">
              {valueText(tick)}
            </text>
          </g>
        ))}
        {!flat && axisSteps(window, inner.width / 90).map((at) => (
          <text key={at} x={x(at)} y={height - bottom + 14} text-anchor="middle">
            {at}
          </text>
        ))}
        {!flat && (
          <text class="trend-axis" x={left + inner.width / 2} y={height - 4} text-anchor="middle">
            {t('select.step')}
          </text>
        )}
        <text class="trend-axis" transform={`translate(14 ${TOP + inner.height / 2}) rotate(-90)`} text-anchor="middle">
          {stat}
        </text>
        <g clip-path={`url(#${clip})`}>
          {events.slice(0, 200).map((event, i) => (
            <line key={i} class="trend-mark" x1={x(event.step)} x2={x(event.step)} y1={TOP} y2={height - bottom} />
          ))}
          {step !== null && <line class="trend-guide" x1={x(step)} x2={x(step)} y1={TOP} y2={height - bottom} />}
          {bins &&
            lines.map((line, i) => (
              <g key={line.label} class={`line-${i % 8}`}>
                {line.bands && <Band bands={line.bands} row={line.row} bins={bins} x={x} y={y} bottom={height - bottom} />}
                {line.other && <Band bands={line.other} row={line.row} bins={bins} x={x} y={y} bottom={height - bottom} dashed />}
              </g>
            ))}
        </g>
      </svg>
    </div>
  );
}

/** NaN and infinities are crosses on the axis; where there is no value, there is a gap. */
function Band({ bands, row, bins, x, y, bottom, dashed }: { bands: RunBands; row: number; bins: LineBins; x: (step: number) => number; y: (value: number) => number; bottom: number; dashed?: boolean }) {
  let line = '';
  let pen = 'M';
  const area: string[] = [];
  const under: string[] = [];
  const odd: { at: number; nan: boolean }[] = [];
  const close = () => {
    const back = under.splice(0).reverse().join('');
    if (back) area.push(`${back}Z`);
    pen = 'M';
  };
  for (let i = 0; i < bands.bins; i++) {
    const at = row * bands.bins + i;
    const mean = bands.mean[at]!;
    if (mean === NO_VALUE) continue; // records may be farther apart than bins are wide
    const px = x(bins.from + (i + 0.5) * bins.width).toFixed(1);
    if (!Number.isFinite(mean)) {
      odd.push({ at: Number(px), nan: Number.isNaN(mean) });
      close();
      continue;
    }
    line += `${pen}${px},${y(mean).toFixed(1)}`;
    area.push(`${pen}${px},${y(bands.highest[at]!).toFixed(1)}`);
    under.push(`L${px},${y(bands.lowest[at]!).toFixed(1)}`);
    pen = 'L';
  }
  close();
  return (
    <>
      {!dashed && <path d={area.join('')} class="run-band" />}
      <path d={line} class={dashed ? 'dashed' : undefined} />
      {odd.slice(0, 400).map(({ at, nan }) => (
        <path key={at} class={nan ? 'nan' : 'infinite'} d={`M${at - 4},${bottom - 9}l8,8m0,-8l-8,8`} />
      ))}
    </>
  );
}
