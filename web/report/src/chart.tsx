import { useEffect, useRef, useState } from 'preact/hooks';
import { useLook } from './context';
import type { Direction } from './data';
import { formatMeasure } from './format';
import { logScale, type Series, type Spot } from './series';

const HEIGHT = 280;
const LEFT = 64;
const RIGHT = 18;
const TOP = 14;
const BOTTOM = 42;

/** The width that there is, in CSS pixels. */
export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(860);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(260, Math.floor(entry.contentRect.width))));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

/** A mark of its own for each direction: colour is not all that tells them apart. */
function Mark({ direction, x, y, size = 4 }: { direction: Direction; x: number; y: number; size?: number }) {
  const name = `mark ${direction}`;
  if (direction === 'backward') return <rect class={name} x={x - size} y={y - size} width={2 * size} height={2 * size} />;
  if (direction === 'gradient') return <path class={name} d={`M${x} ${y - size - 1}L${x + size + 1} ${y + size}H${x - size - 1}Z`} />;
  if (direction === 'other') return <path class={name} d={`M${x} ${y - size - 1}L${x + size + 1} ${y}L${x} ${y + size + 1}L${x - size - 1} ${y}Z`} />;
  return <circle class={name} cx={x} cy={y} r={size} />;
}

/** 10⁻³; 1 for its zeroth. */
function power(value: number): string {
  const exponent = Math.round(Math.log10(value));
  return exponent === 0 ? '1' : `10${[...String(exponent)].map((c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)])).join('')}`;
}

function ticks(from: number, to: number, room: number): number[] {
  const most = Math.max(2, Math.floor(room / 44));
  const step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000].find((s) => (to - from) / s < most) ?? 10000;
  const out: number[] = [];
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) out.push(v);
  return out;
}

interface Props {
  name: string;
  xLabel: string;
  series: Series[];
  roundoff: number; // 0: no line
  wholeNumbers: boolean;
  onOp: (op: string) => void;
}

export function Chart({ name, xLabel, series, roundoff, wholeNumbers, onOp }: Props) {
  const { t } = useLook();
  const [box, width] = useWidth();
  const [hidden, setHidden] = useState<Direction[]>([]);
  const [near, setNear] = useState<{ spot: Spot; direction: Direction } | null>(null);
  const shown = series.filter(({ direction }) => !hidden.includes(direction));
  const spots = series.flatMap((one) => one.spots);
  const scale = logScale(spots.map((spot) => spot.value), roundoff > 0 ? [roundoff] : []);
  const [first, last] = wholeNumbers ? [Math.min(...spots.map((s) => s.x)), Math.max(...spots.map((s) => s.x))] : [0, 100];
  const span = Math.max(last - first, 1);
  const px = (x: number) => (first === last ? (LEFT + width - RIGHT) / 2 : LEFT + ((x - first) / span) * (width - LEFT - RIGHT));
  const py = (value: number | null) => TOP + (1 - scale.place(value)) * (HEIGHT - TOP - BOTTOM);
  const zero = py(0);
  const anyInfinite = spots.some((spot) => spot.value === null);
  const many = spots.length > 260;

  const find = (event: { clientX: number; clientY: number; currentTarget: Element }) => {
    const frame = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    let best: typeof near = null;
    let distance = 28 * 28;
    for (const { direction, spots: points } of shown) {
      for (const spot of points) {
        const d = (px(spot.x) - x) ** 2 + (py(spot.value) - y) ** 2;
        if (d < distance) [best, distance] = [{ spot, direction }, d];
      }
    }
    setNear(best);
  };

  return (
    <div class="chart" ref={box}>
      <div class="legend" role="group" aria-label={name}>
        {series.map(({ direction }) => (
          <button key={direction} type="button" class="key" aria-pressed={!hidden.includes(direction)} onClick={() => setHidden(hidden.includes(direction) ? hidden.filter((d) => d !== direction) : [...hidden, direction])}>
            <svg width="26" height="12" aria-hidden="true">
              {wholeNumbers && <path class={`line ${direction}`} d="M0 6H26" />}
              <Mark direction={direction} x={13} y={6} />
            </svg>
            {t(`direction.${direction}`)}
          </button>
        ))}
      </div>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={name} onMouseMove={find} onMouseLeave={() => setNear(null)} onClick={() => near && onOp(near.spot.op)}>
        {scale.decades.map((value) => (
          <g key={value}>
            <path class="grid" d={`M${LEFT} ${py(value)}H${width - RIGHT}`} />
            <text class="tick" x={LEFT - 8} y={py(value) + 4} text-anchor="end">{power(value)}</text>
          </g>
        ))}
        <path class="axis" d={`M${LEFT} ${zero}H${width - RIGHT}`} />
        <text class="tick" x={LEFT - 8} y={zero + 4} text-anchor="end">{formatMeasure(0)}</text>
        {anyInfinite && (
          <g>
            <path class="grid strong" d={`M${LEFT} ${py(null)}H${width - RIGHT}`} />
            <text class="tick" x={LEFT - 8} y={py(null) + 4} text-anchor="end">{formatMeasure(null)}</text>
          </g>
        )}
        {ticks(first, last, width - LEFT - RIGHT).map((value) => (
          <text key={value} class="tick" x={px(value)} y={HEIGHT - BOTTOM + 18} text-anchor="middle">{value}</text>
        ))}
        <text class="tick title" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 6} text-anchor="middle">{xLabel}</text>
        {roundoff > 0 && (
          <g>
            <path class="roundoff" d={`M${LEFT} ${py(roundoff)}H${width - RIGHT}`} />
            <text class="tick halo" x={width - RIGHT - 4} y={py(roundoff) - 5} text-anchor="end">{t('curves.roundoff')}</text>
          </g>
        )}
        {shown.map(({ direction, spots: points }) => (
          <g key={direction}>
            {wholeNumbers && <path class={`line ${direction}`} d={points.map((spot, i) => `${i ? 'L' : 'M'}${px(spot.x).toFixed(1)} ${py(spot.value).toFixed(1)}`).join('')} />}
            {(!many || !wholeNumbers ? points : points.filter((spot) => spot === near?.spot)).map((spot) => (
              <Mark key={spot.x} direction={direction} x={px(spot.x)} y={py(spot.value)} size={near?.spot === spot ? 6 : many ? 2.5 : 4} />
            ))}
          </g>
        ))}
      </svg>
      {near && (
        <div class="tip" style={{ left: `${Math.min(Math.max(px(near.spot.x), 150), width - 150)}px`, top: `${py(near.spot.value) + 34}px` }}>
          <b>{t(`direction.${near.direction}`)} · {wholeNumbers ? `${t('curves.layer')} ${near.spot.x}` : `${near.spot.x.toFixed(0)} %`}: {formatMeasure(near.spot.value)}</b>
          <span class="code">{near.spot.op}</span>
        </div>
      )}
      <details class="values">
        <summary>{t('curves.values')}</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={t('curves.values')}>
          <table>
            <thead>
              <tr><th>{xLabel}</th><th>{name}</th><th>{t('curves.worstOp')}</th></tr>
            </thead>
            <tbody>
              {shown.flatMap(({ direction, spots: points }) =>
                points.map((spot) => (
                  <tr key={`${direction}${spot.x}`}>
                    <td>{t(`direction.${direction}`)} {wholeNumbers ? spot.x : spot.x.toFixed(1)}</td>
                    <td class="number">{formatMeasure(spot.value)}</td>
                    <td class="code">{spot.op}</td>
                  </tr>
                )),
              )}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}
