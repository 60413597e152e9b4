import type { NodeSummary, Side } from '../api/types';

export const ROOT = 'DefaultModel';

/** Numbers the layout keeps with a node: they live and die with it, so no second map of 100,000 nodes is needed. */
export interface Extent {
  height: number;
  depth: number; // of the deepest opened descendant
  tops: Float64Array | null; // tops of the children below the node's own top, then the end of the last one
}

export interface TreeNode {
  info: NodeSummary;
  readonly parent: TreeNode | null;
  readonly depth: number;
  index: number; // among the shown children of the parent
  kids: TreeNode[] | null; // null until fetched; the shown ones
  open: boolean;
  readonly extent: Extent;
}

function makeNode(info: NodeSummary, parent: TreeNode | null, index: number): TreeNode {
  const depth = parent ? parent.depth + 1 : 0;
  return { info, parent, depth, index, kids: null, open: false, extent: { height: 0, depth, tops: null } };
}

/** One side of a graph, as far as it was opened. Children arrive lazily and stay. */
export class Tree {
  readonly root: TreeNode;
  private readonly nodes = new Map<string, TreeNode>();
  private readonly listeners = new Set<(node: TreeNode) => void>();
  private rootKids: TreeNode[] = [];

  constructor(
    readonly side: Side,
    root: NodeSummary,
  ) {
    this.root = makeNode(root, null, 0);
    this.nodes.set(root.name, this.root);
  }

  get(name: string): TreeNode | undefined {
    return this.nodes.get(name);
  }

  get size(): number {
    return this.nodes.size;
  }

  /** Called with the node whose height changed (its own, by opening, or by its children). */
  onChange(listener: (node: TreeNode) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  attach(node: TreeNode, children: NodeSummary[]): void {
    if (node.kids) return;
    // A name seen before would make a cycle or a second home; the first one holds.
    const kids: TreeNode[] = [];
    for (const info of children) {
      if (this.nodes.has(info.name)) continue;
      const kid = makeNode(info, node, kids.length);
      this.nodes.set(info.name, kid);
      kids.push(kid);
    }
    node.kids = kids;
    if (node === this.root) this.rootKids = kids;
    if (node.open) this.changed(node);
  }

  setOpen(node: TreeNode, open: boolean): boolean {
    if (open && !node.kids) return false;
    if (node.open === open || !node.info.children) return false;
    node.open = open;
    this.changed(node);
    return true;
  }

  /** Nodes whose children are here. */
  loaded(): TreeNode[] {
    return [...this.nodes.values()].filter((node) => node.kids !== null && node.kids.length > 0);
  }

  /** What is known of a node and its children, anew; which nodes there are does not change. */
  update(node: NodeSummary, children: NodeSummary[]): void {
    for (const info of [node, ...children]) {
      const known = this.nodes.get(info.name);
      if (known) known.info = info;
    }
  }

  /** Shows only the root's children of one micro step; -1 shows all. */
  showMicroStep(step: number): void {
    const shown = step < 0 ? this.rootKids : this.rootKids.filter((kid) => kid.info.micro_step === step);
    shown.forEach((kid, index) => (kid.index = index));
    this.root.kids = shown;
    this.changed(this.root);
  }

  closeAll(): void {
    for (const node of this.nodes.values()) if (node !== this.root && node.open) this.setOpen(node, false);
  }

  private changed(node: TreeNode): void {
    for (const listener of this.listeners) listener(node);
  }
}

/** True when every ancestor is open. */
export function isShown(node: TreeNode): boolean {
  for (let at = node.parent; at; at = at.parent) if (!at.open) return false;
  return true;
}

function lastShown(node: TreeNode): TreeNode {
  let at = node;
  while (at.open && at.kids?.length) at = at.kids[at.kids.length - 1]!;
  return at;
}

/** The next node in the order it is drawn. */
export function nextShown(node: TreeNode): TreeNode | null {
  if (node.open && node.kids?.length) return node.kids[0]!;
  for (let at = node; at.parent; at = at.parent) {
    const sibling = at.parent.kids?.[at.index + 1];
    if (sibling) return sibling;
  }
  return null;
}

export function previousShown(node: TreeNode): TreeNode | null {
  if (!node.parent) return null;
  const sibling = node.index > 0 ? node.parent.kids?.[node.index - 1] : undefined;
  return sibling ? lastShown(sibling) : node.parent;
}

export function lastOf(root: TreeNode): TreeNode {
  return lastShown(root);
}
