import { useRef } from 'preact/hooks';
import type { MatrixCell } from '../api/types';
import type { VerdictOrigin } from '../api/verdict';
import type { Translate } from '../i18n';
import { grouped, shortCount } from '../model/format';
import { originOf } from '../model/problems';
import type { ColorMode } from '../model/status';
import { useApp, useSession, useText } from './context';

const JUDGED = ['bug', 'suspicious', 'inherited'] as const;
const MOST_ROWS = 8; // of the table; more ranks than that stand side by side, and so do those of a single step

/** How bad each rank is at each step, and where it begins. */
export function RankMatrix() {
  const session = useSession();
  const t = useText();
  const matrix = useApp((state) => state.matrix);
  const step = useApp((state) => state.step);
  const rank = useApp((state) => state.rank);
  const mode = useApp((state) => state.mode);
  const single = useApp((state) => state.config?.graph_type === 'build' && state.mode !== 'overflow');
  const origin = useApp(originOf);
  const box = useRef<HTMLDivElement>(null);
  if (matrix.at !== 'ready' || matrix.value.length < 2) return null;
  const steps = [...new Set(matrix.value.map((cell) => cell.step))];
  const ranks = [...new Set(matrix.value.map((cell) => cell.rank))].sort((a, b) => a - b);
  const at = new Map(matrix.value.map((cell) => [`${cell.step} ${cell.rank}`, cell]));
  const button = (cell: MatrixCell | undefined, named: boolean) => {
    if (!cell) return null;
    const here = cell.step === step && cell.rank === rank;
    const began = begins(cell, origin);
    const text = cellText(cell, mode, began, t);
    const count = single ? cell.nodes : cellCount(cell, mode);
    return (
      <button
        key={`${cell.step} ${cell.rank}`}
        class={`cell ${single ? 'none' : cellStatus(cell, mode)} ${began ? 'began' : ''} ${named ? 'named' : ''}`}
        data-test={`cell-${cell.step}-${cell.rank}`}
        tabIndex={here ? 0 : -1}
        aria-current={here}
        aria-label={text}
        title={text}
        onClick={() => session.goToGraph(cell.step, cell.rank)}
      >
        {named && <span class="cell-rank">{cell.rank} </span>}
        <span>{named && count === 0 ? '' : shortCount(count)}</span>
      </button>
    );
  };
  return (
    <div class="overview-part matrix">
      <h2>{t('overview.matrix')}</h2>
      <div class="matrix-scroll" ref={box} onKeyDown={(event) => walkCells(event, box.current!)}>
        {ranks.length <= MOST_ROWS && steps.length > 1 ? (
          <table>
            <thead>
              <tr>
                <td />
                <th class="axis" colSpan={steps.length}>
                  {t('select.step')}
                </th>
              </tr>
              <tr>
                <th class="axis" scope="col">
                  {t('select.rank')}
                </th>
                {steps.map((column) => (
                  <th key={column} scope="col">
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {ranks.map((row) => (
                <tr key={row}>
                  <th scope="row">{row}</th>
                  {steps.map((column) => (
                    <td key={column}>{button(at.get(`${column} ${row}`), false)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          steps.map((each) => (
            <div key={each} class={`rank-grid ${density(ranks.length * steps.length)}`} role="group" aria-label={`${t('select.step')} ${each}`}>
              {steps.length > 1 && (
                <span class="rank-step">
                  {t('select.step')} {each}
                </span>
              )}
              {ranks.map((row) => button(at.get(`${each} ${row}`), true))}
            </div>
          ))
        )}
      </div>
    </div>
  );
}

/** To the nearest cell in the direction of the arrow, whatever the rows. */
export function walkCells(event: KeyboardEvent, box: HTMLElement): void {
  const by = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
  const from = event.target;
  if (!by || !(from instanceof HTMLElement)) return;
  const centre = (element: Element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return [left + width / 2, top + height / 2] as const;
  };
  const [x, y] = centre(from);
  let best: HTMLElement | null = null;
  let least = Infinity;
  for (const cell of box.querySelectorAll<HTMLElement>('.cell')) {
    const [dx, dy] = [centre(cell)[0] - x, centre(cell)[1] - y];
    const ahead = dx * by[0]! + dy * by[1]!;
    const aside = Math.abs(dx * by[1]!) + Math.abs(dy * by[0]!);
    if (ahead < 2 || (by[0] !== 0 && aside > 4)) continue;
    const distance = ahead + 3 * aside;
    if (distance < least) [best, least] = [cell, distance];
  }
  best?.focus();
  event.preventDefault();
  event.stopPropagation();
}

/** All ranks of a large run are to be seen at once. */
function density(cells: number): string {
  return cells > 256 ? 'tiny' : cells > 32 ? 'small' : '';
}

function begins({ step, rank }: MatrixCell, origin: VerdictOrigin | null): boolean {
  return origin !== null && origin.ranks.includes(rank) && (origin.step === null || origin.step === step);
}

/** Masks overflow on both sides: in colours of precision they are no fault. */
function cellStatus(cell: MatrixCell, mode: ColorMode): string {
  if (mode === 'overflow') return cell.critical > 0 ? 'critical' : cell.high > 0 ? 'high' : 'pass';
  if (mode === 'verdict') return JUDGED.find((ruling) => cell[ruling]) ?? 'bit-equal';
  return cell.error > 0 ? 'error' : cell.warning > 0 ? 'warning' : 'pass';
}

function cellCount(cell: MatrixCell, mode: ColorMode): number {
  if (mode === 'verdict') return cell.bug || cell.suspicious || cell.inherited || 0;
  return mode === 'overflow' ? cell.critical || cell.high : cell.error || cell.warning;
}

function cellText(cell: MatrixCell, mode: ColorMode, began: boolean, t: Translate): string {
  const found = [...(mode === 'verdict' ? JUDGED : (['error', 'warning'] as const)), 'unmatched'] as const;
  const overflows = ['critical', 'high', 'medium'] as const;
  const levels = mode === 'overflow' ? [...overflows, ...found] : [...found, ...overflows]; // the one that the cell shows first
  const list = levels.filter((level) => cell[level]).map((level) => `${grouped(cell[level]!)} ${t(`status.${level}`)}`);
  if (list.length === 0) list.push(t('summary.nodes', { count: grouped(cell.nodes) }));
  if (began) list.push(t('overview.began'));
  return t('overview.cell', { step: cell.step, rank: cell.rank, list: list.join(', ') });
}
