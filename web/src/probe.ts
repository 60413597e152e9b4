import type { Side } from './api/types';
import type { Session } from './model/session';
import type { Views } from './panels/graphs';

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** What a test in a browser cannot read off a canvas: which blocks are drawn, and where. */
export interface Probe {
  state(): { file: string | null; graph: string; details: string; links: string; findings: string; search: string; step: number; rank: number; selection: unknown; theme: string; language: string };
  rect(side: Side, name: string): Rect | null; // in the page's coordinates
  drawn(side: Side): string[];
  open(side: Side): string[];
  map(side: Side): { top: number; height: number; whole: number } | null; // what the pane shows of the whole, in content pixels
  matching(): unknown;
  edges(side: Side): [from: string, to: string][]; // of the flow, as drawn
  zoom(side: Side): number;
  paintMs(side: Side): number;
}

declare global {
  interface Window {
    __msprobe: Probe;
  }
}

export function installProbe(session: Session, views: Views): void {
  window.__msprobe = {
    state() {
      const { file, graph, details, links, findings, search, step, rank, selection, theme, language } = session.state;
      return { file, graph: graph.at, details: details.at, links: links.at, findings: findings.at, search: session.finder.settled ? search.result.at : 'busy', step, rank, selection, theme, language };
    },
    rect(side, name) {
      const view = views[side];
      const node = view?.tree.get(name);
      const rect = node && view?.rectOf(node);
      if (!view || !rect) return null;
      const box = view.canvas.getBoundingClientRect();
      return { ...rect, x: rect.x + box.left, y: rect.y + box.top };
    },
    drawn: (side) => views[side]?.painted.map((block) => block.node.info.name) ?? [],
    open: (side) => views[side]?.painted.filter((block) => block.node.open).map((block) => block.node.info.name) ?? [],
    map(side) {
      const seen = views[side]?.seen();
      return seen ? { top: seen.top, height: seen.height, whole: seen.whole } : null;
    },
    matching: () => session.state.matching,
    edges: (side) => views[side]?.edges.map(({ from, to }) => [from.info.name, to.info.name]) ?? [],
    zoom: (side) => views[side]?.zoom ?? 0,
    paintMs: (side) => views[side]?.lastPaintMs ?? 0,
  };
}
