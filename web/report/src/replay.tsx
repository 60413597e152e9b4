import { Breaks } from './breaks';
import { useLook } from './context';
import type { CompareReport, Replay, ReplayFigures } from './data';
import { formatMeasure } from './format';
import { translateWhy, type MessageKey, type Translate } from './i18n';

/** Of each verdict its text, and its colour as that of a row of the table: what the target is to blame for is an error. */
const VERDICTS = {
  'golden nearer': { text: 'replay.golden', badge: 'error' },
  'both far': { text: 'replay.far', badge: 'warning' },
  'target nearer': { text: 'replay.target', badge: 'warning' },
  'both within round-off': { text: 'replay.roundOff', badge: 'pass' },
  'cannot be replayed': { text: 'replay.not', badge: 'none' },
} as const satisfies Record<Replay['verdict'], { text: MessageKey; badge: string }>;
// What tells something comes first.
const ORDER = Object.keys(VERDICTS) as Replay['verdict'][];

function number(of: number | 'inf'): string {
  return of === 'inf' ? '∞' : formatMeasure(of);
}

function figures(t: Translate, of: ReplayFigures | undefined): string {
  return of ? t('replay.ulp', { ulp: number(of.ulp), dtype: of.dtype }) : '';
}

function Figures({ of }: { of: ReplayFigures | undefined }) {
  const { t } = useLook();
  if (!of) return <td class="number" />;
  return (
    <td class="number">
      {figures(t, of)}<span class="muted">{t('replay.limit', { ulp: number(of.round_off_ulp) })}</span>
    </td>
  );
}

/** Of a pair: which side is nearer to the float64 result of the same call. */
export function Replays({ report, label, onOp }: { report: CompareReport; label: string; onOp: (op: string) => void }) {
  const { t } = useLook();
  if (!report.summary.replays) return null;
  const groups = ORDER.map((verdict) => report.summary.replays!.filter((replay) => replay.label === label && replay.verdict === verdict));
  const replays = groups.flat();
  return (
    <section class="card" aria-labelledby="replay-title">
      <h2 id="replay-title">{t('replay.title')}</h2>
      <p class="muted">{t('replay.hint')}</p>
      {replays.length === 0 ? (
        <p class="muted empty">{t('replay.none')}</p>
      ) : (
        <>
          <ul class="counts">
            {ORDER.map((verdict, i) => groups[i]!.length > 0 && <li key={verdict}><b>{groups[i]!.length}</b> {t(VERDICTS[verdict].text)}</li>)}
          </ul>
          <div class="scroll" tabIndex={0} role="region" aria-labelledby="replay-title">
            <table class="ops replays">
              <thead>
                <tr><th>{t('ops.op')}</th><th>{t('replay.verdict')}</th><th>{t('replay.item')}</th><th class="number">{t('side.target')}</th><th class="number">{t('side.golden')}</th></tr>
              </thead>
              <tbody>
                {replays.map(({ op, verdict, why, items: [item], notes }) => (
                  <tr key={op}>
                    <td><button type="button" class="op-link code" onClick={() => onOp(op)}><Breaks text={op} /></button></td>
                    <td>
                      <span class={`badge ${VERDICTS[verdict].badge}`}>{t(VERDICTS[verdict].text)}</span>
                      {why && <span class="muted why"> {translateWhy(t, why)}</span>}
                      {notes.map((note) => <span key={note} class="muted why"> {translateWhy(t, note)}</span>)}
                    </td>
                    <td class="code">{item?.item}</td>
                    <Figures of={item?.target} />
                    <Figures of={item?.golden} />
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </section>
  );
}
