import { useRef, useState } from 'preact/hooks';
import { ACTIVATION_KINDS, type ActivationItem } from '../api/activations';
import type { LayerCell } from '../api/types';
import { isQuiet, MAGNITUDES, magnitudeLayers, type Magnitude } from '../model/activations';
import { fileSize, grouped } from '../model/format';
import { axisPlace, barHeight, errorAxis, layerLabel, measureText, shownLabels, type ErrorAxis } from '../model/layers';
import { useApp, useSession, useText } from './context';
import { StripSide, useWidth, walkColumns } from './layer_strip';
import { Segments } from './segments';
import { Failure, Loading } from './states';
import { StatusDot } from './status_dot';

const HUGE = 65504; // what float16 holds
const DOTS = { not_finite: 'critical', huge: 'warning', dead: 'unmatched', constant: 'none', mask: 'none' } as const;

/** What is odd among the outputs of one run, and its largest tensors. */
export function OddValues() {
  const t = useText();
  const activations = useApp((state) => state.activations);
  const exported = useApp((state) => state.config?.exported !== undefined);
  if (activations.at === 'failed') return exported ? <p class="muted">{t('single.left')}</p> : <Failure failed={activations} />;
  if (activations.at !== 'ready') return <Loading />;
  const found = activations.value;
  return (
    <div class="overview-part found" data-test="odd-values">
      <h2>{t('single.title')}</h2>
      <p class="muted">
        {t('single.outputs', { count: grouped(found.items), ops: grouped(found.read) })}
        {found.read < found.ops && ` ${t('single.part', { ops: grouped(found.ops) })}`}
      </p>
      {isQuiet(found) && <p>{t('single.quiet')}</p>}
      {ACTIVATION_KINDS.filter((kind) => found[kind].count > 0).map((kind) => (
        <details key={kind} open={kind === 'not_finite'} data-test={`odd-${kind}`}>
          <summary>
            <StatusDot status={DOTS[kind]} /> <strong>{t(`single.${kind}`)}</strong> <span class="muted">{grouped(found[kind].count)}</span>
          </summary>
          <Items list={found[kind].first} text={({ value }) => value} />
          {found[kind].count > found[kind].first.length && <p class="muted">{t('flow.more', { count: grouped(found[kind].count - found[kind].first.length) })}</p>}
        </details>
      ))}
      {found.largest.length > 0 && (
        <details open={isQuiet(found)}>
          <summary>
            <strong>{t('single.largest')}</strong>
          </summary>
          <Items list={found.largest} text={({ bytes }) => fileSize(bytes)} />
        </details>
      )}
    </div>
  );
}

function Items({ list, text }: { list: ActivationItem[]; text: (item: ActivationItem) => string }) {
  const session = useSession();
  return (
    <ol>
      {list.map((item) => (
        <li key={item.item}>
          <button class="finding" title={item.item} onClick={() => void session.goTo('NPU', item.node)}>
            <span>
              <span class="finding-name">{item.item}</span>{' '}
              <span class="muted finding-figures">
                {text(item)} · {item.dtype} {item.shape}
              </span>
            </span>
          </button>
        </li>
      ))}
    </ol>
  );
}

/** A column for each layer: the largest of its outputs, forward above, backward below. */
export function Magnitudes() {
  const t = useText();
  const activations = useApp((state) => state.activations);
  const [which, setWhich] = useState<Magnitude>('max');
  const strip = useRef<HTMLDivElement>(null);
  const layers = magnitudeLayers(activations.at === 'ready' ? activations.value.layers : [], which);
  const shown = layers.length > 1;
  const width = useWidth(strip, shown);
  if (!shown) return null;
  const axis = errorAxis(layers);
  const labels = layers.map(({ label }) => layerLabel(label));
  const named = shownLabels(labels, width / labels.length);
  return (
    <div class="overview-part strip" data-test="magnitudes">
      <div class="strip-head">
        <h2>{t('single.layers')}</h2>
        <Segments test="magnitude" label={t('single.layers')} value={which} values={[...MAGNITUDES]} text={(v) => t(`single.${v}`)} onChange={setWhich} />
      </div>
      <div class="strip-frame">
        <StripSide axis={axis} text={(power) => (power > -4 && power < 6 ? String(10 ** power) : `1e${power}`)} />
        <div class={`strip-plot ${labels.length > 60 ? 'dense' : ''}`} ref={strip} role="group" aria-label={t('single.layersHint')} onKeyDown={walkColumns}>
          {axis?.ticks.map((power) => (
            <i key={power} class="strip-line" style={{ '--place': axisPlace(power, axis) }} aria-hidden="true" />
          ))}
          {layers.map(({ label, forward, backward }, index) => (
            <div key={label} class="layer">
              <span class="layer-mark" />
              <Bar label={label} cell={forward} direction="forward" index={index} axis={axis} which={which} />
              <span class={`layer-name ${/^\d+$/.test(labels[index]!) ? 'number' : ''}`} title={label}>
                {named[index] ? labels[index] : ''}
              </span>
              <Bar label={label} cell={backward} direction="backward" index={index} axis={axis} which={which} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

interface BarProps {
  label: string;
  cell: LayerCell | null;
  direction: 'forward' | 'backward';
  index: number;
  axis: ErrorAxis | null;
  which: Magnitude;
}

function Bar({ label, cell, direction, index, axis, which }: BarProps) {
  const session = useSession();
  const t = useText();
  if (!cell) return <span class={`bar ${direction}`} />;
  const value = cell.error === 'inf' ? t('single.not_finite') : `${t(`single.${which}`)} ${measureText(cell.error) || '–'}`;
  const status = cell.error === 'inf' ? 'critical' : which === 'max' && cell.error !== null && cell.error > HUGE ? 'warning' : 'plain';
  const text = [`${label} ${t(`overview.${direction}`)}: ${value}`, cell.node].filter(Boolean).join(t('measure.and'));
  return (
    <button
      class={`bar ${direction}`}
      data-at={`${direction === 'forward' ? 0 : 1} ${index}`}
      tabIndex={index === 0 && direction === 'forward' ? 0 : -1}
      aria-label={text}
      title={text}
      disabled={!cell.node}
      onClick={() => void session.goTo('NPU', cell.node)}
    >
      <span class={`bar-fill ${status}`} style={{ height: `${Math.round(barHeight(cell, 'precision', axis) * 100)}%` }} />
    </button>
  );
}
