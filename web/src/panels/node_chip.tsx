import type { NodeSummary, Side } from '../api/types';
import type { Translate } from '../i18n';
import { measurePercent, percentText } from '../model/findings';
import { originOf } from '../model/problems';
import { disagreement, precisionStatus, statusOf } from '../model/status';
import { useApp, useSession, useText } from './context';
import { useFigures } from './figures';
import { StatusChip } from './status_dot';

/**
 * The status of the marked node, and that it begins it all. Where the rules of the earlier tool say otherwise than the ruler, that
 * is said, too: "Pass" never stands alone on what begins a difference. `brief` is for where names need the room.
 */
export function NodeChip({ side, node, brief }: { side: Side; node: NodeSummary; brief?: boolean }) {
  const session = useSession();
  const t = useText();
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  useApp((state) => state.verdict);
  const origin = session.problems.originHere();
  const begins = origin?.side === side && origin.name === node.name;
  const status = statusOf(node, mode, compared);
  const conflict = compared && mode !== 'overflow' && !(brief && mode === 'verdict') ? disagreement(node) : null;
  const replaced = (conflict !== null && mode === 'precision') || (begins && (status === 'pass' || status === 'bug'));
  return (
    <>
      {begins && (
        <span class="chip origin" data-test="chip-origin">
          {t('story.first')}
        </span>
      )}
      {!(brief && begins) && (
        <>
          {status !== 'none' && !replaced && <StatusChip status={status} />}
          {conflict && <Differs side={side} node={node} told={begins ? (originOf(session.state)?.percent ?? null) : null} />}
        </>
      )}
    </>
  );
}

/** What the rules say of a node that the ruler sees otherwise; `told` by how much the verdict of the file says it differs. */
export function Differs({ side, node, told = null }: { side: Side; node: NodeSummary; told?: number | null }) {
  const t = useText();
  const conflict = disagreement(node);
  const figures = useFigures(side, node.name, conflict === 'passes');
  const links = useApp((state) => (state.selection?.side === side && state.selection.name === node.name ? state.links : null));
  if (!conflict) return null;
  const error = links?.at === 'ready' ? links.value.precision?.error : null;
  return (
    <span class="chip differs" data-test="chip-differs">
      {conflict === 'marks' ? t('status.marksExplained', { status: t(`status.${precisionStatus(node.precision)}`) }) : passesText(told ?? figures?.output ?? null, error ?? null, t)}
    </span>
  );
}

/** "Passes the old rule, differs by 25 %"; `error` where the table has no percentage. */
export function passesText(percent: number | null, error: number | 'inf' | null, t: Translate): string {
  if (percent === null && typeof error !== 'number') return t('status.passDiffers');
  return t('status.passDiffersBy', { value: percent === null ? measurePercent(error) : percentText(percent) });
}
