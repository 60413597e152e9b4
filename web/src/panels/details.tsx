import { OTHER, type NodeDetails } from '../api/types';
import type { MessageKey } from '../i18n';
import { grouped } from '../model/format';
import { parseFrame } from '../model/stack';
import type { Tab } from '../model/tabs';
import { savedItems } from '../model/tensor';
import type { TreeNode } from '../model/tree';
import { useApp, useCopy, useSession, useText } from './context';
import { Icon } from './icons';
import { Flow } from './flow';
import { History } from './history';
import { ItemsTable } from './items_table';
import { Merged } from './merged';
import { NodeChip } from './node_chip';
import { Overview } from './overview';
import { arrowsChoose } from './segments';
import { Failure, Loading } from './states';
import { Tensor } from './tensor';

export function Details() {
  const session = useSession();
  const t = useText();
  const details = useApp((state) => state.details);
  const selection = useApp((state) => state.selection);
  const wanted = useApp((state) => state.tab);
  const several = useApp(({ config }) => (config?.ranks.length ?? 0) * (config?.steps.length ?? 0) > 1);
  if (!selection || details.at === 'idle') return <Landing />;
  if (details.at === 'failed') {
    const node = session.selectedNode();
    return <Failure failed={details} retry={() => node && void session.select(selection.side, node)} leave={details.fault === 'gone'} />;
  }
  if (details.at === 'busy') return <Loading />;
  const { value } = details;
  const merge = value.merge_info.length > 0 || (value.partner?.merge_info ?? []).length > 0;
  const tensor = savedItems(value, selection.side).length > 0;
  const tab = (wanted === 'merge' && !merge) || (wanted === 'tensor' && !tensor) || (wanted === 'history' && !several) ? 'items' : wanted;
  const tabs: Tab[] = ['overview', 'items', ...(tensor ? (['tensor'] as const) : []), 'flow', ...(several ? (['history'] as const) : []), 'stack', ...(merge ? (['merge'] as const) : [])];
  return (
    <section class="details" aria-label={t('details.label')}>
      <div class="details-head">
        <div class="tabs" role="tablist" aria-label={t('details.label')} onKeyDown={arrowsChoose}>
          {tabs.map((key) => (
            <button key={key} id={`tab-${key}`} role="tab" aria-selected={tab === key} tabIndex={tab === key ? 0 : -1} aria-controls="tab-panel" data-test={`tab-${key}`} onClick={() => session.show({ tab: key })}>
              {t(`details.${key}` as MessageKey)}
            </button>
          ))}
        </div>
        <NodeName details={value} />
        <Along />
      </div>
      <div class="details-body" id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === 'items' && <ItemsTable key={value.node.name} details={value} />}
        {tab === 'overview' && <Overview />}
        {tab === 'tensor' && <Tensor key={value.node.name} details={value} />}
        {tab === 'history' && <History key={value.node.name} details={value} />}
        {tab === 'flow' && <Flow details={value} />}
        {tab === 'stack' && <Stacks details={value} />}
        {tab === 'merge' && <Merge details={value} />}
      </div>
    </section>
  );
}

function Landing() {
  const t = useText();
  const exported = useApp((state) => state.config?.exported);
  return (
    <div class="details-body landing" tabIndex={0}>
      <Overview />
      <p class="muted landing-hint">
        {t('details.none')}
        {exported && exported.details < exported.nodes && ` ${t('details.exported', { details: grouped(exported.details), nodes: grouped(exported.nodes) })}`}
      </p>
    </div>
  );
}

/** The ops before and after in the order of execution. */
function Along() {
  const session = useSession();
  const t = useText();
  const links = useApp((state) => state.links);
  const ready = links.at === 'ready' ? links.value : null;
  return (
    <span class="along">
      <button class="icon-button" data-test="previous-op" disabled={!ready?.previous} title={ready?.previous ? `${t('details.previousOp')}: ${ready.previous.name}` : t('details.previousOp')} aria-label={t('details.previousOp')} onClick={() => session.goAlong(-1)}>
        <Icon name="up" />
      </button>
      <button class="icon-button" data-test="next-op" disabled={!ready?.next} title={ready?.next ? `${t('details.nextOp')}: ${ready.next.name}` : t('details.nextOp')} aria-label={t('details.nextOp')} onClick={() => session.goAlong(1)}>
        <Icon name="down" />
      </button>
    </span>
  );
}

/** The way to the node, its verdict, and its full name to be copied. */
function NodeName({ details }: { details: NodeDetails }) {
  const session = useSession();
  const t = useText();
  const copy = useCopy();
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const side = useApp((state) => state.selection?.side ?? 'NPU');
  const { node, partner } = details;
  const way: TreeNode[] = [];
  for (let at = session.tree(side)?.get(node.name)?.parent; at?.parent; at = at.parent) way.unshift(at);
  return (
    <div class="node-name">
      <NodeChip side={side} node={node} />
      <nav class="crumbs" aria-label={t('details.path')} data-test="node-name" data-name={node.name}>
        {way.map((ancestor) => (
          <button key={ancestor.info.name} title={ancestor.info.name} onClick={() => void session.goTo(side, ancestor.info.name)}>
            {shortLabel(ancestor.info.label)}
          </button>
        ))}
        <span title={node.name}>{node.label}</span>
      </nav>
      <button class="icon-button" title={t('details.copyName')} aria-label={t('details.copyName')} onClick={() => copy(node.name)}>
        <Icon name="copy" />
      </button>
      {compared && !partner && <span class="muted no-partner">{t('details.noPartner')}</span>}
    </div>
  );
}

/** Without direction and call number: the ancestors of a node share its own. */
function shortLabel(label: string): string {
  return label.replace(/\.(forward|backward)(\.\d+)?$/, '').replace(/^Module\./, '');
}

/** The lines of a node and of its partner under the names of their sides, the target first. */
function useColumns(own: string[], other: string[] | undefined): [MessageKey, string[]][] {
  const side = useApp((state) => state.selection?.side ?? 'NPU');
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const columns: [MessageKey, string[]][] = [[compared ? `side.${side}` : 'side.single', own]];
  if (other) columns.push([`side.${OTHER[side]}`, other]);
  return side === 'Bench' ? columns.reverse() : columns;
}

function Stacks({ details }: { details: NodeDetails }) {
  const t = useText();
  const columns = useColumns(details.stack, details.partner?.stack);
  return (
    <div class="stacks">
      {columns.map(([title, lines]) => (
        <Stack key={title} title={t(title)} lines={lines} />
      ))}
    </div>
  );
}

/** How a node was put together from the ranks. */
function Merge({ details }: { details: NodeDetails }) {
  return <Merged columns={useColumns(details.merge_info, details.partner ? (details.partner.merge_info ?? []) : undefined)} />;
}

/** Frames of the machinery, which are in every stack. */
const LIBRARY = /[\\/](torch|msprobe)[\\/]/;

function Stack({ title, lines }: { title: string; lines: string[] }) {
  const t = useText();
  const copy = useCopy();
  return (
    <div class="stack-column">
      <div class="stack-head">
        <strong>{title}</strong>
        {lines.length > 0 && (
          <button class="icon-button" title={t('details.copyStack')} aria-label={t('details.copyStack')} onClick={() => copy(lines.join('\n'))}>
            <Icon name="copy" />
          </button>
        )}
      </div>
      {lines.length === 0 ? (
        <p class="muted">{t('details.noStack')}</p>
      ) : (
        <ol class="stack">
          {lines.map((line, index) => (
            <li key={index} class={LIBRARY.test(line) ? 'muted' : ''} title={line}>
              <FrameText line={line} />
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

/** The code first: it is what one knows again. */
function FrameText({ line }: { line: string }) {
  const frame = parseFrame(line);
  if (!frame) return <>{line.replace(/\s*\n\s*/g, '  ').trim()}</>;
  return (
    <>
      {frame.code && <span class="frame-code">{frame.code}</span>}
      <span class="frame-place">
        {frame.place} {frame.name}
      </span>
    </>
  );
}
