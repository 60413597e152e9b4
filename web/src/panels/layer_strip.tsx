import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Layer, LayerCell, Measure } from '../api/types';
import type { Translate } from '../i18n';
import { measurePercent, percentText } from '../model/findings';
import { axisPlace, barHeight, errorAxis, layerLabel, layerOf, layerStatus, measureText, shownLabels, worthShowing, type ErrorAxis } from '../model/layers';
import { originOf } from '../model/problems';
import { useApp, useSession, useText } from './context';

type Direction = 'forward' | 'backward';

/** A column for each layer in the order of execution: the error of its forward pass above, of its backward pass below. */
export function LayerStrip() {
  const t = useText();
  const layers = useApp((state) => state.layers);
  const mode = useApp((state) => state.mode);
  const strip = useRef<HTMLDivElement>(null);
  const shown = layers.at === 'ready' && worthShowing(layers.value, mode);
  const width = useWidth(strip, shown);
  const origin = useOriginLayer(shown ? layers.value : []);
  if (!shown) return null;
  const axis = mode === 'overflow' ? null : errorAxis(layers.value);
  const labels = layers.value.map(({ label }) => layerLabel(label));
  const named = shownLabels(labels, width / labels.length);
  return (
    <div class="overview-part strip">
      <h2>{t('overview.layers')}</h2>
      <div class="strip-frame">
        <StripSide axis={axis} text={(power) => percentText(10 ** (power + 2))} />
        <div class={`strip-plot ${labels.length > 60 ? 'dense' : ''}`} ref={strip} role="group" aria-label={t('overview.layersHint')} onKeyDown={walkColumns}>
          {axis?.ticks.map((power) => (
            <i key={power} class="strip-line" style={{ '--place': axisPlace(power, axis) }} aria-hidden="true" />
          ))}
          {layers.value.map((layer, index) => (
            <div key={layer.label} class="layer">
              <span class="layer-mark">
                {origin?.index === index && (
                  <span data-test="layer-origin" role="img" aria-label={t('overview.began')} title={t('overview.began')}>
                    ▼
                  </span>
                )}
              </span>
              <Bar layer={layer} cell={layer.forward} direction="forward" index={index} axis={axis} />
              <span class={`layer-name ${/^\d+$/.test(labels[index]!) ? 'number' : ''}`} title={layer.label}>
                {named[index] ? labels[index] : ''}
              </span>
              <Bar layer={layer} cell={layer.backward} direction="backward" index={index} axis={axis} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

export function useWidth(box: { current: HTMLDivElement | null }, shown: boolean): number {
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(() => setWidth(box.current?.clientWidth || 600));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [box, shown]);
  return width;
}

/** Where it begins, if that is in this graph. */
function useOriginLayer(layers: Layer[]): { index: number } | null {
  const session = useSession();
  const origin = useApp(originOf);
  if (!origin || !session.problems.originHere()) return null;
  const index = layerOf(layers, origin.module ?? origin.op);
  return index < 0 ? null : { index };
}

export function walkColumns(event: KeyboardEvent): void {
  const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const place = (event.target as HTMLElement).dataset['at']?.split(' ').map(Number);
  if (!by || !place || !(event.currentTarget instanceof HTMLElement)) return;
  event.currentTarget.querySelector<HTMLElement>(`[data-at="${place[0]! + by[0]!} ${place[1]! + by[1]!}"]`)?.focus();
  event.preventDefault();
  event.stopPropagation();
}

export function StripSide({ axis, text }: { axis: ErrorAxis | null; text: (power: number) => string }) {
  const t = useText();
  return (
    <div class="strip-side" aria-hidden="true">
      {(['forward', 'backward'] as const).map((direction) => (
        <div key={direction} class={`strip-axis ${direction}`}>
          <span class="strip-direction">{t(`overview.${direction}`)}</span>
          {axis?.ticks.map((power) => (
            <span key={power} class="strip-tick" style={{ '--place': axisPlace(power, axis) }}>
              {text(power)}
            </span>
          ))}
        </div>
      ))}
    </div>
  );
}

function errorText(error: Measure, checksums: boolean, t: Translate): string {
  if (error === 'inf') return t(checksums ? 'measure.sums' : 'measure.kind');
  return t('measure.largest', { value: measurePercent(error) });
}

interface BarProps {
  layer: Layer;
  cell: LayerCell | null;
  direction: Direction;
  index: number;
  axis: ErrorAxis | null;
}

function Bar({ layer, cell, direction, index, axis }: BarProps) {
  const session = useSession();
  const t = useText();
  const mode = useApp((state) => state.mode);
  const checksums = useApp((state) => state.config?.task === 'md5');
  if (!cell) return <span class={`bar ${direction}`} />;
  const status = layerStatus(cell, mode);
  const figures = [
    `${layer.label} ${t(`overview.${direction}`)}: ${t(`status.${status}`)}`,
    cell.error !== null && errorText(cell.error, checksums, t),
    cell.units !== null && cell.units !== 0 && t('measure.units', { value: measureText(cell.units) }),
    cell.errors > 0 && `${cell.errors} × ${t('status.error')}`,
    cell.overflows > 0 && `${cell.overflows} × ${t('status.overflow')}`,
  ];
  const text = figures.filter(Boolean).join(t('measure.and'));
  return (
    <button
      class={`bar ${direction}`}
      data-at={`${direction === 'forward' ? 0 : 1} ${index}`}
      data-test={`layer-${direction}-${layer.label}`}
      tabIndex={index === 0 && direction === 'forward' ? 0 : -1}
      aria-label={text}
      title={text}
      disabled={!cell.node}
      onClick={() => void session.goTo('NPU', cell.node)}
    >
      <span class={`bar-fill ${status}`} style={{ height: `${Math.round(barHeight(cell, mode, axis) * 100)}%` }} />
    </button>
  );
}
