import type { TensorFit, TensorPreview, WorstElement } from '../api/tensor';
import { fitText, scatterRange } from '../model/scatter';
import { valueText } from '../model/tensor';
import { useText } from './context';

const SIZE = 200;
const EDGE = 8;

/** Target over golden: on the dashed diagonal both are equal; what is scaled has another slope, what is in another order is a cloud. */
export function Scatter({ difference, worst }: { difference: NonNullable<TensorPreview['difference']>; worst: WorstElement[] }) {
  const t = useText();
  const { points_golden: golden = [], points_target: target = [], fit } = difference;
  const odd = worst.flatMap(({ value, partner }) => (typeof value === 'number' && typeof partner === 'number' && Math.abs(value) < 1e30 && Math.abs(partner) < 1e30 ? [[partner, value] as const] : []));
  const range = scatterRange([...golden, ...target, ...odd.flat()]);
  if (!range) return null;
  const [low, high] = range;
  const at = (value: number) => EDGE + ((value - low) / (high - low)) * (SIZE - 2 * EDGE);
  const dot = (x: number, y: number) => `M${at(x).toFixed(1)} ${(SIZE - at(y)).toFixed(1)}h0`;
  const said = fit ? t('scatter.fit', fitText(fit)) : t('scatter.none');
  return (
    <figure class="bars scatter" data-test="scatter">
      <figcaption>
        {t('scatter.title')} <span class="muted" data-test="scatter-fit">{said}</span>
      </figcaption>
      <svg viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label={`${t('scatter.title')}: ${said}`}>
        <rect class="scatter-room" x="0.5" y="0.5" width={SIZE - 1} height={SIZE - 1} />
        <path class="scatter-equal" d={`M${at(low)} ${SIZE - at(low)}L${at(high)} ${SIZE - at(high)}`} />
        <path class="scatter-points" d={golden.map((x, i) => dot(x, target[i]!)).join('')} />
        <path class="scatter-odd" d={odd.map(([x, y]) => dot(x, y)).join('')} />
        {fit && <FitLine fit={fit} low={low} high={high} at={at} />}
      </svg>
      <div class="bars-axis muted">
        <span>{valueText(low)}</span>
        <span>{valueText(high)}</span>
      </div>
      <div class="muted">{t('scatter.axes')}</div>
    </figure>
  );
}

function FitLine({ fit, low, high, at }: { fit: TensorFit; low: number; high: number; at: (value: number) => number }) {
  const [slope, offset] = [Number(fit.slope), Number(fit.offset)];
  return (
    <>
      <clipPath id="scatter-clip">
        <rect width={SIZE} height={SIZE} />
      </clipPath>
      <path class="scatter-line" clip-path="url(#scatter-clip)" d={`M${at(low)} ${SIZE - at(offset + slope * low)}L${at(high)} ${SIZE - at(offset + slope * high)}`} />
    </>
  );
}
