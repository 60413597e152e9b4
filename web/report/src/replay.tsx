import { useLook } from './context';
import type { Replay, ReplayFigures, Report } from './data';
import { formatMeasure } from './format';

const VERDICTS = { 'both within round-off': 'roundOff', 'target nearer': 'target', 'golden nearer': 'golden', 'both far': 'far', 'cannot be replayed': 'not' } as const;

/** Of a pair: which side is nearer to the float64 result of the same call. */
export function Replays({ report, label, onOp }: { report: Report; label: string; onOp: (op: string) => void }) {
  const { t } = useLook();
  const all = report.summary.replays?.filter((replay) => replay.label === label) ?? [];
  if (!report.summary.replays) return null;
  // What rounding explains comes last.
  const replays = [...all.filter(isTelling), ...all.filter((replay) => !isTelling(replay))];
  const figures = (of: ReplayFigures | undefined) => (of ? t('replay.ulp', { ulp: of.ulp === 'inf' ? '∞' : formatMeasure(of.ulp), dtype: of.dtype }) : '');
  return (
    <section class="card" aria-labelledby="replay-title">
      <h2 id="replay-title">{t('replay.title')}</h2>
      <p class="muted">{t('replay.hint')}</p>
      {replays.length === 0 ? (
        <p class="muted empty">{t('replay.none')}</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-labelledby="replay-title">
          <table class="ops">
            <thead>
              <tr><th>{t('ops.op')}</th><th>{t('ops.result')}</th><th class="number">{t('side.target')}</th><th class="number">{t('side.golden')}</th></tr>
            </thead>
            <tbody>
              {replays.map((replay) => (
                <tr key={replay.op}>
                  <td><button type="button" class="op-link code" onClick={() => onOp(replay.op)}>{replay.op}</button></td>
                  <td>{t(`replay.${VERDICTS[replay.verdict]}`)}{replay.why && <span class="muted"> · {replay.why}</span>}</td>
                  <td class="number">{figures(replay.items[0]?.target)}</td>
                  <td class="number">{figures(replay.items[0]?.golden)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const isTelling = ({ verdict }: Replay) => verdict !== 'both within round-off' && verdict !== 'cannot be replayed';
