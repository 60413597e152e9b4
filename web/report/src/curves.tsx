import { useMemo, useState } from 'preact/hooks';
import { Chart } from './chart';
import { useLook } from './context';
import type { Direction, PairPage } from './data';
import { Heat } from './heat';
import type { MessageKey } from './i18n';
import { CATALOGUES } from './i18n';
import { layerSeries, partsOf, runSeries, stacksByDepth, type Series } from './series';

const equal = (series: Series[]) => series.every(({ spots }) => spots.every((spot) => spot.value === 0));

export function Curves({ page, onOp }: { page: PairPage; onOp: (op: string) => void }) {
  const { t } = useLook();
  const stacks = useMemo(() => stacksByDepth(page), [page]);
  const [measure, setMeasure] = useState(0);
  const [stack, setStack] = useState(stacks[0]?.stack ?? -1);
  const [part, setPart] = useState(-1);
  const [heat, setHeat] = useState<Direction>('forward');
  const layers = useMemo(() => (stack < 0 ? [] : layerSeries(page, stack, part, measure)), [page, stack, part, measure]);
  const run = useMemo(() => runSeries(page, measure), [page, measure]);
  const name = (column: string) => (`measure.${column}` in CATALOGUES.en ? t(`measure.${column}` as MessageKey) : column);
  const title = name(page.measures[measure] ?? '');
  const roundoff = measure === 0 && page.roundoff > 0 ? page.roundoff : 0;
  const directions = layers.map(({ direction }) => direction);
  const shown = directions.includes(heat) ? heat : directions[0];

  return (
    <section class="card" aria-labelledby="curves-title">
      <div class="head">
        <h2 id="curves-title">{t('curves.title')}</h2>
        <label class="chooser">
          {t('curves.measure')}
          <select value={measure} onChange={(event) => setMeasure(Number(event.currentTarget.value))}>
            {page.measures.map((column, i) => <option key={column} value={i}>{name(column)}</option>)}
          </select>
        </label>
      </div>
      <p class="muted">{t('curves.hint')}</p>
      {run.length > 0 && equal(run) && <p class="verdict good">{t('curves.equal')}</p>}
      <div class="head">
        <h3>{t('curves.layers')}</h3>
        {stacks.length > 0 && (
          <>
            <label class="chooser">
              {t('curves.stack')}
              <select value={stack} onChange={(event) => (setStack(Number(event.currentTarget.value)), setPart(-1))}>
                {stacks.map((one) => <option key={one.stack} value={one.stack}>{`${one.name} (${one.layers})`}</option>)}
              </select>
            </label>
            <label class="chooser">
              {t('curves.part')}
              <select value={part} onChange={(event) => setPart(Number(event.currentTarget.value))}>
                <option value={-1}>{t('curves.allParts')}</option>
                {partsOf(page, stack).map((id) => <option key={id} value={id}>{page.curves.parts[id] || t('heat.self')}</option>)}
              </select>
            </label>
          </>
        )}
      </div>
      {layers.length > 0 ? (
        <Chart name={title} xLabel={t('curves.layer')} series={layers} roundoff={roundoff} wholeNumbers onOp={onOp} />
      ) : (
        <p class="muted empty">{t(run.length ? 'curves.noLayers' : 'curves.none')}</p>
      )}
      {layers.length > 0 && shown && (
        <>
          <div class="head">
            <h3>{t('heat.title')}</h3>
            <div class="segments" role="group" aria-label={t('heat.title')}>
              {directions.map((direction) => (
                <button key={direction} type="button" aria-pressed={direction === shown} onClick={() => setHeat(direction)}>{t(`direction.${direction}`)}</button>
              ))}
            </div>
          </div>
          <Heat page={page} stack={stack} direction={shown} measure={measure} onOp={onOp} />
        </>
      )}
      {run.length > 0 && (
        <>
          <h3>{t('curves.run')}</h3>
          <Chart name={title} xLabel={t('curves.position')} series={run} roundoff={roundoff} wholeNumbers={false} onOp={onOp} />
        </>
      )}
    </section>
  );
}
