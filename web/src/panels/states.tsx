import { translateServerLine } from '../i18n/server_said';
import type { Failed } from '../model/load';
import { useApp, useSession, useText } from './context';

export function Loading() {
  const t = useText();
  return (
    <div class="state" role="status">
      <span class="spinner" />
      {t('state.loading')}
    </div>
  );
}

/** A line of the server, in the reader's language where that is known. */
export function ServerLine({ text }: { text: string }) {
  const language = useApp((state) => state.language);
  const said = translateServerLine(language, text);
  return <span lang={said.lang}>{said.text}</span>;
}

/** What failed in the user's language, the server's line, and the ways on. */
export function Failure({ failed, retry, leave }: { failed: Failed; retry?: () => void; leave?: boolean }) {
  const session = useSession();
  const t = useText();
  return (
    <div class="state" role="alert">
      <strong>{t('state.failed')}</strong>
      <span>{t(`fault.${failed.fault}`)}</span>
      {failed.error && (
        <code class="state-text">
          <ServerLine text={failed.error} />
        </code>
      )}
      <div class="state-ways">
        {retry && (
          <button class="button" onClick={retry}>
            {t('state.retry')}
          </button>
        )}
        {leave && (
          <button class="button" onClick={() => session.closeFile()}>
            {t('files.back')}
          </button>
        )}
      </div>
    </div>
  );
}

export function Note({ text }: { text: string }) {
  return <div class="state muted">{text}</div>;
}
