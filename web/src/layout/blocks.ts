import type { Tree, TreeNode } from '../model/tree';

// A nesting diagram: a block is as high as what is open in it, children stand below each other in execution order.
// Heights are kept with the nodes, so opening one node touches its own children and its ancestors, nothing else,
// and what is visible is found by bisection.

export const BLOCK = 26; // a closed block, and the head of an open one
export const GAP = 5;
export const HEAD_GAP = 5;
export const FOOT = 8;
export const INSET_LEFT = 14;
export const INSET_RIGHT = 8;
export const MARGIN = 12;
export const MIN_WIDTH = 200;

/** Recomputes one node from its children, whose own heights must be right. */
function measure(node: TreeNode): void {
  const { extent, kids } = node;
  extent.depth = node.depth;
  if (!node.open || !kids || kids.length === 0) {
    extent.height = BLOCK;
    extent.tops = null;
    return;
  }
  const tops = extent.tops?.length === kids.length + 1 ? extent.tops : new Float64Array(kids.length + 1);
  let top = BLOCK + HEAD_GAP;
  for (let i = 0; i < kids.length; i++) {
    const kid = kids[i]!.extent;
    tops[i] = top;
    top += kid.height + GAP;
    if (kid.depth > extent.depth) extent.depth = kid.depth;
  }
  tops[kids.length] = top - GAP;
  extent.tops = tops;
  extent.height = top - GAP + FOOT;
}

function measureDeep(node: TreeNode): void {
  if (node.open && node.kids) for (const kid of node.kids) if (kid.extent.height === 0 || kid.open) measureDeep(kid);
  measure(node);
}

/** Lays out a whole tree: linear in the opened children. */
export function layoutTree(tree: Tree): void {
  measureDeep(tree.root);
}

/** Brings the layout up to date after `node` changed. */
export function relayout(node: TreeNode): void {
  measureDeep(node);
  for (let at = node.parent; at; at = at.parent) measure(at);
}

export function contentHeight(tree: Tree): number {
  return tree.root.extent.height + 2 * MARGIN;
}

/** The narrowest width in which the deepest open block still has room for a name. */
export function neededWidth(tree: Tree): number {
  return 2 * MARGIN + tree.root.extent.depth * (INSET_LEFT + INSET_RIGHT) + MIN_WIDTH;
}

/** Top of a node in content coordinates; every ancestor must be open. */
export function topOf(node: TreeNode): number {
  let top = MARGIN;
  for (let at = node; at.parent; at = at.parent) top += at.parent.extent.tops?.[at.index] ?? 0;
  return top;
}

export interface Placed {
  node: TreeNode;
  x: number;
  y: number;
  width: number;
  height: number;
}

export function leftOf(depth: number): number {
  return MARGIN + depth * INSET_LEFT;
}

export function widthOf(depth: number, contentWidth: number): number {
  return contentWidth - 2 * MARGIN - depth * (INSET_LEFT + INSET_RIGHT);
}

/** First child whose end lies below `y` (relative to the parent's top). */
function firstBelow(tops: Float64Array, kids: TreeNode[], y: number): number {
  let low = 0;
  let high = kids.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (tops[middle]! + kids[middle]!.extent.height > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Blocks that touch [top, bottom), parents before children. */
export function visibleBlocks(tree: Tree, top: number, bottom: number, contentWidth: number): Placed[] {
  const found: Placed[] = [];
  const visit = (node: TreeNode, y: number): void => {
    const { extent, kids, depth } = node;
    found.push({ node, x: leftOf(depth), y, width: widthOf(depth, contentWidth), height: extent.height });
    if (!node.open || !kids || !extent.tops) return;
    for (let i = firstBelow(extent.tops, kids, top - y); i < kids.length; i++) {
      const kidTop = y + extent.tops[i]!;
      if (kidTop >= bottom) break;
      visit(kids[i]!, kidTop);
    }
  };
  if (MARGIN < bottom && MARGIN + tree.root.extent.height > top) visit(tree.root, MARGIN);
  return found;
}

/** The innermost block at a point in content coordinates. */
export function blockAt(tree: Tree, x: number, y: number, contentWidth: number): Placed | null {
  const hits = visibleBlocks(tree, y, y + 0.001, contentWidth);
  for (let i = hits.length - 1; i >= 0; i--) {
    const block = hits[i]!;
    if (x >= block.x && x < block.x + block.width && y >= block.y && y < block.y + block.height) return block;
  }
  return null;
}
