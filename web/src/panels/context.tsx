import { createContext } from 'preact';
import { useContext, useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import { translator, type Translate } from '../i18n';
import type { Session } from '../model/session';
import { writePreferences, type State } from '../model/store';
import { fillsOf, makePalette, type Palette } from '../theme/palette';

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('no session above this component');
  return session;
}

/** The part of the state a component shows; it is drawn again only when that part changes. */
export function useApp<T>(select: (state: State) => T): T {
  const session = useSession();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const value = select(session.state);
  const seen = useRef({ select, value });
  seen.current = { select, value };
  useLayoutEffect(() => {
    const check = () => {
      if (!Object.is(seen.current.select(session.state), seen.current.value)) redraw(undefined);
    };
    check(); // the state may have moved between drawing and here
    return session.store.subscribe(check);
  }, [session]);
  return value;
}

export function useText(): Translate {
  const language = useApp((state) => state.language);
  return useMemo(() => translator(language), [language]);
}

export function usePalette(): Palette {
  const theme = useApp((state) => state.theme);
  const colors = useApp((state) => state.config?.colors ?? null);
  return useMemo(() => makePalette(theme, fillsOf(colors)), [theme, colors]);
}

export function browserStorage(): Storage | null {
  try {
    return window.localStorage;
  } catch (error) {
    if (error instanceof DOMException) return null; // forbidden by the browser's settings
    throw error;
  }
}

/** A choice of the user: shown now and remembered for the next visit. */
export function usePrefer(): (change: Partial<State>) => void {
  const session = useSession();
  return (change) => {
    session.store.set(change);
    writePreferences(browserStorage(), change);
  };
}

export function useCopy(): (text: string) => void {
  const session = useSession();
  const t = useText();
  return (text) => {
    const done = () => session.say(t('copy.done'));
    const old = () => session.say(t(copyBySelection(text) ? 'copy.done' : 'copy.failed'));
    // A page that another machine serves over plain HTTP, as TensorBoard does, has no clipboard to write to.
    const { clipboard } = navigator as { clipboard?: Clipboard };
    if (clipboard) clipboard.writeText(text).then(done, old);
    else old();
  };
}

/** The way of browsers before there was a clipboard. */
function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea');
  const before = document.activeElement;
  field.value = text;
  field.style.position = 'fixed';
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}
