import { useState } from 'preact/hooks';
import type { MatchState, Side } from '../api/types';
import type { Session } from '../model/session';
import type { MatchMessage } from '../model/store';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';

/** Matching by hand: select a node on each side, then match them, or part two that are matched. */
export function MatchingBar() {
  const session = useSession();
  const t = useText();
  const panel = useApp((state) => state.matching);
  useApp((state) => state.revision);
  const { matching } = session;
  if (!matching || !panel.open) return null;
  const { state, message, descendants } = panel;
  const { action } = matching;
  const why = state.at === 'ready' ? state.value.refusal : null;
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
            <button class="button primary" data-test="match-act" disabled={!action} title={t('match.keyHint')} onClick={() => void matching.act()}>
              {t(action === 'remove' ? 'match.remove' : 'match.add')}
            </button>
          </>
        )}
        <span class="spacer" />
        {state.at === 'ready' && !why && <Configuration state={state.value} />}
        <button class="icon-button" title={t('help.close')} aria-label={t('help.close')} data-test="match-close" onClick={() => matching.close()}>
          <Icon name="close" />
        </button>
      </div>
      {state.at === 'failed' && <p class="bad" title={state.error}>{t(`fault.${state.fault}`)}</p>}
      {state.at === 'ready' && state.value.problem && (
        <p class="bad" lang="en">
          {state.value.problem}
        </p>
      )}
      <Message message={message} />
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
    <button class={`slot ${name ? '' : 'empty'}`} data-test={`match-${side}`} title={`${name ?? t('match.pick')} – ${t('match.list')}`} onClick={() => listUnmatched(session, side)}>
      <span class="muted">{t(`side.${side}`)}</span>
      <span class="slot-name">
        <bdi>{name ?? t('match.pick')}</bdi>
      </span>
    </button>
  );
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

const GOOD = new Set(['made', 'removed', 'applied', 'saved']);

function Message({ message }: { message: MatchMessage | null }) {
  const t = useText();
  const good = message !== null && GOOD.has(message.kind);
  return (
    <div class="matching-said" role="status" data-test="match-said">
      {message && good && <p>{t(`match.${message.kind as 'made'}`, message.values)}</p>}
      {message && message.kind === 'failed' && (
        <p class="bad">
          {t('state.failed')}: <span lang="en">{message.values['text']}</span>
        </p>
      )}
      {message && !good && message.kind !== 'failed' && (
        <p class="bad" title={String(message.values['text'] ?? '')}>
          {t(`refusal.${message.kind as 'taken'}`)}
        </p>
      )}
      {message && message.skipped.length > 0 && (
        <details>
          <summary>{t('match.left', { count: Number(message.values['left']) })}</summary>
          <ul>
            {message.skipped.map(({ npu, bench, reason }) => (
              <li key={npu + bench}>
                <code>{npu}</code> – <code>{bench}</code>: {t(`refusal.${reason}`)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
