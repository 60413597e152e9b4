import { useRef } from 'preact/hooks';
import { FINDING_KINDS, type Finding, type FindingKind, type MatrixCell, type Precision } from '../api/types';
import type { Translate } from '../i18n';
import { shortCount } from '../model/format';
import { measureText } from '../model/layers';
import { useApp, useSession, useText } from './context';
import { errorText, LayerStrip } from './layer_strip';
import { StatusDot } from './status_dot';
import { listNodes } from './summary_bar';

/** Before any node: what was found, how the error runs through the layers, how bad each rank is at each step. */
export function Overview() {
  const t = useText();
  return (
    <section class="overview" aria-label={t('overview.label')} data-test="overview">
      <Found />
      <LayerStrip />
      <Matrix />
    </section>
  );
}

function Found() {
  const session = useSession();
  const t = useText();
  const findings = useApp((state) => state.findings);
  const graph = useApp((state) => state.graph);
  if (findings.at !== 'ready' || graph.at !== 'ready') return null;
  const { list, more } = shownFindings(findings.value.findings, findings.value.total);
  const { npu, bench, first_error: error, first_warning: warning, first_overflow: overflow } = graph.value.summary;
  // Files of the earlier tool have no findings: what the nodes themselves say takes their place.
  const plain = (kind: FindingKind, name: string): Finding => ({ kind, side: 'NPU', name, text: '', precision: null });
  const own = [
    error ? plain('first_error', error.name) : warning && plain('first_warning', warning.name),
    overflow && plain('first_overflow', overflow.name),
  ];
  const all = list.length > 0 ? list : own.filter((finding) => !!finding);
  const alone = bench ? npu.unmatched : 0;
  return (
    <div class="overview-part found">
      <h2>{t('overview.found')}</h2>
      {all.length === 0 && alone === 0 && <p class="muted">{t('overview.nothing')}</p>}
      <ol>
        {all.map((finding, index) => (
          <FindingLine key={index} finding={finding} />
        ))}
        {alone > 0 && (
          <li>
            <button class="finding" data-test="finding-unmatched" onClick={() => listNodes(session, 'unmatched')}>
              <StatusDot status="unmatched" />
              <strong>{t('overview.unmatched', { count: alone.toLocaleString() })}</strong>
            </button>
          </li>
        )}
      </ol>
      {findings.value.inherited > 0 && <p class="muted">{t('overview.inherited', { count: findings.value.inherited.toLocaleString() })}</p>}
      {more > 0 && <p class="muted">{t('overview.more', { count: more.toLocaleString() })}</p>}
    </div>
  );
}

const MOST_OF_A_KIND = 5;

/** The first of each kind; a bad run has thousands. */
function shownFindings(all: Finding[], total: number): { list: Finding[]; more: number } {
  const seen = new Map<string, number>();
  const list = all.filter(({ kind }) => {
    const count = (seen.get(kind) ?? 0) + 1;
    seen.set(kind, count);
    return count <= MOST_OF_A_KIND;
  });
  // What the origin says already is not said twice.
  const origin = list.find(({ kind }) => kind === 'origin');
  const kept = list.filter(({ kind, name }) => (kind !== 'first_error' && kind !== 'bad_module') || name !== origin?.name);
  return { list: kept, more: Math.max(0, total - list.length) };
}

function FindingLine({ finding }: { finding: Finding }) {
  const session = useSession();
  const t = useText();
  const { kind, name, side, text, precision } = finding;
  const checksums = useApp((state) => state.config?.task === 'md5');
  const known = (FINDING_KINDS as readonly string[]).includes(kind);
  const talks = ['missing_call', 'call_order', 'no_partner', 'call_data', 'call_root'].includes(kind);
  return (
    <li>
      <button class="finding" title={name} data-test={`finding-${kind}`} disabled={!name} onClick={() => void session.goTo(side, name)}>
        <StatusDot status={/overflow|parameter|gradient/.test(kind) ? 'critical' : kind === 'origin' || kind === 'first_error' ? 'error' : 'warning'} />
        <span>
          <strong>{known ? t(`finding.${kind as FindingKind}`) : kind}</strong> <span class="finding-name">{name}</span>
          {side === 'Bench' && <span class="muted"> {t('side.Bench')}</span>}
          {precision && <span class="muted finding-figures">{figures(precision, checksums, t)}</span>}
          {talks && (
            <span class="muted finding-figures" lang="en">
              {text}
            </span>
          )}
        </span>
      </button>
    </li>
  );
}

/** "off by 0.25, 1.2e+6 times what rounding explains; inputs by 3e-8". */
function figures({ error, units, input_error: input }: Precision, checksums: boolean, t: Translate): string {
  const inputs = () => (checksums && input === 'inf' ? t('measure.inputSums') : t('measure.inputs', { value: measureText(input) }));
  const parts = [
    error !== null && errorText(error, checksums, t),
    units !== null && error !== 'inf' && (units === 'inf' || units >= 1) && t('measure.units', { value: measureText(units) }),
    input !== null && (input === 0 ? t('measure.equalInputs') : inputs()),
  ];
  return parts.filter(Boolean).join(t('measure.and'));
}

function Matrix() {
  const session = useSession();
  const t = useText();
  const matrix = useApp((state) => state.matrix);
  const step = useApp((state) => state.step);
  const rank = useApp((state) => state.rank);
  const table = useRef<HTMLTableElement>(null);
  if (matrix.at !== 'ready' || matrix.value.length < 2) return null;
  const steps = [...new Set(matrix.value.map((cell) => cell.step))];
  const ranks = [...new Set(matrix.value.map((cell) => cell.rank))].sort((a, b) => a - b);
  const at = new Map(matrix.value.map((cell) => [`${cell.step} ${cell.rank}`, cell]));
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const place = (event.target as HTMLElement).dataset['at']?.split(' ').map(Number);
    if (!by || !place) return;
    table.current?.querySelector<HTMLElement>(`[data-at="${place[0]! + by[0]!} ${place[1]! + by[1]!}"]`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="overview-part matrix">
      <h2>{t('overview.matrix')}</h2>
      <div class="matrix-scroll">
        <table ref={table} onKeyDown={onKey}>
          <thead>
            <tr>
              <th scope="col">{t('overview.corner')}</th>
              {steps.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ranks.map((row, y) => (
              <tr key={row}>
                <th scope="row">{row}</th>
                {steps.map((column, x) => {
                  const cell = at.get(`${column} ${row}`);
                  const here = column === step && row === rank;
                  return (
                    <td key={column}>
                      {cell && (
                        <button
                          class={`cell ${cellStatus(cell)}`}
                          data-at={`${y} ${x}`}
                          data-test={`cell-${column}-${row}`}
                          tabIndex={here ? 0 : -1}
                          aria-current={here}
                          aria-label={cellText(cell, t)}
                          title={cellText(cell, t)}
                          onClick={() => session.goToGraph(column, row)}
                        >
                          {shortCount(cell.error || cell.critical || cell.warning || cell.high)}
                        </button>
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function cellStatus(cell: MatrixCell): string {
  if (cell.error > 0) return 'error';
  if (cell.critical > 0) return 'critical';
  if (cell.warning > 0) return 'warning';
  return cell.high > 0 ? 'high' : 'pass';
}

function cellText(cell: MatrixCell, t: Translate): string {
  const counts = (['error', 'warning', 'unmatched', 'critical', 'high', 'medium'] as const).filter((level) => cell[level] > 0);
  const list = counts.map((level) => `${cell[level].toLocaleString()} ${t(`status.${level}`)}`).join(', ');
  return t('overview.cell', { step: cell.step, rank: cell.rank, list: list || t('summary.clean') });
}
