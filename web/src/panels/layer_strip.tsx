import { useRef } from 'preact/hooks';
import type { Layer, LayerCell, Measure } from '../api/types';
import type { Translate } from '../i18n';
import { barHeight, layerLabel, layerStatus, measureText, worthShowing } from '../model/layers';
import { useApp, useSession, useText } from './context';

type Direction = 'forward' | 'backward';

/** A column for each layer in the order of execution: the error of its forward pass above, of its backward pass below. */
export function LayerStrip() {
  const t = useText();
  const layers = useApp((state) => state.layers);
  const strip = useRef<HTMLDivElement>(null);
  if (layers.at !== 'ready' || !worthShowing(layers.value)) return null;
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const place = (event.target as HTMLElement).dataset['at']?.split(' ').map(Number);
    if (!by || !place) return;
    strip.current?.querySelector<HTMLElement>(`[data-at="${place[0]! + by[0]!} ${place[1]! + by[1]!}"]`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="overview-part strip">
      <h2>{t('overview.layers')}</h2>
      <div class="strip-scroll" ref={strip} role="group" aria-label={t('overview.layersHint')} onKeyDown={onKey}>
        <div class="strip-side" aria-hidden="true">
          <span>{t('overview.forward')}</span>
          <span>{t('overview.backward')}</span>
        </div>
        {layers.value.map((layer, index) => (
          <Column key={layer.label} layer={layer} index={index} />
        ))}
      </div>
    </div>
  );
}

function Column({ layer, index }: { layer: Layer; index: number }) {
  return (
    <div class="layer">
      <Bar layer={layer} cell={layer.forward} direction="forward" index={index} />
      <span class="layer-name" title={layer.label}>
        {layerLabel(layer.label)}
      </span>
      <Bar layer={layer} cell={layer.backward} direction="backward" index={index} />
    </div>
  );
}

/** Checksums have no distance. */
export function errorText(error: Measure, checksums: boolean, t: Translate): string {
  return checksums && error === 'inf' ? t('measure.sums') : t('measure.error', { value: measureText(error) });
}

function Bar({ layer, cell, direction, index }: { layer: Layer; cell: LayerCell | null; direction: Direction; index: number }) {
  const session = useSession();
  const t = useText();
  const checksums = useApp((state) => state.config?.task === 'md5');
  if (!cell) return <span class={`bar ${direction}`} />;
  const status = layerStatus(cell);
  const figures = [
    `${layer.label} ${t(`overview.${direction}`)}: ${t(`status.${status}`)}`,
    cell.error !== null && errorText(cell.error, checksums, t),
    cell.units !== null && t('measure.units', { value: measureText(cell.units) }),
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
      <span class={`bar-fill ${status}`} style={{ height: `${Math.round(barHeight(cell) * 100)}%` }} />
    </button>
  );
}
