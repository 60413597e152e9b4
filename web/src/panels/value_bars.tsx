import type { VerdictOrigin } from '../api/verdict';
import { valueBars } from '../theme/value_bars';
import { useText } from './context';

/** Both values of the cause as bars: how large the difference is shows before it is read. */
export function OriginBars({ origin }: { origin: VerdictOrigin | undefined }) {
  const t = useText();
  const bars = valueBars(origin);
  if (!bars) return null;
  return (
    <div class="value-bars" data-test="value-bars" role="img" aria-label={`${bars.what}: ${t('side.NPU')} ${bars.target.text}, ${t('side.Bench')} ${bars.golden.text}`}>
      {(['target', 'golden'] as const).map((side) => (
        <div key={side} class={side}>
          <span>{t(side === 'target' ? 'side.NPU' : 'side.Bench')}</span>
          <i style={{ width: `${(bars[side].share * 100).toFixed(1)}%` }} />
          <b>{bars[side].text}</b>
        </div>
      ))}
    </div>
  );
}
