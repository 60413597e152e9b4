import { useEffect, useMemo, useState } from 'preact/hooks';
import { NotHeld } from '../api/client';
import type { Histogram, TensorPreview, TensorSide } from '../api/tensor';
import type { NodeDetails } from '../api/types';
import { grouped } from '../model/format';
import { originOf } from '../model/problems';
import { barHeights, binRange, heatScale, savedItems, valueText, worstItem } from '../model/tensor';
import { failure } from '../model/failure';
import { BUSY, IDLE, type Load } from '../model/load';
import { useApp, useSession, useText } from './context';
import { HeatMapView } from './heat_map';
import { Scatter } from './scatter';
import { Icon } from './icons';
import { Failure, Loading, Note, ServerLine } from './states';

/** The values behind an item's figures, read from the dump when they are asked for. */
export function Tensor({ details }: { details: NodeDetails }) {
  const session = useSession();
  const t = useText();
  const selected = useApp((state) => state.selection?.side ?? 'NPU');
  const items = useMemo(() => savedItems(details, selected), [details, selected]);
  const cause = useApp((state) => session.problems.atOrigin() && originOf(state));
  const [chosen, setChosen] = useState(() => worstItem(items, cause ? [cause.item, cause.parameter && `parameters.${cause.parameter}`] : []));
  const [slice, setSlice] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const [loaded, setLoaded] = useState<Load<TensorPreview>>(BUSY);
  const [slices, setSlices] = useState(1); // of the item, also while another of them is read
  const [held, setHeld] = useState<number[]>([]); // slices that an exported page has of the item, when it lacks this one
  const item = items[Math.min(chosen, items.length - 1)];
  useEffect(() => {
    if (!item) return;
    let current = true;
    setLoaded(BUSY);
    session.tensor({ ...item.query, slice })?.then(
      (value) => {
        if (!current) return;
        setLoaded({ at: 'ready', value });
        setSlices(value.tensor.slices);
      },
      (error: unknown) => {
        if (!current) return;
        if (error instanceof NotHeld) setHeld(error.slices);
        setLoaded(error instanceof NotHeld ? IDLE : failure(error));
      },
    );
    return () => void (current = false);
  }, [item, slice, attempt, session]);
  if (!item) return null;
  const choose = (index: number) => {
    if (index === chosen) return;
    setChosen(index);
    setSlice(0);
    setSlices(1);
  };
  return (
    <div class="tensor">
      <div class="tensor-head">
        <label class="chooser">
          <span>{t('tensor.item')}</span>
          <select data-test="tensor-item" value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
            {items.map((entry, index) => (
              <option key={entry.item} value={index}>
                {entry.item}
              </option>
            ))}
          </select>
        </label>
        {(slices > 1 || slice > 0) && <SliceChooser slice={slice} slices={slices} place={loaded.at === 'ready' ? loaded.value.place : []} onChoose={setSlice} />}
      </div>
      {loaded.at === 'failed' && <Failure failed={loaded} retry={() => setAttempt(attempt + 1)} />}
      {loaded.at === 'busy' && <Loading />}
      {loaded.at === 'idle' && <LeftOut slices={held} onChoose={setSlice} />}
      {loaded.at === 'ready' && <Preview preview={loaded.value} />}
    </div>
  );
}

/** Of an exported page, which holds the values of some tensors, and of large ones some slices. */
function LeftOut({ slices, onChoose }: { slices: number[]; onChoose: (slice: number) => void }) {
  const t = useText();
  const count = useApp((state) => state.config?.exported?.tensors);
  if (slices.length === 0) {
    const some = count && count.held > 0 && t('exported.tensorsHeld', { held: grouped(count.held), saved: grouped(count.saved) });
    return <Note text={`${t('exported.tensor')}${some ? ` ${some}` : ''}`} />;
  }
  return (
    <div class="state muted" data-test="slices-held">
      {t('exported.slices')}
      <div class="state-ways">
        {slices.slice(0, 20).map((slice) => (
          <button key={slice} class="button" onClick={() => onChoose(slice)}>
            {slice}
          </button>
        ))}
      </div>
    </div>
  );
}

interface SliceProps {
  slice: number;
  slices: number;
  place: number[];
  onChoose: (slice: number) => void;
}

function SliceChooser({ slice, slices, place, onChoose }: SliceProps) {
  const t = useText();
  return (
    <span class="chooser">
      <span>{t('tensor.slice')}</span>
      <button class="icon-button" disabled={slice <= 0} title={t('tensor.previousSlice')} aria-label={t('tensor.previousSlice')} onClick={() => onChoose(slice - 1)}>
        <Icon name="back" />
      </button>
      <input
        class="slice-number"
        type="number"
        min={0}
        max={slices - 1}
        value={slice}
        data-test="tensor-slice"
        aria-label={t('tensor.slice')}
        onChange={(event) => onChoose(Math.min(Math.max(Math.trunc(Number(event.currentTarget.value)) || 0, 0), slices - 1))}
      />
      <button class="icon-button flip" disabled={slice >= slices - 1} title={t('tensor.nextSlice')} aria-label={t('tensor.nextSlice')} onClick={() => onChoose(slice + 1)}>
        <Icon name="back" />
      </button>
      <code>{`[${[...place, ':', ':'].join(', ')}]`}</code>
    </span>
  );
}

function Preview({ preview }: { preview: TensorPreview }) {
  const t = useText();
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const side = useApp((state) => state.selection?.side ?? 'NPU');
  const { tensor, partner, difference, missing } = preview;
  const scale = heatScale(partner ? [tensor.heat, partner.heat] : [tensor.heat]);
  const own = !compared ? t('side.single') : partner ? t('side.NPU') : t(`side.${side}`);
  return (
    <>
      <div class="tensor-facts">
        <Facts name={own} side={tensor} />
        {partner && <Facts name={t('side.Bench')} side={partner} />}
        {difference && (
          <p>
            {t('tensor.equal', { equal: grouped(difference.equal), count: grouped(tensor.count) })}
            {difference.not_finite > 0 && <span class="not-finite"> {t('tensor.notFinite', { count: grouped(difference.not_finite) })}</span>}
          </p>
        )}
        {partner && !difference && <p>{t('tensor.shapes')}</p>}
        {missing && (
          <p>
            {t('tensor.missing')} <ServerLine text={missing} />
          </p>
        )}
      </div>
      <div class="tensor-parts">
        {difference && <Scatter difference={difference} worst={preview.worst} />}
        {difference && <Bars title={t('tensor.difference')} own={t('tensor.difference')} histogram={difference.histogram} tone="difference" />}
        <Bars title={t('tensor.values')} own={own} histogram={tensor.histogram} other={partner?.histogram} />
        <HeatMapView title={own} map={tensor.heat} scale={scale} />
        {partner && <HeatMapView title={t('side.Bench')} map={partner.heat} scale={scale} />}
        {difference && <HeatMapView title={t('tensor.difference')} map={difference.heat} scale={heatScale([difference.heat])} />}
        <WorstTable preview={preview} />
      </div>
    </>
  );
}

function Facts({ name, side }: { name: string; side: TensorSide }) {
  const t = useText();
  const infinite = side.plus_inf + side.minus_inf;
  return (
    <p>
      <strong>{name}</strong> <code>{`${side.dtype} [${side.shape.join(', ')}]`}</code> <code>{`${valueText(side.min)} … ${valueText(side.max)}`}</code>
      {side.nan > 0 && <span class="not-finite"> {t('tensor.nan', { count: grouped(side.nan) })}</span>}
      {infinite > 0 && <span class="not-finite"> {t('tensor.infinite', { count: grouped(infinite) })}</span>}
      <span class="muted"> {side.file}</span>
    </p>
  );
}

const WIDTH = 320;
const HEIGHT = 120;

interface BarsProps {
  title: string;
  own: string;
  histogram: Histogram;
  other?: Histogram | undefined;
  tone?: string;
}

/** Bars of the one side, the outline of the other over them. */
function Bars({ title, own, histogram, other, tone = 'own' }: BarsProps) {
  const t = useText();
  const most = Math.max(...histogram.counts, ...(other?.counts ?? []));
  const heights = barHeights(histogram.counts, most);
  const step = WIDTH / heights.length;
  const outline = other && barHeights(other.counts, most).map((height, bin) => `${bin ? 'V' : `M0 ${HEIGHT} V`}${HEIGHT - height * HEIGHT} H${(bin + 1) * step}`);
  const from = valueText(histogram.from);
  const to = valueText(histogram.to);
  return (
    <figure class="bars">
      <figcaption>
        {title} <span class="muted">{t('tensor.logCount')}</span>
        {other && (
          <span class="bars-key">
            <span class="key-own" /> {own} <span class="key-other" /> {t('side.Bench')}
          </span>
        )}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t('tensor.barsLabel', { title, from, to })} data-test="histogram">
        {heights.map((height, bin) => {
          const [low, high] = binRange(histogram, bin);
          const counts = [histogram.counts[bin], ...(other ? [other.counts[bin]] : [])].map((count) => grouped(count!)).join(' / ');
          return (
            <g key={bin}>
              <title>{`${valueText(low)} … ${valueText(high)}: ${counts}`}</title>
              <rect class="bars-room" x={bin * step} y={0} width={step} height={HEIGHT} />
              <rect class={`bars-${tone}`} x={bin * step} y={HEIGHT - height * HEIGHT} width={Math.max(step - 0.5, 0.5)} height={height * HEIGHT} />
            </g>
          );
        })}
        {outline && <path class="bars-other" d={`${outline.join(' ')} V${HEIGHT}`} />}
      </svg>
      <div class="bars-axis muted">
        <span>{from}</span>
        <span>{to}</span>
      </div>
    </figure>
  );
}

function WorstTable({ preview }: { preview: TensorPreview }) {
  const t = useText();
  const { worst, difference } = preview;
  if (worst.length === 0) return null;
  return (
    <figure class="worst">
      <figcaption>{t(difference ? 'tensor.worst' : 'tensor.farthest')}</figcaption>
      <table class="items" data-test="worst">
        <thead>
          <tr>
            <th>{t('tensor.place')}</th>
            <th class="number">{difference ? t('side.NPU') : t('tensor.value')}</th>
            {difference && <th class="number">{t('side.Bench')}</th>}
            {difference && <th class="number">{t('tensor.distance')}</th>}
          </tr>
        </thead>
        <tbody>
          {worst.map((element, index) => (
            <tr key={index}>
              <th scope="row">{`[${element.place.join(', ')}]`}</th>
              <td class="number">{valueText(element.value)}</td>
              {difference && <td class="number">{valueText(element.partner ?? 'nan')}</td>}
              {difference && <td class="number">{valueText(element.distance)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
