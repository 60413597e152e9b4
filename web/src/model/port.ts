import type { GraphRef, Side } from '../api/types';
import type { State, Store } from './store';
import type { Tree, TreeNode } from './tree';

/** What the parts of a session ask of it. */
export interface SessionPort {
  readonly store: Store;
  readonly state: State;
  /** The graph that is shown. */
  ref(): GraphRef;
  tree(side: Side): Tree | null;
  selectedNode(): TreeNode | undefined;
  goTo(side: Side, name: string): Promise<void>;
  /** To a node of another rank or step. */
  goToGraph(step: number, rank: number, node?: string, side?: Side): Promise<void>;
  /** Reads again what may have changed on the server. */
  refresh(): Promise<void>;
  complain(error: unknown): void;
  writeLink(): void;
}
