import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { OTHER, type ExchangePartner, type Side } from '../api/types';
import type { Translate } from '../i18n';
import type { Session } from '../model/session';
import type { TreeNode } from '../model/tree';
import { useApp, useCopy, useSession, useText } from './context';

interface NodeMenuProps {
  side: Side;
  node: TreeNode;
  x: number;
  y: number;
  onClose: () => void;
}

interface Entry {
  text: string;
  test: string;
  run: () => void;
}

/** To match a node with the one picked on the other side, or to part it from its partner. */
function matchEntries(session: Session, side: Side, node: TreeNode, t: Translate): Entry[] {
  const { matching } = session;
  if (!matching?.possible || session.exported) return [];
  const { matched } = node.info;
  if (matched !== null) return [{ text: t('menu.unmatch'), test: 'unmatch', run: () => void matching.actOn(side, node.info, matched) }];
  const other = session.state.matching.picked[OTHER[side]];
  const free = other !== null && session.tree(OTHER[side])?.get(other)?.info.matched === null;
  if (other !== null && free) return [{ text: t('menu.match', { name: other }), test: 'match', run: () => void matching.actOn(side, node.info, other) }];
  return [{ text: t('menu.startMatch'), test: 'start-match', run: () => matching.open() }];
}

/** What can be done with a node, at the pointer or, by the menu key, below the node. */
export function NodeMenu({ side, node, x, y, onClose }: NodeMenuProps) {
  const session = useSession();
  const t = useText();
  const copy = useCopy();
  const menu = useRef<HTMLDivElement>(null);
  const links = useApp((state) => state.links);
  const { name, matched, children } = node.info;
  useLayoutEffect(() => menu.current?.querySelector('button')?.focus(), []);
  useEffect(() => {
    const away = (event: Event) => !menu.current?.contains(event.target as Node) && onClose();
    window.addEventListener('pointerdown', away);
    window.addEventListener('blur', onClose);
    return () => {
      window.removeEventListener('pointerdown', away);
      window.removeEventListener('blur', onClose);
    };
  }, [onClose]);
  const selected = session.state.selection?.name === name && session.state.selection.side === side;
  const partners: ExchangePartner[] = selected && links.at === 'ready' ? links.value.partners.slice(0, 16) : [];
  const entries: Entry[] = [
    ...(children > 0 ? [{ text: t(node.open ? 'menu.close' : 'menu.open'), test: 'toggle', run: () => void session.toggle(side, node) }] : []),
    ...(matched !== null && session.tree(OTHER[side]) ? [{ text: t('menu.partner'), test: 'partner', run: () => void session.goTo(OTHER[side], matched) }] : []),
    ...matchEntries(session, side, node, t),
    { text: t('details.copyName'), test: 'copy', run: () => copy(name) },
    { text: t('menu.link'), test: 'link', run: () => copy(session.address()) },
    ...partners.map(({ step, rank, name: other }) => ({ text: t('menu.rank', { rank, name: other }), test: `rank-${rank}`, run: () => session.goToGraph(step, rank, other) })),
  ];
  const onKey = (event: KeyboardEvent) => {
    const buttons = [...menu.current!.querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === 'ArrowDown') buttons[(at + 1) % buttons.length]?.focus();
    else if (event.key === 'ArrowUp') buttons[(at - 1 + buttons.length) % buttons.length]?.focus();
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const close = () => {
    onClose();
    document.querySelector<HTMLElement>(`canvas[data-side=${side}]`)?.focus();
  };
  const place = { left: `${Math.max(4, Math.min(x, window.innerWidth - 330))}px`, top: `${Math.max(4, Math.min(y, window.innerHeight - 40 - entries.length * 30))}px` };
  return (
    <div class="node-menu card" role="menu" aria-label={name} ref={menu} style={place} onKeyDown={onKey}>
      {entries.map(({ text, test, run }, index) => (
        <button
          key={index}
          role="menuitem"
          data-test={`menu-${test}`}
          onClick={() => {
            close();
            run();
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
