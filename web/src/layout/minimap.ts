import { worse, worstOf, type ColorMode, type Status } from '../model/status';
import type { Tree, TreeNode } from '../model/tree';
import { BLOCK, MARGIN } from './blocks';

/** A piece of the small picture of a graph, in its pixels. */
export interface Strip {
  y: number;
  height: number;
  depth: number;
  status: Status;
  inside: boolean; // of an open block, below its head
}

/** As large as the picture allows, but a graph of a few blocks is not blown up. */
export function minimapScale(contentHeight: number, height: number): number {
  return Math.min(height / Math.max(contentHeight, 1), 6 / BLOCK);
}

/**
 * What is open, block by block as long as blocks are a pixel high; lower ones that share a pixel show the worst of them,
 * so that one error among ten thousand nodes is still seen. At most a few strips a pixel, whatever the graph.
 */
export function minimapStrips(tree: Tree, scale: number, mode: ColorMode, compared: boolean): Strip[] {
  const found: Strip[] = [];
  const visit = (node: TreeNode, top: number): void => {
    const { extent, kids, depth } = node;
    const height = extent.height * scale;
    const status = worstOf(node.info, mode, compared, node.open);
    if (!node.open || !kids || !extent.tops || height < 2) {
      found.push({ y: top * scale, height: Math.max(1, height), depth, status: height < 2 ? worstOf(node.info, mode, compared, false) : status, inside: false });
      return;
    }
    found.push({ y: top * scale, height, depth, status, inside: true });
    found.push({ y: top * scale, height: Math.max(1, BLOCK * scale), depth, status, inside: false });
    let row: Strip | null = null; // of kids lower than a pixel
    for (let i = 0; i < kids.length; i++) {
      const kid = kids[i]!;
      const y = (top + extent.tops[i]!) * scale;
      if (kid.extent.height * scale >= 1) {
        row = null;
        visit(kid, top + extent.tops[i]!);
        continue;
      }
      const own = worstOf(kid.info, mode, compared, false);
      if (row && Math.floor(y) === row.y) row.status = worse(row.status, own);
      else found.push((row = { y: Math.floor(y), height: 1, depth: kid.depth, status: own, inside: false }));
    }
  };
  visit(tree.root, MARGIN);
  return found;
}
