import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { OTHER, type Session } from './model/session';
import { useApp, usePalette, usePrefer, useSession, useText } from './panels/context';
import { ConvertView } from './panels/convert';
import { Details } from './panels/details';
import { FilesView } from './panels/files';
import { fit, Graphs, type Views } from './panels/graphs';
import { Help } from './panels/help';
import { MatchingBar } from './panels/matching';
import { Splitter } from './panels/splitter';
import { SummaryBar } from './panels/summary_bar';
import { TopBar } from './panels/top_bar';
import { TrendsView } from './panels/trends';
import { applyPalette } from './theme/palette';

export function App({ views }: { views: Views }) {
  const session = useSession();
  const palette = usePalette();
  const language = useApp((state) => state.language);
  const file = useApp((state) => state.file);
  const trend = useApp((state) => state.trend?.file ?? null);
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
      {converting ? <ConvertView /> : file ? <GraphPage views={views} /> : trend ? <TrendsView file={trend} /> : <FilesView />}
      {help && <Help onClose={() => setHelp(false)} />}
      <Notice />
    </div>
  );
}

function GraphPage({ views }: { views: Views }) {
  const t = useText();
  const height = useApp((state) => state.detailsHeight);
  const ready = useApp((state) => state.graph.at === 'ready');
  const prefer = usePrefer();
  const max = Math.max(200, window.innerHeight - 260);
  return (
    <main class="graph-page">
      <SummaryBar />
      <MatchingBar />
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
    </main>
  );
}

/** A line that goes away by itself, unless it tells of a failure. */
function Notice() {
  const session = useSession();
  const t = useText();
  const notice = useApp((state) => state.notice);
  useEffect(() => {
    if (!notice) return;
    const timer = setTimeout(() => session.store.set({ notice: null }), notice.fault ? 8000 : 1600);
    return () => clearTimeout(timer);
  }, [notice, session]);
  return (
    <div class="notice-area" role="status" aria-live="polite">
      {notice && (
        <div class={`notice ${notice.fault ? 'bad' : ''}`}>
          {notice.fault && t(`fault.${notice.fault}`)} <span lang={notice.fault ? 'en' : undefined}>{notice.text}</span>
        </div>
      )}
    </div>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}

function globalKey(event: KeyboardEvent, session: Session, views: Views, onHelp: () => void): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector('dialog[open]')) return;
  if (session.state.convert.open && event.key !== '?') {
    if (event.key === 'Escape') session.closeConvert();
    return;
  }
  if (event.key === '/') document.getElementById('search')?.focus();
  else if (event.key === 'n') void session.goToProblem(1);
  else if (event.key === 'p') void session.goToProblem(-1);
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
