import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { OTHER, type Side } from '../api/types';
import type { Session } from '../model/session';
import type { Tree, TreeNode } from '../model/tree';
import { MinimapView } from '../render/minimap_view';
import { PaneView } from '../render/pane_view';
import { useApp, usePalette, usePrefer, useSession, useText } from './context';
import { Icon } from './icons';
import { NodeChip } from './node_chip';
import { NodeMenu } from './node_menu';
import { NodeTip, nodeSentence } from './node_tip';
import { Splitter } from './splitter';
import { Failure, Loading } from './states';
import { treeKey } from './tree_keys';

/** The panes of the page, so that one can move the other. */
export type Views = Partial<Record<Side, PaneView>>;

export function Graphs({ views }: { views: Views }) {
  const session = useSession();
  const t = useText();
  const graph = useApp((state) => state.graph);
  const split = useApp((state) => state.split);
  const prefer = usePrefer();
  const area = useRef<HTMLDivElement>(null);
  const [front, setFront] = useState<Side>('NPU'); // on a narrow screen, which has room for one
  useEffect(() => session.onReveal((side, node) => reveal(session, views, side, node)), [session, views]);
  if (graph.at === 'failed') return <Failure failed={graph} retry={() => retry(session)} leave />;
  if (graph.at !== 'ready') return <Loading />;
  const { NPU, Bench } = graph.value.trees;
  const share = (event: PointerEvent) => {
    const box = area.current!.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };
  const other = OTHER[front];
  return (
    <div class="graphs" ref={area}>
      {Bench && (
        <button class="text-button pane-other" data-test="pane-other" onClick={() => setFront(other)}>
          {t('view.other', { side: t(`side.${other}`) })}
        </button>
      )}
      <div class={`pane ${Bench && front !== 'NPU' ? 'behind' : ''}`} style={{ flexGrow: Bench ? split : 1 }}>
        <Pane key={treeKeyOf(NPU)} side="NPU" tree={NPU} views={views} title={t(Bench ? 'side.NPU' : 'side.single')} />
      </div>
      {Bench && (
        <>
          <Splitter label={t('view.splitter')} vertical value={split} min={0.15} max={0.85} step={0.05} onMove={share} onChange={(value) => prefer({ split: value })} />
          <div class={`pane ${front !== 'Bench' ? 'behind' : ''}`} style={{ flexGrow: 1 - split }}>
            <Pane key={treeKeyOf(Bench)} side="Bench" tree={Bench} views={views} title={t('side.Bench')} />
          </div>
        </>
      )}
    </div>
  );
}

const treeKeys = new WeakMap<Tree, number>();
let lastTreeKey = 0;
/** A new tree gets a new pane. */
function treeKeyOf(tree: Tree): number {
  const key = treeKeys.get(tree) ?? ++lastTreeKey;
  treeKeys.set(tree, key);
  return key;
}

function retry(session: Session): void {
  const { file, step, rank } = session.state;
  if (file) void session.open({ file, step, rank });
}

/** The partner of the selected node is put at the same height; anything else only has to be in view. */
function reveal(session: Session, views: Views, side: Side, node: TreeNode): void {
  const { selection, follow } = session.state;
  const selected = session.selectedNode();
  const other = views[OTHER[side]];
  const isPartner = selection !== null && selection.side !== side;
  const top = follow && isPartner && selected && other ? other.restingTop(selected) : null;
  if (top !== null) views[side]?.lineUp(node.info.name, top);
  else views[side]?.reveal(node);
}

const waiting = new WeakSet<PaneView>();

function followOther(session: Session, views: Views, side: Side): void {
  const view = views[side];
  const anchor = session.state.follow ? view?.anchor() : null;
  if (!view || !anchor) return;
  views[OTHER[side]]?.lineUp(anchor.matched, anchor.y);
  // What stands against it may be on its way: then once more, from where one is by then.
  const opening = session.opening();
  if (!opening || waiting.has(view)) return;
  waiting.add(view);
  void opening.then(() => {
    waiting.delete(view);
    if (views[side] === view) followOther(session, views, side);
  });
}

/** Both sides as a whole, as far as names stay readable; what is selected stays in view. */
export function fit(session: Session, views: Views): void {
  const shown = [views.NPU, views.Bench].filter((view) => view !== undefined);
  const zoom = Math.min(...shown.map((view) => view.fitZoom()));
  for (const view of shown) {
    view.setZoom(zoom);
    view.showStart();
  }
  const { selection } = session.state;
  const node = session.selectedNode();
  if (selection && node) {
    reveal(session, views, selection.side, node);
    const partner = node.info.matched === null ? undefined : session.tree(OTHER[selection.side])?.get(node.info.matched);
    if (partner) reveal(session, views, OTHER[selection.side], partner);
  }
  shown[0]?.zoomByHand(1); // tells who shows the figure
}

interface PaneProps {
  side: Side;
  tree: Tree;
  views: Views;
  title: string;
}

interface Tip {
  node: TreeNode;
  x: number;
  y: number;
}

function Pane({ side, tree, views, title }: PaneProps) {
  const session = useSession();
  const t = useText();
  const palette = usePalette();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [view, setView] = useState<PaneView | null>(null);
  const map = useApp((state) => state[`map${side}`]);
  const [tip, setTip] = useState<Tip | null>(null);
  const [menu, setMenu] = useState<Tip | null>(null);
  const [zoom, setZoom] = useState(1);
  const closeMenu = useCallback(() => setMenu(null), []);
  useLayoutEffect(() => {
    const view = new PaneView(canvas.current!, side, tree, session, palette, {
      scrolled: () => followOther(session, views, side),
      zoomed: (next) => {
        views[OTHER[side]]?.setZoom(next);
        setZoom(next);
      },
      hovered: (node, x, y) => setTip(node && { node, x, y }),
    });
    const other = views[OTHER[side]];
    if (other) view.setZoom(other.zoom);
    views[side] = view;
    setView(view);
    return () => {
      delete views[side];
      view.destroy();
    };
  }, [session, side, tree, views]);
  useLayoutEffect(() => views[side]?.setPalette(palette), [palette, side, tree, views]);
  /** At the pointer; by the menu key (which has no place of its own) at the selected node. */
  const onMenu = (event: MouseEvent) => {
    event.preventDefault();
    const view = views[side];
    const box = canvas.current!.getBoundingClientRect();
    const marked = tree.get(session.highlighted(side) ?? '');
    const rect = event.button !== 2 && marked ? view?.rectOf(marked) : null;
    const node = rect ? marked : view?.nodeAt(event.clientX, event.clientY);
    if (!node) return;
    setTip(null);
    void session.select(side, node);
    setMenu(rect ? { node, x: box.left + rect.x + 24, y: box.top + rect.y + rect.height } : { node, x: event.clientX, y: event.clientY });
  };
  const onKey = (event: KeyboardEvent) => {
    const view = views[side];
    if (!view || !treeKey(event, session, side, tree, view)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <PaneHead title={title} side={side} tree={tree} views={views} zoom={zoom} />
      <div class="pane-body">
        <canvas
          ref={canvas}
          class="graph"
          tabIndex={0}
          role="tree"
          data-side={side}
          aria-label={t('graph.label', { side: title })}
          aria-activedescendant={`current-${side}`}
          onKeyDown={onKey}
          onContextMenu={onMenu}
        >
          <CurrentItem side={side} tree={tree} />
        </canvas>
        {map && view && <Minimap side={side} view={view} />}
      </div>
      {menu && <NodeMenu side={side} node={menu.node} x={menu.x} y={menu.y} onClose={closeMenu} />}
      {tip && !menu && <NodeTip side={side} node={tip.node} x={tip.x} y={tip.y} />}
    </>
  );
}

/** A way to move with the pointer; keys move the graph itself. */
function Minimap({ side, view }: { side: Side; view: PaneView }) {
  const session = useSession();
  const palette = usePalette();
  const canvas = useRef<HTMLCanvasElement>(null);
  const map = useRef<MinimapView | null>(null);
  useLayoutEffect(() => {
    const made = new MinimapView(canvas.current!, view, session, palette);
    map.current = made;
    return () => made.destroy();
  }, [view, session]);
  useLayoutEffect(() => map.current?.setPalette(palette), [palette]);
  return <canvas ref={canvas} class="minimap" data-map={side} aria-hidden="true" />;
}

interface PaneHeadProps {
  title: string;
  side: Side;
  tree: Tree;
  views: Views;
  zoom: number;
}

function PaneHead({ title, side, tree, views, zoom }: PaneHeadProps) {
  const session = useSession();
  const t = useText();
  useApp((state) => state.selection);
  useApp((state) => state.revision);
  const map = useApp((state) => state[`map${side}`]);
  const prefer = usePrefer();
  useApp((state) => state.matching.picked[side]);
  const name = session.highlighted(side);
  const node = name ? tree.get(name) : undefined;
  return (
    <div class={`pane-head ${side}`}>
      <strong>{title}</strong>
      <span class="pane-name" title={name ?? ''}>
        <bdi>{node?.info.name ?? ''}</bdi>
      </span>
      {node && <NodeChip side={side} node={node.info} brief />}
      <span class="spacer" />
      <button class="icon-button" data-test={`map-${side}`} aria-pressed={map} title={t('view.map')} aria-label={t('view.map')} onClick={() => prefer({ [`map${side}`]: !map })}>
        <Icon name="map" />
      </button>
      {side === 'NPU' && (
        <span class="zoom">
          <button class="icon-button" data-test="fit" title={t('view.fit')} aria-label={t('view.fit')} onClick={() => fit(session, views)}>
            <Icon name="fit" />
          </button>
          <button class="icon-button" title={t('view.zoomOut')} aria-label={t('view.zoomOut')} onClick={() => views[side]?.zoomByHand(1 / 1.2)}>
            <Icon name="minus" />
          </button>
          <button class="text-button" title={t('view.zoomReset')} aria-label={t('view.zoomReset')} onClick={() => views[side]?.zoomByHand(1 / (views[side]?.zoom ?? 1))}>
            {Math.round((views[side]?.zoom ?? zoom) * 100)} %
          </button>
          <button class="icon-button" title={t('view.zoomIn')} aria-label={t('view.zoomIn')} onClick={() => views[side]?.zoomByHand(1.2)}>
            <Icon name="plus" />
          </button>
        </span>
      )}
    </div>
  );
}

/** The marked node as an element of the tree, for screen readers: a canvas alone says nothing. */
function CurrentItem({ side, tree }: { side: Side; tree: Tree }) {
  const session = useSession();
  const t = useText();
  useApp((state) => state.selection);
  useApp((state) => state.revision);
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const name = session.highlighted(side);
  const node = (name ? tree.get(name) : undefined) ?? tree.root;
  return (
    <div
      id={`current-${side}`}
      role="treeitem"
      aria-level={node.depth + 1}
      aria-posinset={node.index + 1}
      aria-setsize={node.parent?.kids?.length ?? 1}
      aria-expanded={node.info.children > 0 ? node.open : undefined}
      aria-selected={session.state.selection?.side === side}
    >
      {nodeSentence(node, mode, compared, t)}
    </div>
  );
}
