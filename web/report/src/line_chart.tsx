import { useState } from 'preact/hooks';
import { useWidth } from './chart';
import { useLook } from './context';
import type { DocumentChart, DocumentLine } from './data';
import { formatMeasure } from './format';
import { niceTicks, nearestStep } from './line_scale';

const HEIGHT = 250;
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 16, 12, 34];

/** Curves over steps: A, B, further runs behind them, a band around zero, and where they part. */
export function LineChart({ chart }: { chart: DocumentChart }) {
  const { language, t } = useLook();
  const [box, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const all = [...chart.lines, ...(chart.band ? [chart.band] : [])];
  const steps = all.flatMap((line) => line.steps);
  const values = [...chart.lines.flatMap((line) => line.values), ...(chart.band?.values.flatMap((v) => (v === null ? [] : [v, -v])) ?? [])].filter((v) => v !== null);
  if (steps.length === 0 || values.length === 0) return null;
  const [first, last] = steps.reduce(([low, high], s) => [Math.min(low, s), Math.max(high, s)], [Infinity, -Infinity]);
  let [low, high] = values.reduce(([l, h], v) => [Math.min(l, v), Math.max(h, v)], [Infinity, -Infinity]);
  if (low === high) [low, high] = [low - 1, high + 1];
  const x = (step: number) => LEFT + ((step - first) / Math.max(last - first, 1)) * (width - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const name = (line: DocumentLine) => (line.kind === 'more' ? `A: ${line.name}` : line.name);
  const point = (event: { clientX: number; currentTarget: Element }) => {
    const frame = event.currentTarget.getBoundingClientRect();
    setAt(nearestStep(steps, first + ((event.clientX - frame.left - LEFT) / (width - LEFT - RIGHT)) * (last - first)));
  };
  const label = chart.label[language];
  return (
    <div class="chart" ref={box}>
      <p class="chart-read" aria-live="polite">
        {chart.lines.map((line, i) => (
          <span key={i} class={`line-key ${line.kind}`}>
            <i />
            {name(line)} {at !== null && <b>{valueAt(line, at)}</b>}
          </span>
        ))}
        <span class="muted">{at === null ? t('document.point') : t('document.step', { step: at })}</span>
      </p>
      <svg class="plot lines" width={width} height={HEIGHT} role="img" aria-label={label} onMouseMove={point} onMouseLeave={() => setAt(null)}>
        {niceTicks(low, high, 5).map((v) => (
          <g key={v}>
            <path class="grid" d={`M${LEFT} ${y(v)}H${width - RIGHT}`} />
            <text class="tick" x={LEFT - 8} y={y(v) + 4} text-anchor="end">{formatMeasure(v)}</text>
          </g>
        ))}
        {niceTicks(first, last, Math.max(2, Math.floor(width / 130))).filter(Number.isInteger).map((step) => (
          <text key={step} class="tick" x={x(step)} y={HEIGHT - 12} text-anchor="middle">{step}</text>
        ))}
        <path class="axis" d={`M${LEFT} ${HEIGHT - BOTTOM}H${width - RIGHT}`} />
        {chart.band && <path class="band" d={bandPath(chart.band, x, y)} />}
        {[...chart.lines].sort((a, b) => a.kind.localeCompare(b.kind) * (a.kind === 'more' || b.kind === 'more' ? -1 : 1)).map((line, i) => <path key={i} class={`curve ${line.kind}`} d={linePath(line, x, y)} />)}
        {chart.mark !== undefined && (
          <g>
            <path class="parted" d={`M${x(chart.mark)} ${TOP}V${HEIGHT - BOTTOM}`} />
            <text class="tick halo" x={x(chart.mark) + (x(chart.mark) > width * 0.7 ? -6 : 6)} y={TOP + 12} text-anchor={x(chart.mark) > width * 0.7 ? 'end' : 'start'}>
              {chart.mark_words?.[language]} · {t('document.step', { step: chart.mark })}
            </text>
          </g>
        )}
        {at !== null && <path class="guide" d={`M${x(at)} ${TOP}V${HEIGHT - BOTTOM}`} />}
      </svg>
    </div>
  );
}

function valueAt({ steps, values }: DocumentLine, step: number): string {
  const index = steps.indexOf(step);
  if (index < 0) return '';
  return formatMeasure(values[index] ?? null);
}

/** What is not finite is a gap. */
function linePath({ steps, values }: DocumentLine, x: (step: number) => number, y: (value: number) => number): string {
  let [path, pen] = ['', 'M'];
  values.forEach((value, i) => {
    if (value === null) return void (pen = 'M');
    path += `${pen}${x(steps[i]!).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = 'L';
  });
  return path;
}

function bandPath({ steps, values }: DocumentLine, x: (step: number) => number, y: (value: number) => number): string {
  const there = steps.flatMap((step, i) => (values[i] === null ? [] : [[x(step), values[i]!] as const]));
  if (there.length === 0) return '';
  const over = there.map(([at, v]) => `${at.toFixed(1)} ${y(v).toFixed(1)}`);
  const under = there.map(([at, v]) => `${at.toFixed(1)} ${y(-v).toFixed(1)}`).reverse();
  return `M${[...over, ...under].join('L')}Z`;
}
