import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { OTHER } from './api/types';
import { LASTING } from './model/load';
import type { Session } from './model/session';
import { useApp, usePalette, usePrefer, useSession, useText } from './panels/context';
import { ConvertView } from './panels/convert';
import { Details } from './panels/details';
import { FilesView } from './panels/files/page';
import { fit, Graphs, type Views } from './panels/graphs';
import { Help } from './panels/help';
import { MatchingBar } from './panels/matching';
import { SearchDock } from './panels/search_dock';
import { Splitter } from './panels/splitter';
import { ServerLine } from './panels/states';
import { StrayedNote } from './panels/strayed';
import { SummaryBar } from './panels/summary_bar';
import { TopBar } from './panels/top_bar';
import { RunView } from './panels/runs/page';
import { TrendsView } from './panels/trends';
import { applyPalette } from './theme/palette';

export function App({ views }: { views: Views }) {
  const session = useSession();
  const palette = usePalette();
  const language = useApp((state) => state.language);
  const file = useApp((state) => state.file);
  const trend = useApp((state) => state.trend?.file ?? null);
  const run = useApp((state) => state.trend?.run !== undefined);
  const converting = useApp((state) => state.convert.open);
  const [help, setHelp] = useState(false);
  useLayoutEffect(() => applyPalette(palette, document.documentElement), [palette]);
  useEffect(() => void (document.documentElement.lang = language), [language]);
  useEffect(() => void (document.title = file || trend ? `${file ?? trend} – msprobe` : 'msprobe'), [file, trend]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => globalKey(event, session, views, () => setHelp(true));
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [session, views]);
  return (
    <div class="app">
      <TopBar onHelp={() => setHelp(true)} />
      {converting ? <ConvertView /> : file ? <GraphPage views={views} /> : trend && run ? <RunView run={trend} /> : trend ? <TrendsView file={trend} /> : <FilesView />}
      {help && <Help onClose={() => setHelp(false)} />}
      <Notice />
    </div>
  );
}

function GraphPage({ views }: { views: Views }) {
  const t = useText();
  const height = useApp((state) => state.detailsHeight);
  const ready = useApp((state) => state.graph.at === 'ready');
  const listed = useApp((state) => state.search.open && state.graph.at === 'ready');
  const dock = useApp((state) => state.dock);
  const prefer = usePrefer();
  const work = useRef<HTMLDivElement>(null);
  const max = Math.max(200, window.innerHeight - 260);
  return (
    <main class="graph-page">
      <StrayedNote />
      <SummaryBar />
      <MatchingBar />
      <div class="work" ref={work}>
        <div class="work-main">
          <div class="graph-area">
            <Graphs views={views} />
          </div>
          {ready && (
            <>
              <Splitter
                label={t('view.detailsSize')}
                vertical={false}
                value={height}
                min={80}
                max={max}
                step={20}
                onMove={(event) => window.innerHeight - event.clientY}
                onChange={(value) => prefer({ detailsHeight: Math.round(value) })}
              />
              <div class="details-area" style={{ height: `${Math.min(height, max)}px` }}>
                <Details />
              </div>
            </>
          )}
        </div>
        {listed && (
          <>
            <Splitter label={t('view.dockSize')} vertical value={1 - dock} min={0.4} max={0.88} step={0.02} onMove={(event) => shareOf(event, work.current!)} onChange={(value) => prefer({ dock: 1 - value })} />
            <div class="dock" style={{ flexBasis: `${(dock * 100).toFixed(2)}%` }}>
              <SearchDock />
            </div>
          </>
        )}
      </div>
    </main>
  );
}

/** Where the pointer is between the left and the right end of a box. */
function shareOf(event: PointerEvent, box: HTMLElement): number {
  const { left, width } = box.getBoundingClientRect();
  return (event.clientX - left) / width;
}

/** A line that goes away by itself, unless it tells of a failure. */
function Notice() {
  const session = useSession();
  const t = useText();
  const notice = useApp((state) => state.notice);
  useEffect(() => {
    if (!notice) return;
    if (notice.fault && LASTING.includes(notice.fault)) return;
    const timer = setTimeout(() => session.store.set({ notice: null }), notice.fault ? 8000 : 1600);
    return () => clearTimeout(timer);
  }, [notice, session]);
  return (
    <div class="notice-area" role="status" aria-live="polite">
      {notice && (
        <div class={`notice ${notice.fault ? 'bad' : ''}`}>
          {notice.fault && t(`fault.${notice.fault}`)} {notice.fault ? <ServerLine text={notice.text} /> : notice.text}
          {notice.fault === 'gone' && (
            <button class="button" data-test="notice-leave" onClick={() => session.closeFile()}>
              {t('files.back')}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}

/** Ctrl+Z and Ctrl+Shift+Z, while nodes are matched; a field has its own. */
function undoes(event: KeyboardEvent, { matching, state }: Session): boolean {
  const key = event.key.toLowerCase();
  if (!(event.ctrlKey || event.metaKey) || event.altKey || (key !== 'z' && key !== 'y')) return false;
  if (event.defaultPrevented || isTyping(event.target) || !matching || !state.matching.open) return false;
  void (key === 'y' || event.shiftKey ? matching.redo() : matching.undo());
  return true;
}

function globalKey(event: KeyboardEvent, session: Session, views: Views, onHelp: () => void): void {
  if (undoes(event, session)) return event.preventDefault();
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector('dialog[open]')) return;
  if (session.state.convert.open && event.key !== '?') {
    if (event.key === 'Escape') session.closeConvert();
    return;
  }
  if (event.key === '/') document.getElementById('search')?.focus();
  else if (event.key === 'n') void session.problems.go(1);
  else if (event.key === 'p') void session.problems.go(-1);
  else if (event.key === ']') session.goAlong(1);
  else if (event.key === '[') session.goAlong(-1);
  else if (event.key === '?') onHelp();
  else if (event.key === 'f') fit(session, views);
  else if (event.key === 'c') session.matching?.toggle();
  else if (event.key === 'C') void session.matching?.act();
  else if (event.key === 'Escape') session.clearSelection();
  else if (event.key.startsWith('Arrow') || /^([wsad+=0-]|Page(Up|Down))$/i.test(event.key)) {
    // Arrow keys work without a click into a graph first.
    const side = session.state.selection?.side ?? 'NPU';
    const view = views[side] ?? views[OTHER[side]];
    if (!view || event.target !== document.body) return;
    view.canvas.focus();
    view.canvas.dispatchEvent(new KeyboardEvent('keydown', { key: event.key, bubbles: true }));
  } else return;
  event.preventDefault();
}
