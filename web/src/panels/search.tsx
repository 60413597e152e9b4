import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Level, NodeSummary, Side } from '../api/types';
import type { Session } from '../model/session';
import { statusOf, type ColorMode } from '../model/status';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { Segments } from './segments';
import { StatusDot } from './status_dot';

const LEVELS: Level[] = ['error', 'warning', 'unmatched', 'pass', 'none'];
const OVERFLOW_LEVELS: Level[] = ['critical', 'high', 'medium'];
const SIDES: readonly Side[] = ['NPU', 'Bench'];

/** A combo box: the field stays focused, the list below is walked with the arrow keys. */
export function SearchBox() {
  const session = useSession();
  const t = useText();
  const search = useApp((state) => state.search);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const away = (event: PointerEvent) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) session.finder.close();
    };
    window.addEventListener('pointerdown', away);
    return () => window.removeEventListener('pointerdown', away);
  }, [session]);
  // Tab moves on; the list must not stay and cover what is focused next.
  const left = (event: FocusEvent) => {
    if (event.relatedTarget instanceof Node && !box.current?.contains(event.relatedTarget)) session.finder.close();
  };
  // The field has an Escape of its own; from the list it leads to the graph.
  const escape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    session.finder.close();
    document.querySelector<HTMLElement>(`canvas[data-side=${search.side}]`)?.focus();
  };
  const open = search.open;
  const active = open && search.result.at === 'ready' && search.active >= 0 ? `hit-${search.active}` : undefined;
  return (
    <div class="search" ref={box} onFocusOut={left} onKeyDown={escape}>
      <Icon name="search" />
      <input
        id="search"
        type="search"
        role="combobox"
        aria-label={t('search.label')}
        aria-expanded={open}
        aria-controls="search-hits"
        aria-activedescendant={active}
        list={undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={t('search.placeholder')}
        value={search.query}
        onFocus={(event) => {
          event.currentTarget.select();
          session.finder.open();
        }}
        onInput={(event) => session.finder.search({ query: event.currentTarget.value })}
        onKeyDown={(event) => onKey(event, session)}
      />
      <kbd>/</kbd>
      {open && <SearchList />}
    </div>
  );
}

function onKey(event: KeyboardEvent, session: Session): void {
  const { search } = session.state;
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') void session.finder.move(event.key === 'ArrowDown' ? 1 : -1);
  else if (event.key === 'Enter') takeHit(session, search.active);
  else if (event.key === 'Escape') {
    session.finder.close();
    (event.currentTarget as HTMLElement).blur();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

/** Jumps, and on to the keys that walk the tree. */
function takeHit(session: Session, index: number): void {
  session.finder.take(index);
  const { open, side } = session.state.search;
  if (!open) document.querySelector<HTMLElement>(`canvas[data-side=${side}]`)?.focus();
}

function SearchList() {
  const session = useSession();
  const t = useText();
  const search = useApp((state) => state.search);
  const config = useApp((state) => state.config);
  const compared = config?.graph_type === 'compare';
  const { result } = search;
  const found = result.at === 'ready' ? result.value : null;
  const start = found?.start ?? 0;
  const list = useRef<HTMLUListElement>(null);
  const shownFrom = useRef(start);
  // What comes above the rows in view moves them down; at the very top the browser would leave the scroll where it is.
  useLayoutEffect(() => {
    const came = shownFrom.current - start;
    shownFrom.current = start;
    const [ul, first, before] = [list.current, list.current?.children[0], list.current?.children[came]];
    if (came > 0 && ul?.scrollTop === 0 && first && before) ul.scrollTop = before.getBoundingClientRect().top - first.getBoundingClientRect().top;
  }, [start]);
  const scrolled = ({ currentTarget: ul }: { currentTarget: HTMLElement }) => {
    if (ul.scrollTop + 2 * ul.clientHeight > ul.scrollHeight) session.finder.more(1);
    else if (ul.scrollTop < ul.clientHeight) session.finder.more(-1);
  };
  return (
    <div class="search-list card">
      <div class="search-bar">
        {compared && <Segments label={t('search.side')} value={search.side} values={SIDES} text={(side) => t(`side.${side}`)} onChange={(side) => session.finder.search({ side })} />}
        <label class="check" title={t('search.leavesHint')}>
          <input type="checkbox" data-test="search-leaves" checked={search.leaves} onChange={(event) => session.finder.search({ leaves: event.currentTarget.checked })} />
          {t('search.leaves')}
        </label>
        <span class="muted search-count" role="status">
          {result.at === 'ready' && <Count total={result.value.total} active={search.active} />}
          {result.at === 'busy' && t('state.loading')}
        </span>
        <span class="search-walk">
          {([-1, 1] as const).map((direction) => (
            <button
              key={direction}
              class="icon-button"
              data-test={direction < 0 ? 'search-previous' : 'search-next'}
              disabled={result.at !== 'ready' || result.value.hits.length === 0}
              title={t(direction < 0 ? 'search.previous' : 'search.next')}
              aria-label={t(direction < 0 ? 'search.previous' : 'search.next')}
              onClick={() => void session.finder.walk(direction)}
            >
              <Icon name={direction < 0 ? 'up' : 'down'} />
            </button>
          ))}
        </span>
      </div>
      {compared && <Levels of="precision" levels={LEVELS} />}
      {config?.overflow_check && <Levels of="overflow" levels={OVERFLOW_LEVELS} />}
      {result.at === 'failed' && <p class="search-note bad" title={result.error}>{t(`fault.${result.fault}`)}</p>}
      {result.at === 'ready' && result.value.total === 0 && <p class="search-note muted">{t('search.none')}</p>}
      <ul id="search-hits" ref={list} role="listbox" aria-label={t('search.label')} onScroll={scrolled}>
        {found?.hits.map((hit, index) => <Hit key={hit.name} hit={hit} index={start + index} total={found.total} active={start + index === search.active} query={search.query.trim()} />)}
      </ul>
    </div>
  );
}

/** How many there are, and which of them is marked; the list itself says the latter to a screen reader. */
function Count({ total, active }: { total: number; active: number }) {
  const t = useText();
  return (
    <>
      {active >= 0 && <span aria-hidden="true">{(active + 1).toLocaleString()} / </span>}
      {t('search.hits', { total: total.toLocaleString() })}
    </>
  );
}

/** Any of the ticked ones will do; none ticked: any at all. */
function Levels({ of, levels }: { of: ColorMode; levels: readonly Level[] }) {
  const session = useSession();
  const t = useText();
  const chosen = useApp((state) => state.search.levels);
  const tick = (level: Level, on: boolean) => session.finder.search({ levels: on ? [...chosen, level] : chosen.filter((each) => each !== level) });
  return (
    <div class="search-levels" role="group" aria-label={t(`view.${of}`)}>
      <span class="muted" aria-hidden="true">
        {t(`view.${of}`)}
      </span>
      {levels.map((level) => (
        <label key={level} class="check">
          <input type="checkbox" data-test={`search-level-${level}`} checked={chosen.includes(level)} onChange={(event) => tick(level, event.currentTarget.checked)} />
          <span class={`dot ${level}`} aria-hidden="true" />
          {t(`status.${level}`)}
        </label>
      ))}
    </div>
  );
}

interface HitProps {
  hit: NodeSummary;
  index: number; // of all hits
  total: number;
  active: boolean;
  query: string;
}

function Hit({ hit, index, total, active, query }: HitProps) {
  const session = useSession();
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (active) item.current?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  return (
    <li id={`hit-${index}`} ref={item} role="option" aria-selected={active} aria-setsize={total} aria-posinset={index + 1} class={active ? 'active' : ''} title={hit.name} onClick={() => takeHit(session, index)}>
      <StatusDot status={statusOf(hit, mode, compared)} />
      <Marked text={hit.name} part={query} />
    </li>
  );
}

function Marked({ text, part }: { text: string; part: string }) {
  const at = part ? text.toLowerCase().indexOf(part.toLowerCase()) : -1;
  if (at < 0) return <span>{text}</span>;
  return (
    <span>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + part.length)}</mark>
      {text.slice(at + part.length)}
    </span>
  );
}
