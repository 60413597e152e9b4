import { useState } from 'preact/hooks';
import { mix } from '../../src/theme/palette';
import { useWidth } from './chart';
import { useLook } from './context';
import type { Direction, Measure, PairPage } from './data';
import { formatMeasure } from './format';
import { heatRows, logScale } from './series';

const ROW = 20;
const MOST = 32;

/** Parts against layers: where in a layer the error comes up. */
export function Heat({ page, stack, direction, measure, onOp }: { page: PairPage; stack: number; direction: Direction; measure: number; onOp: (op: string) => void }) {
  const { t, palette } = useLook();
  const [box, width] = useWidth();
  const [near, setNear] = useState<{ text: string; op: string; value: Measure } | null>(null);
  const { rows, layers, total } = heatRows(page, stack, direction, measure, MOST);
  const scale = logScale(rows.flatMap((row) => [...row.values.values()].map(({ value }) => value)), measure === 0 && page.roundoff > 0 ? [page.roundoff] : []);
  const [calm, hot] = palette.name === 'dark' ? [palette.raised, '#FF7A59'] : ['#EDF1F6', '#B3260A'];
  const color = (value: Measure) => (value === null ? palette.ink : mix(hot, calm, value <= 0 ? 0 : 0.08 + 0.92 * scale.place(value)));
  const label = Math.min(220, Math.floor(width * 0.36));
  const size = Math.min(46, (width - label - 8) / Math.max(layers.length, 1));
  const name = (part: number) => page.curves.parts[part] || t('heat.self');
  const short = (text: string) => (text.length * 6.7 > label - 12 ? `…${text.slice(text.length - Math.floor((label - 20) / 6.7))}` : text);
  const every = Math.ceil(26 / size);
  const worst = rows.flatMap((row) => [...row.values].map(([layer, { value, op }]) => ({ layer, value, op, part: row.part })));

  return (
    <div class="chart heat" ref={box}>
      <svg class="plot" width={width} height={rows.length * ROW + 40} role="img" aria-label={t('heat.label')} onMouseLeave={() => setNear(null)}>
        {rows.map((row, i) => (
          <text key={row.part} class="tick" x={label - 8} y={i * ROW + 15} text-anchor="end">{short(name(row.part))}</text>
        ))}
        {worst.map(({ layer, value, op, part }) => (
          <rect
            key={`${part} ${layer}`}
            class={value === null ? 'spot infinite' : 'spot'}
            x={label + layers.indexOf(layer) * size}
            y={rows.findIndex((row) => row.part === part) * ROW + 1}
            width={Math.max(size - 1.5, 1)}
            height={ROW - 2}
            rx={2}
            fill={color(value)}
            onMouseEnter={() => setNear({ text: `${name(part)} · ${t('curves.layer')} ${layer}`, op, value })}
            onClick={() => onOp(op)}
          />
        ))}
        {layers.map((layer, i) => i % every === 0 && <text key={layer} class="tick" x={label + i * size + size / 2} y={rows.length * ROW + 16} text-anchor="middle">{layer}</text>)}
        <text class="tick title" x={label + (layers.length * size) / 2} y={rows.length * ROW + 34} text-anchor="middle">{t('curves.layer')}</text>
      </svg>
      <div class="heat-foot">
        <span class="ramp" aria-hidden="true">
          {t('heat.small')} {[0, 0.25, 0.5, 0.75, 1].map((share) => <i key={share} style={{ background: mix(hot, calm, share) }} />)} {t('heat.large')}
          {worst.some(({ value }) => value === null) && <><i style={{ background: palette.ink }} /> {formatMeasure(null)}</>}
        </span>
        {total > rows.length && <span class="muted">{t('heat.cut', { shown: rows.length, total })}</span>}
        <span class="near">{near ? <><b>{near.text}: {formatMeasure(near.value)}</b> <span class="code">{near.op}</span></> : null}</span>
      </div>
    </div>
  );
}
