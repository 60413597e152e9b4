import { useEffect, useRef } from 'preact/hooks';
import type { Level, NodeSummary, Side } from '../api/types';
import type { Session } from '../model/session';
import { statusOf } from '../model/status';
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
      if (event.target instanceof Node && !box.current?.contains(event.target)) session.closeSearch();
    };
    window.addEventListener('pointerdown', away);
    return () => window.removeEventListener('pointerdown', away);
  }, [session]);
  // Tab moves on; the list must not stay and cover what is focused next.
  const left = (event: FocusEvent) => {
    if (event.relatedTarget instanceof Node && !box.current?.contains(event.relatedTarget)) session.closeSearch();
  };
  // The field has an Escape of its own; from the list it leads to the graph.
  const escape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    session.closeSearch();
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
          session.openSearch();
        }}
        onInput={(event) => session.search({ query: event.currentTarget.value })}
        onKeyDown={(event) => onKey(event, session)}
      />
      <kbd>/</kbd>
      {open && <SearchList />}
    </div>
  );
}

function onKey(event: KeyboardEvent, session: Session): void {
  const { search } = session.state;
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') session.moveInSearch(event.key === 'ArrowDown' ? 1 : -1);
  else if (event.key === 'Enter') takeHit(session, search.active);
  else if (event.key === 'Escape') {
    session.closeSearch();
    (event.currentTarget as HTMLElement).blur();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

/** Jumps, and on to the keys that walk the tree. */
function takeHit(session: Session, index: number): void {
  session.takeHit(index);
  const { open, side } = session.state.search;
  if (!open) document.querySelector<HTMLElement>(`canvas[data-side=${side}]`)?.focus();
}

function SearchList() {
  const session = useSession();
  const t = useText();
  const search = useApp((state) => state.search);
  const config = useApp((state) => state.config);
  const compared = config?.graph_type === 'compare';
  const levels = [...(compared ? LEVELS : []), ...(config?.overflow_check ? OVERFLOW_LEVELS : [])];
  const { result } = search;
  return (
    <div class="search-list card">
      <div class="search-bar">
        {compared && <Segments label={t('search.side')} value={search.side} values={SIDES} text={(side) => t(`side.${side}`)} onChange={(side) => session.search({ side })} />}
        {levels.length > 0 && (
          <select aria-label={t('search.level')} value={search.level} onChange={(event) => session.search({ level: event.currentTarget.value as Level | '' })}>
            <option value="">{t('search.anyLevel')}</option>
            {levels.map((level) => (
              <option key={level} value={level}>
                {t(`status.${level}`)}
              </option>
            ))}
          </select>
        )}
        <label class="check" title={t('search.leavesHint')}>
          <input type="checkbox" data-test="search-leaves" checked={search.leaves} onChange={(event) => session.search({ leaves: event.currentTarget.checked })} />
          {t('search.leaves')}
        </label>
        <span class="muted search-count" role="status">
          {result.at === 'ready' && countText(result.value, t)}
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
              onClick={() => session.walkHits(direction)}
            >
              <Icon name={direction < 0 ? 'up' : 'down'} />
            </button>
          ))}
        </span>
      </div>
      {result.at === 'failed' && <p class="search-note bad" title={result.error}>{t(`fault.${result.fault}`)}</p>}
      {result.at === 'ready' && result.value.total === 0 && <p class="search-note muted">{t('search.none')}</p>}
      <ul id="search-hits" role="listbox" aria-label={t('search.label')}>
        {result.at === 'ready' && result.value.hits.map((hit, index) => <Hit key={hit.name} hit={hit} index={index} active={index === search.active} query={search.query.trim()} />)}
      </ul>
    </div>
  );
}

function countText(found: { total: number; hits: NodeSummary[] }, t: ReturnType<typeof useText>): string {
  const shown = found.hits.length;
  return shown < found.total ? t('search.hitsCut', { shown, total: found.total }) : t('search.hits', { total: found.total });
}

interface HitProps {
  hit: NodeSummary;
  index: number;
  active: boolean;
  query: string;
}

function Hit({ hit, index, active, query }: HitProps) {
  const session = useSession();
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (active) item.current?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  return (
    <li id={`hit-${index}`} ref={item} role="option" aria-selected={active} class={active ? 'active' : ''} title={hit.name} onClick={() => takeHit(session, index)}>
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
