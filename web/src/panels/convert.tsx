import { useEffect, useRef } from 'preact/hooks';
import type { Conversion } from '../api/convert';
import type { MessageKey } from '../i18n';
import { isRunning } from '../model/convert_form';
import { useApp, useCopy, useSession, useText } from './context';
import { ConvertFormView } from './convert_form';
import { Icon } from './icons';
import { ServerLine } from './states';

/** Dumps into graphs: a form, then the progress of the conversion, then its result. */
export function ConvertView() {
  const session = useSession();
  const t = useText();
  const convert = useApp((state) => state.convert);
  const root = useApp((state) => (state.files.at === 'ready' ? state.files.value.root : ''));
  const { last, shown } = convert;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <main class="convert">
      <div class="files-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {t('convert.title')}
          </h1>
          {root && <p class="muted">{t('convert.in', { root })}</p>}
        </div>
        <button class="button" data-test="convert-close" onClick={() => session.closeConvert()}>
          <Icon name="back" />
          {t('convert.leave')}
        </button>
      </div>
      {last && shown === last.id ? (
        <Progress conversion={last} />
      ) : (
        <>
          {isRunning(last) && (
            <p class="card convert-note">
              {t('convert.busy')}
              <button class="button" onClick={() => session.convert?.watch()}>
                {t('convert.watch')}
              </button>
            </p>
          )}
          <ConvertFormView />
        </>
      )}
    </main>
  );
}

const STATES: Record<Conversion['state'], MessageKey> = {
  running: 'convert.running',
  cancelling: 'convert.cancelling',
  done: 'convert.done',
  failed: 'convert.failed',
  cancelled: 'convert.cancelled',
};

/** A word as a shell would take it, to be copied. */
function shellWord(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

function Progress({ conversion }: { conversion: Conversion }) {
  const session = useSession();
  const t = useText();
  const copy = useCopy();
  const failed = useApp((state) => state.convert.failed);
  const { state, percent, seconds, command, file, text } = conversion;
  const language = useApp((app) => app.language);
  const [error, log] = language === 'zh' ? [conversion.error_zh, conversion.log_zh] : [conversion.error, conversion.log];
  const running = isRunning(conversion);
  const line = command.map(shellWord).join(' ');
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), [state]);
  return (
    <section class={`card convert-progress ${state}`} aria-label={t('convert.progress')}>
      <div class="convert-state" role="status">
        <strong data-test="convert-state" data-state={state}>
          {t(state === 'done' && error ? 'convert.partial' : STATES[state])}
        </strong>
        {running && <span>{percent} %</span>}
        <span class="muted">{t('convert.seconds', { seconds: seconds < 10 ? seconds.toFixed(1) : Math.round(seconds) })}</span>
      </div>
      {running && <progress max={100} value={percent} aria-label={t('convert.progress')} />}
      {error && (
        <code class="convert-error" role="alert">
          {error}
        </code>
      )}
      {failed && (
        <p class="convert-error" role="alert">
          {t(`fault.${failed.fault}`)} <ServerLine text={failed.error} />
        </p>
      )}
      <div class="convert-ways">
        {running && (
          <button ref={first} class="button" data-test="convert-cancel" disabled={state === 'cancelling'} onClick={() => void session.convert?.cancel()}>
            {t('convert.cancel')}
          </button>
        )}
        {file && (
          <button ref={first} class="button primary" data-test="convert-load" onClick={() => session.openConverted(file)}>
            {t('convert.load')}
          </button>
        )}
        {!running && (
          <button ref={file ? undefined : first} class="button" data-test="convert-again" onClick={() => session.convert?.again()}>
            {t('convert.again')}
          </button>
        )}
        {file && <code class="muted convert-file">{file}</code>}
      </div>
      <div class="convert-command">
        <span class="muted">{t('convert.command')}</span>
        <button class="icon-button" title={t('convert.copyCommand')} aria-label={t('convert.copyCommand')} onClick={() => copy(line)}>
          <Icon name="copy" />
        </button>
        <pre>{line}</pre>
      </div>
      {!running && !file && text && <pre class="convert-text">{text}</pre>}
      {log.length > 0 && (
        <details open={state === 'failed'}>
          <summary>{t('convert.messages', { count: log.length })}</summary>
          <pre class="convert-log" tabIndex={0}>
            {log.join('\n')}
          </pre>
        </details>
      )}
    </section>
  );
}
