import type { FlowNeighbour, Links } from '../api/types';
import { isShown, type Tree, type TreeNode } from '../model/tree';
import type { Palette } from '../theme/palette';

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Edge {
  from: TreeNode;
  to: TreeNode;
  sure: boolean;
}

const SURE = 80; // percent
const BULGE = 22; // pixels left of the blocks

/** The node, or the innermost of its ancestors that can be seen. */
function shown(tree: Tree, end: FlowNeighbour): TreeNode | null {
  for (const name of [end.node.name, ...[...end.path].reverse()]) {
    const node = tree.get(name);
    if (node && isShown(node)) return node;
  }
  return null;
}

/** Edges of the selected node between what is on the page; several into one closed module are one. */
export function visibleEdges(tree: Tree, selected: TreeNode, links: Links): Edge[] {
  const edges = new Map<string, Edge>();
  const add = (end: FlowNeighbour, gives: boolean) => {
    const other = shown(tree, end);
    if (!other || other === selected) return;
    const key = `${gives} ${other.info.name}`;
    const sure = end.confidence >= SURE || edges.get(key)?.sure === true;
    edges.set(key, gives ? { from: other, to: selected, sure } : { from: selected, to: other, sure });
  };
  if (!isShown(selected)) return [];
  for (const end of links.producers) add(end, true);
  for (const end of links.consumers) add(end, false);
  return [...edges.values()];
}

/** Bows along the left of the blocks, with an arrow where the value goes. */
export function paintEdges(ctx: CanvasRenderingContext2D, edges: Edge[], rectOf: (node: TreeNode) => Rect | null, palette: Palette, ratio: number): void {
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.strokeStyle = palette.accent;
  ctx.fillStyle = palette.accent;
  ctx.lineWidth = 1.6;
  for (const { from, to, sure } of edges) {
    const a = rectOf(from);
    const b = rectOf(to);
    if (!a || !b) continue;
    const [x1, y1, x2, y2] = [a.x + 3, a.y + a.height * 0.7, b.x + 2, b.y + b.height * 0.3];
    const bow = Math.max(2, Math.min(x1, x2) - BULGE - Math.min(30, Math.abs(y2 - y1) / 40));
    ctx.setLineDash(sure ? [] : [4, 4]);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.bezierCurveTo(bow, y1, bow, y2, x2 - 5, y2);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x2 + 2, y2);
    ctx.lineTo(x2 - 6, y2 - 4);
    ctx.lineTo(x2 - 6, y2 + 4);
    ctx.fill();
  }
}
