import { useEffect, useRef, useState } from 'preact/hooks';
import type { HistoryCell, NodeDetails, NodeHistory, Side } from '../api/types';
import type { Translate } from '../i18n';
import { failure } from '../model/failure';
import { measurePercent } from '../model/findings';
import { historyStatus, historyTable } from '../model/history';
import { measureText } from '../model/layers';
import { BUSY, type Load } from '../model/load';
import type { Status } from '../model/status';
import { useApp, useSession, useText } from './context';
import { walkCells } from './rank_matrix';
import { Failure, Loading } from './states';

/** The selected node in every graph of the file: how far it is off at each step of each rank. */
export function History({ details }: { details: NodeDetails }) {
  const session = useSession();
  const selected = useApp((state) => state.selection?.side ?? 'NPU');
  const revision = useApp((state) => state.graph); // matches may have changed
  // Figures are those of the target.
  const partner = selected === 'Bench' ? details.partner : null;
  const [side, name]: [Side, string] = partner ? [partner.side, partner.node.name] : [selected, details.node.name];
  const [loaded, setLoaded] = useState<Load<NodeHistory>>(BUSY);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let current = true;
    session.api.history(session.ref().file, side, name).then(
      (value) => current && setLoaded({ at: 'ready', value }),
      (error: unknown) => current && setLoaded(failure(error)),
    );
    return () => void (current = false);
  }, [session, side, name, attempt, revision]);
  if (loaded.at === 'failed') return <Failure failed={loaded} retry={() => setAttempt(attempt + 1)} />;
  if (loaded.at !== 'ready') return <Loading />;
  return <HistoryTableView history={loaded.value} details={details} />;
}

function HistoryTableView({ history, details }: { history: NodeHistory; details: NodeDetails }) {
  const t = useText();
  const config = useApp((state) => state.config);
  const { steps, ranks, at, worst } = historyTable(history.cells, config?.steps ?? [], config?.ranks ?? []);
  const box = useRef<HTMLDivElement>(null);
  const place = (step: number, rank: number, named: boolean) => <Place key={`${step} ${rank}`} step={step} rank={rank} cell={at(step, rank)} details={details} history={history} named={named} />;
  return (
    <section class="history" data-test="history" aria-label={t('details.history')}>
      <p>
        {t('history.found', { found: history.cells.length, total: steps.length * ranks.length })}
        {worst && <> {t('history.worst', { step: worst.step, rank: worst.rank, value: errorText(worst) })}</>}
      </p>
      <div class="history-scroll" ref={box} onKeyDown={(event) => walkCells(event, box.current!)}>
        {steps.length === 1 ? (
          <div class="rank-grid" role="group" aria-label={`${t('select.step')} ${steps[0]}`}>
            {ranks.map((rank) => place(steps[0]!, rank, true))}
          </div>
        ) : (
          <table>
            <thead>
              <tr>
                <th class="axis" scope="col">
                  {t('select.rank')} \ {t('select.step')}
                </th>
                {steps.map((step) => (
                  <th key={step} scope="col">
                    {step}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {ranks.map((rank) => (
                <tr key={rank}>
                  <th scope="row">{rank}</th>
                  {steps.map((step) => (
                    <td key={step}>{place(step, rank, false)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </section>
  );
}

interface PlaceProps {
  step: number;
  rank: number;
  cell: HistoryCell | undefined;
  details: NodeDetails;
  history: NodeHistory;
  named: boolean; // with its rank
}

function Place({ step, rank, cell, details, history, named }: PlaceProps) {
  const session = useSession();
  const t = useText();
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const here = useApp((state) => state.step === step && state.rank === rank);
  const status = cell && historyStatus(cell, details.node, mode, compared);
  const text = t('overview.cell', { step, rank, list: cell && status ? sentence(cell, status, t) : t('history.absent') });
  return (
    <button
      class={`cell history-cell ${status ?? 'absent'}`}
      data-test={`history-${step}-${rank}`}
      tabIndex={here ? 0 : -1}
      aria-current={here}
      aria-label={text}
      title={text}
      disabled={!cell}
      onClick={() => session.goToGraph(step, rank, history.name, history.side)}
    >
      {named && <span class="cell-rank">{rank}</span>}
      <span>{cell ? errorText(cell) || '·' : ''}</span>
    </button>
  );
}

function errorText({ error }: HistoryCell): string {
  return error === 0 ? '0' : measurePercent(error);
}

function sentence(cell: HistoryCell, status: Status, t: Translate): string {
  const parts = [t(`status.${status}`)];
  if (cell.error !== null && cell.error !== 0) parts.push(cell.error === 'inf' ? t('measure.kind') : t('measure.error', { value: errorText(cell) }));
  if (cell.units !== null && cell.units !== 0) parts.push(t('measure.units', { value: measureText(cell.units) }));
  return parts.join(t('measure.and'));
}
