import { useState } from 'preact/hooks';
import type { MatchState, PartnerSuggestion, Side } from '../api/types';
import type { Translate } from '../i18n';
import type { Load } from '../model/load';
import type { Session } from '../model/session';
import type { MatchMessage } from '../model/store';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { ServerLine } from './states';

/** Matching by hand: select a node on each side, then match them, or part two that are matched. */
export function MatchingBar() {
  const session = useSession();
  const t = useText();
  const panel = useApp((state) => state.matching);
  useApp((state) => state.revision);
  const { matching } = session;
  if (!matching || !panel.open) return null;
  const { state, message, descendants } = panel;
  const { action, depth } = matching;
  const why = state.at === 'ready' ? state.value.refusal : null;
  const [can, cannot] = [action === 'remove' ? 'button' : 'button primary', 'button'];
  return (
    <section class="matching" aria-label={t('match.title')} data-test="matching-bar" onKeyDown={(event) => event.key === 'Escape' && leave(event, () => matching.close())}>
      <div class="matching-line">
        <strong>{t('match.title')}</strong>
        {why ? (
          <span>{t(`refusal.${why}`)}</span>
        ) : (
          <>
            <Slot side="NPU" />
            <Icon name="link" />
            <Slot side="Bench" />
            <label class="check">
              <input type="checkbox" data-test="match-descendants" checked={descendants} onChange={(event) => matching.setDescendants(event.currentTarget.checked)} />
              {t('match.descendants')}
            </label>
            <button class={`match-act ${action ? can : cannot}`} data-test="match-act" disabled={!action} title={t('match.keyHint')} onClick={() => void matching.act()}>
              {t(action === 'remove' ? 'match.remove' : 'match.add')}
            </button>
            <button class="icon-button" data-test="match-undo" disabled={depth.undo === 0} title={t('match.undo')} aria-label={t('match.undo')} onClick={() => void matching.undo()}>
              <Icon name="undo" />
            </button>
            <button class="icon-button" data-test="match-redo" disabled={depth.redo === 0} title={t('match.redo')} aria-label={t('match.redo')} onClick={() => void matching.redo()}>
              <Icon name="redo" />
            </button>
          </>
        )}
        <button class="icon-button" title={t('help.close')} aria-label={t('help.close')} data-test="match-close" onClick={() => matching.close()}>
          <Icon name="close" />
        </button>
      </div>
      {!why && (
        <div class="matching-line">
          <Said message={message} state={state} />
          <Suggestions />
          <span class="spacer" />
          {state.at === 'ready' && <Configuration state={state.value} />}
        </div>
      )}
    </section>
  );
}

function leave(event: KeyboardEvent, close: () => void): void {
  event.preventDefault();
  event.stopPropagation();
  close();
  document.querySelector<HTMLElement>('canvas[data-side=NPU]')?.focus();
}

/** The node of a side; a click lists those that can be taken. */
function Slot({ side }: { side: Side }) {
  const session = useSession();
  const t = useText();
  const name = useApp((state) => state.matching.picked[side]);
  return (
    <span class={`slot ${name ? '' : 'vacant'}`}>
      <button class="slot-pick" data-test={`match-${side}`} title={`${name ?? t('match.pick')} – ${t('match.list')}`} onClick={() => listUnmatched(session, side)}>
        <span class="muted">{t(`side.${side}`)}</span>
        <span class="slot-name">
          <bdi>{name ?? t('match.pick')}</bdi>
        </span>
      </button>
      {name && (
        <button class="slot-drop" data-test={`match-drop-${side}`} title={t('match.drop')} aria-label={`${t('match.drop')}: ${t(`side.${side}`)}`} onClick={() => session.matching?.drop(side)}>
          <Icon name="close" />
        </button>
      )}
    </span>
  );
}

/** Nodes of the other side that look like the one that waits. */
function Suggestions() {
  const session = useSession();
  const t = useText();
  const suggestions = useApp((state) => state.matching.suggestions);
  const said = useApp((state) => state.matching.message !== null && state.matching.message.kind !== 'pending');
  if (suggestions.length === 0 || said) return null;
  return (
    <span class="suggestions" data-test="match-suggestions">
      <span class="muted">{t('match.suggested')}</span>
      {suggestions.map((suggestion) => (
        <button key={suggestion.node.name} class="suggestion" data-test="match-suggestion" title={`${suggestion.node.name} – ${reasonOf(suggestion, t)}`} onClick={() => void session.matching?.take(suggestion)}>
          <span class="slot-name">
            <bdi>{suggestion.node.name}</bdi>
          </span>
          <span class="muted">{Math.round(suggestion.name_likeness * 100)} %</span>
        </button>
      ))}
    </span>
  );
}

function reasonOf({ name_likeness: likeness, same_place: place, same_shapes: shapes }: PartnerSuggestion, t: Translate): string {
  const parts = [t('match.likeness', { percent: Math.round(likeness * 100) })];
  if (place) parts.push(t('match.samePlace'));
  if (shapes !== null) parts.push(t(shapes ? 'match.sameShapes' : 'match.otherShapes'));
  return parts.join(t('measure.and'));
}

function listUnmatched(session: Session, side: Side): void {
  session.finder.search({ query: '', levels: ['unmatched'], side });
  document.getElementById('search')?.focus();
}

function Configuration({ state }: { state: MatchState }) {
  const session = useSession();
  const t = useText();
  const busy = useApp((app) => app.matching.busy);
  const [wanted, setWanted] = useState('');
  const { matching } = session;
  const { configs, made, cancelled } = state;
  const chosen = configs.includes(wanted) ? wanted : (configs[0] ?? '');
  return (
    <>
      <span class="muted" data-test="match-count">
        {t('match.count', { made: made.length, cancelled: cancelled.length })}
      </span>
      {configs.length > 0 && (
        <>
          <select aria-label={t('match.config')} value={chosen} data-test="match-configs" onChange={(event) => setWanted(event.currentTarget.value)}>
            {configs.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <button class="button" data-test="match-apply" disabled={busy} onClick={() => void matching?.apply(chosen)}>
            {t('match.apply')}
          </button>
        </>
      )}
      <button class="button" data-test="match-save" disabled={busy || made.length === 0} title={t('match.saveHint')} onClick={() => void matching?.save()}>
        <Icon name="download" />
        {t('match.save')}
      </button>
    </>
  );
}

const GOOD = new Set(['made', 'removed', 'applied', 'saved', 'undone', 'redone']);

/** One line, whatever is said, so that the graphs below stay where they are. */
function Said({ message, state }: { message: MatchMessage | null; state: Load<MatchState> }) {
  const t = useText();
  const problem = state.at === 'ready' ? state.value.problem : null;
  return (
    <div class="matching-said" role="status" data-test="match-said">
      {state.at === 'failed' && <p class="bad" title={state.error}>{t(`fault.${state.fault}`)}</p>}
      {problem && (
        <p class="bad" title={problem}>
          <ServerLine text={problem} />
        </p>
      )}
      {message && <Message message={message} />}
    </div>
  );
}

function Message({ message: { kind, values, skipped } }: { message: MatchMessage }) {
  const t = useText();
  const text = String(values['text'] ?? '');
  if (kind === 'failed') {
    return (
      <p class="bad" title={text}>
        {t('state.failed')}: <ServerLine text={text} />
      </p>
    );
  }
  if (kind === 'pending') return <p>{t('match.pending', values)}</p>;
  if (!GOOD.has(kind)) return <p class="bad" title={text}>{t(`refusal.${kind as 'taken'}`)}</p>;
  return (
    <>
      <p>{t(`match.${kind as 'made'}`, values)}</p>
      {skipped.length > 0 && (
        <details>
          <summary>{t('match.left', { count: Number(values['left']) })}</summary>
          <ul class="card">
            {skipped.map(({ npu, bench, reason }) => (
              <li key={npu + bench}>
                <code>{npu}</code> – <code>{bench}</code>: {t(`refusal.${reason}`)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
