import { Breaks } from './breaks';
import { useState } from 'preact/hooks';
import { Badge } from './badge';
import { useLook } from './context';
import type { OpEntry, PairPage } from './data';
import { formatMeasure } from './format';

const STEP = 20;

/** Output error over input error, the latter at least what counts as equal. */
function factor([, , input, output]: OpEntry): string {
  if (output === null) return '∞';
  if (input === null || input < 0 || output <= 0) return '–';
  return input < 1e-6 ? `> ${formatMeasure(output / 1e-6)}` : formatMeasure(output / input);
}

export function WorstOps({ page, onOp }: { page: PairPage; onOp: (op: string) => void }) {
  const { t } = useLook();
  const [added, setAdded] = useState(true);
  const [most, setMost] = useState(STEP);
  const ops = added ? page.added : page.worst;
  return (
    <section class="card" aria-labelledby="ops-title">
      <div class="head">
        <h2 id="ops-title">{t('ops.title')}</h2>
        <div class="segments" role="group" aria-labelledby="ops-title">
          <button type="button" aria-pressed={added} onClick={() => (setAdded(true), setMost(STEP))}>{t('ops.added')}</button>
          <button type="button" aria-pressed={!added} onClick={() => (setAdded(false), setMost(STEP))}>{t('ops.largest')}</button>
        </div>
      </div>
      <p class="muted">{t(added ? 'ops.addedHint' : 'ops.largestHint')}</p>
      {ops.length === 0 ? (
        <p class="muted empty">{t('ops.none')}</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-labelledby="ops-title">
          <table class="ops">
            <thead>
              <tr><th>{t('ops.op')}</th><th class="number">{t('ops.inputs')}</th><th class="number">{t('ops.outputs')}</th><th class="number">{t('ops.factor')}</th><th>{t('ops.result')}</th><th>{t('ops.line')}</th></tr>
            </thead>
            <tbody>
              {ops.slice(0, most).map((op) => (
                <tr key={op[0]}>
                  <td><button type="button" class="op-link code" onClick={() => onOp(op[0])}><Breaks text={op[0]} /></button></td>
                  <td class="number">{formatMeasure(op[2])}</td>
                  <td class="number">{formatMeasure(op[3])}</td>
                  <td class="number">{factor(op)}</td>
                  <td><Badge verdict={op[1]} /></td>
                  <td class="code">{op[7]}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {ops.length > most && <button type="button" class="button" onClick={() => setMost(most + 3 * STEP)}>{t('ops.more', { count: Math.min(3 * STEP, ops.length - most) })}</button>}
    </section>
  );
}
