import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { modulePath } from '../api/node_name';
import { HIT_SORTS, RULINGS, type Level, type SearchHit, type Side } from '../api/types';
import type { MessageKey } from '../i18n';
import { grouped } from '../model/format';
import type { Failed } from '../model/load';
import type { Session } from '../model/session';
import { statusOf } from '../model/status';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { Segments } from './segments';
import { ServerLine } from './states';
import { StatusDot } from './status_dot';

const LEVELS: Level[] = ['error', 'warning', 'unmatched', 'pass', 'none'];
const JUDGED: Level[] = [...RULINGS, 'unjudged'];
const OVERFLOW_LEVELS: Level[] = ['critical', 'high', 'medium'];
const SIDES: readonly Side[] = ['NPU', 'Bench'];

/** What the Tab key stops at, in order. */
function controlsOf(part: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(`${part} :is(button, input, select, [tabindex]):not(:disabled, [tabindex="-1"])`)];
}

/** The keys of the field, and of the list itself. */
export function walkHits(event: KeyboardEvent, session: Session): void {
  const { search } = session.state;
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') void session.finder.move(event.key === 'ArrowDown' ? 1 : -1);
  else if (event.key === 'Enter') takeHit(session, search.active);
  else if (event.key === 'Escape') leaveList(session);
  else if (event.key === 'Tab' && !event.shiftKey && event.currentTarget instanceof HTMLInputElement && search.open) controlsOf('.search-list')[0]?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** Jumps, and on to the keys that walk the tree. */
function takeHit(session: Session, index: number): void {
  const { result } = session.state.search;
  session.finder.take(index);
  if (result.at === 'ready' && result.value.total > 0) focusGraph(session);
}

function leaveList(session: Session): void {
  session.finder.close();
  focusGraph(session);
}

function focusGraph(session: Session): void {
  document.querySelector<HTMLElement>(`canvas[data-side=${session.finder.side}]`)?.focus();
}

/** The nodes that are looked for, beside the graphs: it stays while they are gone through. */
export function SearchDock() {
  const session = useSession();
  const t = useText();
  const search = useApp((state) => state.search);
  const config = useApp((state) => state.config);
  const compared = config?.graph_type === 'compare';
  const { result } = search;
  const found = result.at === 'ready' ? result.value : null;
  const start = found?.start ?? 0;
  const words = found?.words.join('\n') ?? '';
  const marked = useMemo(() => markOf(words ? words.split('\n') : []), [words]);
  const list = useRef<HTMLUListElement>(null);
  const shownFrom = useRef(start);
  // What comes above the rows in view moves them down; at the very top the browser would leave the scroll where it is.
  useLayoutEffect(() => {
    const came = shownFrom.current - start;
    shownFrom.current = start;
    const [ul, first, before] = [list.current, list.current?.children[0], list.current?.children[came]];
    if (came > 0 && ul?.scrollTop === 0 && first && before) ul.scrollTop = before.getBoundingClientRect().top - first.getBoundingClientRect().top;
  }, [start]);
  // The field has an Escape of its own. To the Tab key the list stands right behind the field, wherever it is drawn.
  const onKey = (event: KeyboardEvent) => {
    const controls = controlsOf('.search-list');
    const back = event.key === 'Tab' && event.shiftKey && event.target === controls[0];
    const on = event.key === 'Tab' && !event.shiftKey && event.target === controls.at(-1);
    if (event.key !== 'Escape' && !back && !on) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === 'Escape') return leaveList(session);
    const bar = controlsOf('.top-bar');
    bar[bar.findIndex(({ id }) => id === 'search') + (back ? 0 : 1)]?.focus();
  };
  const scrolled = ({ currentTarget: ul }: { currentTarget: HTMLElement }) => {
    if (ul.scrollTop + 2 * ul.clientHeight > ul.scrollHeight) session.finder.more(1);
    else if (ul.scrollTop < ul.clientHeight) session.finder.more(-1);
  };
  return (
    <aside class="search-list" aria-label={t('search.list')} data-test="search-dock" onKeyDown={onKey}>
      <div class="search-head">
        <strong>{t('search.list')}</strong>
        <span class="muted search-count" role="status">
          {result.at === 'ready' && <Count total={result.value.total} active={search.active} />}
          {result.at === 'busy' && t('state.loading')}
        </span>
        <span class="spacer" />
        <Walk />
        <button class="icon-button" data-test="search-close" title={t('search.close')} aria-label={t('search.close')} onClick={() => leaveList(session)}>
          <Icon name="close" />
        </button>
      </div>
      <div class="search-bar">
        {compared && <Segments label={t('search.side')} value={search.side} values={SIDES} text={(side) => t(`side.${side}`)} onChange={(side) => session.finder.search({ side })} />}
        <label class="check" title={t('search.leavesHint')}>
          <input type="checkbox" data-test="search-leaves" checked={search.leaves} onChange={(event) => session.finder.search({ leaves: event.currentTarget.checked })} />
          {t('search.leaves')}
        </label>
        <Sorts known={config?.verdicts === true} />
      </div>
      {config?.verdicts && <Levels of="view.verdict" levels={JUDGED} />}
      {compared && <Levels of={config?.verdicts ? 'view.rules' : 'view.precision'} levels={LEVELS} />}
      {config?.overflow_check && <Levels of="view.overflow" levels={OVERFLOW_LEVELS} />}
      {result.at === 'failed' && <Refused failed={result} />}
      {result.at === 'ready' && result.value.total === 0 && <p class="search-note muted">{t('search.none')}</p>}
      <ul id="search-hits" ref={list} role="listbox" tabIndex={found && found.total > 0 ? 0 : -1} aria-label={t('search.label')} onScroll={scrolled} onKeyDown={(event) => walkHits(event, session)}>
        {found?.hits.map((hit, index) => <Hit key={hit.name} hit={hit} index={start + index} total={found.total} active={start + index === search.active} marked={marked} />)}
      </ul>
      {(!found || found.total === 0) && <SearchHelp />}
    </aside>
  );
}

/** The order of the list; by error only where the file knows the errors of its nodes. */
function Sorts({ known }: { known: boolean }) {
  const session = useSession();
  const t = useText();
  const sort = useApp((state) => state.search.sort);
  const values = HIT_SORTS.filter((each) => each !== 'error' || known);
  return <Segments label={t('search.sort')} value={values.includes(sort) ? sort : 'execution'} values={values} test="search-sort" text={(each) => t(`search.sort.${each}`)} onChange={(each) => session.finder.search({ sort: each })} />;
}

/** A search that cannot be read says what is wrong with it; anything else, what went wrong. */
function Refused({ failed }: { failed: Failed }) {
  const t = useText();
  return (
    <p class="search-note bad" role="alert" data-test="search-refused" title={failed.error}>
      {failed.fault === 'request' ? <ServerLine text={failed.error} /> : t(`fault.${failed.fault}`)}
    </p>
  );
}

/** To the hit before and behind. */
function Walk() {
  const session = useSession();
  const t = useText();
  const some = useApp(({ search: { result } }) => result.at === 'ready' && result.value.total > 0);
  return (
    <span class="search-walk">
      {([-1, 1] as const).map((direction) => (
        <button
          key={direction}
          class="icon-button"
          data-test={direction < 0 ? 'search-previous' : 'search-next'}
          disabled={!some}
          title={t(direction < 0 ? 'search.previous' : 'search.next')}
          aria-label={t(direction < 0 ? 'search.previous' : 'search.next')}
          onClick={() => void session.finder.walk(direction)}
        >
          <Icon name={direction < 0 ? 'up' : 'down'} />
        </button>
      ))}
    </span>
  );
}

/** What can be typed; a click tries it. */
function SearchHelp() {
  const session = useSession();
  const t = useText();
  const config = useApp((state) => state.config);
  const compared = config?.graph_type === 'compare';
  const examples: (readonly [text: string, what: MessageKey])[] = [
    ['layers.3 down', 'search.help.words'],
    ['layers.*down', 'search.help.wildcards'],
    ['linear -backward', 'search.help.without'],
    ['"a*b"', 'search.help.quoted'],
    ['type:op', 'search.help.type'],
    ['op:linear,*norm*', 'search.help.op'],
    ['dtype:bf16', 'search.help.dtype'],
    ...(config?.verdicts ? ([['verdict:bug,suspicious', 'search.help.verdict'], ['error>10%', 'search.help.error']] as const) : []),
    ...(compared ? ([['result:error', 'search.help.result'], ['side:golden', 'search.help.side']] as const) : []),
    ...((config?.ranks.length ?? 0) > 1 ? ([[`rank:${config!.ranks.at(-1)}`, 'search.help.rank']] as const) : []),
    ...(config?.overflow_check ? ([['overflow:any', 'search.help.overflow']] as const) : []),
  ];
  return (
    <div class="search-help" data-test="search-help">
      <h3>{t('search.help')}</h3>
      <dl>
        {examples.map(([text, what]) => (
          <div key={text}>
            <dt>
              <button onClick={() => session.finder.search({ query: text })}>
                <code>{text}</code>
              </button>
            </dt>
            <dd>{t(what)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** How many there are, and which of them is marked; the list itself says the latter to a screen reader. */
function Count({ total, active }: { total: number; active: number }) {
  const t = useText();
  return (
    <>
      {active >= 0 && <span aria-hidden="true">{grouped(active + 1)} / </span>}
      {t('search.hits', { total: grouped(total) })}
    </>
  );
}

/** Any of the ticked ones will do; none ticked: any at all. */
function Levels({ of, levels }: { of: MessageKey; levels: readonly Level[] }) {
  const session = useSession();
  const t = useText();
  const chosen = useApp((state) => state.search.levels);
  const tick = (level: Level, on: boolean) => session.finder.search({ levels: on ? [...chosen, level] : chosen.filter((each) => each !== level) });
  return (
    <div class="search-levels" role="group" aria-label={t(of)}>
      <span class="muted" aria-hidden="true">
        {t(of)}
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
  hit: SearchHit;
  index: number; // of all hits
  total: number;
  active: boolean;
  marked: RegExp | null;
}

function Hit({ hit, index, total, active, marked }: HitProps) {
  const session = useSession();
  const t = useText();
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const here = useApp((state) => state.selection?.name === hit.name);
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (active) item.current?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  return (
    <li id={`hit-${index}`} ref={item} role="option" aria-selected={active} aria-setsize={total} aria-posinset={index + 1} class={`${active ? 'active' : ''} ${here ? 'here' : ''}`} title={hit.name} onClick={() => takeHit(session, index)}>
      <StatusDot status={statusOf(hit, mode, compared)} />
      <span class="hit">
        <Marked text={hit.name} marked={marked} />
        {hit.module && <span class="hit-module">{t('search.inModule', { module: modulePath(hit.module) })}</span>}
      </span>
    </li>
  );
}

/** Matches any of the words, the longest first. */
function markOf(words: string[]): RegExp | null {
  const longest = [...words].sort((a, b) => b.length - a.length);
  return words.length > 0 ? new RegExp(`(${longest.map((word) => word.replace(/[^\w]/g, '\\$&')).join('|')})`, 'i') : null;
}

/** A long name goes on in the next line behind a dot. */
function breaks(text: string) {
  return text.split(/(?<=\.)/).flatMap((part, index) => (index === 0 ? [part] : [<wbr key={index} />, part]));
}

function Marked({ text, marked }: { text: string; marked: RegExp | null }) {
  const parts = marked ? text.split(marked) : [text];
  return <span class="hit-name">{parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{breaks(part)}</mark> : breaks(part)))}</span>;
}
