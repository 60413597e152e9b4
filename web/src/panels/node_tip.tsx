import type { Translate } from '../i18n';
import type { Side } from '../api/types';
import { disagreement, hiddenBelow, precisionStatus, statusOf, type ColorMode } from '../model/status';
import type { TreeNode } from '../model/tree';
import { useApp, useText } from './context';
import { Differs } from './node_chip';
import { StatusChip } from './status_dot';

function hiddenText(node: TreeNode, mode: ColorMode, compared: boolean, t: Translate): string {
  const list = hiddenBelow(node.info, mode, compared).map(({ status, count }) => {
    const word = mode === 'overflow' ? t('status.overflow') : t(`status.${status}`);
    return `${count} × ${word}`;
  });
  return list.length > 0 ? t('graph.hides', { list: list.join(', ') }) : '';
}

function disagreementText({ info }: TreeNode, mode: ColorMode, compared: boolean, t: Translate): string {
  const conflict = compared && mode !== 'overflow' ? disagreement(info) : null;
  if (!conflict) return '';
  return conflict === 'passes' ? t('status.passDiffers') : t('status.marksExplained', { status: t(`status.${precisionStatus(info.precision)}`) });
}

/** The node in words, for screen readers. */
export function nodeSentence(node: TreeNode, mode: ColorMode, compared: boolean, t: Translate): string {
  const parts = [node.info.name, t(`status.${statusOf(node.info, mode, compared)}`), disagreementText(node, mode, compared, t), t('graph.level', { level: node.depth + 1 })];
  return [...parts, hiddenText(node, mode, compared, t)].filter(Boolean).join(', ');
}

/** The full name beside the pointer: blocks may cut it. */
export function NodeTip({ side, node, x, y }: { side: Side; node: TreeNode; x: number; y: number }) {
  const t = useText();
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const status = statusOf(node.info, mode, compared);
  const hidden = hiddenText(node, mode, compared, t);
  const flip = x > window.innerWidth - 380;
  const place = { top: `${y + 16}px`, ...(flip ? { right: `${window.innerWidth - x + 8}px` } : { left: `${x + 12}px` }) };
  return (
    <div class="tip" style={place} aria-hidden="true">
      <span class="tip-name">{node.info.name}</span>
      <span class="tip-line">
        {status !== 'none' && <StatusChip status={status} />}
        {compared && mode !== 'overflow' && <Differs side={side} node={node.info} />}
        {hidden && <span class="muted">{hidden}</span>}
      </span>
    </div>
  );
}
