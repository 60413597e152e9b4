import { OTHER, type Side } from '../api/types';
import type { Session } from '../model/session';
import { lastOf, nextShown, previousShown, type Tree, type TreeNode } from '../model/tree';
import type { PaneView } from '../render/pane_view';

function go(session: Session, side: Side, node: TreeNode | null | undefined): void {
  if (node) void session.goTo(side, node.info.name);
}

/** Keys of a focused graph; true when the key meant something. */
export function treeKey(event: KeyboardEvent, session: Session, side: Side, tree: Tree, view: PaneView): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return zoomKey(event, view);
  const node = tree.get(session.highlighted(side) ?? '') ?? tree.root;
  switch (event.key) {
    case 'ArrowDown':
      go(session, side, session.highlighted(side) ? nextShown(node) : node);
      return true;
    case 'ArrowUp':
      go(session, side, previousShown(node));
      return true;
    case 'ArrowRight':
      if (node.open) go(session, side, node.kids?.[0]);
      else void session.setOpen(side, node, true);
      return true;
    case 'ArrowLeft':
      if (node.open && node.parent) void session.setOpen(side, node, false);
      else go(session, side, node.parent);
      return true;
    case 'Enter':
    case ' ':
      if (node.info.children > 0) void session.toggle(side, node);
      return true;
    case 'Home':
      go(session, side, tree.root);
      return true;
    case 'End':
      go(session, side, lastOf(tree.root));
      return true;
    case 'm':
      if (node.info.matched !== null && session.tree(OTHER[side])) void session.goTo(OTHER[side], node.info.matched);
      return true;
    default:
      return moveKey(event, view);
  }
}

function zoomKey(event: KeyboardEvent, view: PaneView): boolean {
  if (event.key === '=' || event.key === '+') view.zoomByHand(1.2);
  else if (event.key === '-') view.zoomByHand(1 / 1.2);
  else if (event.key === '0') view.zoomByHand(1 / view.zoom);
  else return false;
  return true;
}

/** W/S/A/D are what users of the earlier page have in their fingers. */
function moveKey(event: KeyboardEvent, view: PaneView): boolean {
  switch (event.key) {
    case 'w':
    case 'W':
      view.zoomByHand(1.2);
      return true;
    case 's':
    case 'S':
      view.zoomByHand(1 / 1.2);
      return true;
    case 'a':
    case 'A':
      view.scrollBy(-40, 0);
      return true;
    case 'd':
    case 'D':
      view.scrollBy(40, 0);
      return true;
    case '+':
    case '=':
    case '-':
    case '0':
      return zoomKey(event, view);
    case 'PageDown':
      view.scrollBy(0, view.canvas.clientHeight * 0.9);
      return true;
    case 'PageUp':
      view.scrollBy(0, -view.canvas.clientHeight * 0.9);
      return true;
    default:
      return false;
  }
}
