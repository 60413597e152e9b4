import { useText } from './context';

export function Loading() {
  const t = useText();
  return (
    <div class="state" role="status">
      <span class="spinner" />
      {t('state.loading')}
    </div>
  );
}

export function Failure({ error, retry }: { error: string; retry?: () => void }) {
  const t = useText();
  return (
    <div class="state" role="alert">
      <strong>{t('state.failed')}</strong>
      <span class="state-text">{error || t('state.noServer')}</span>
      {retry && (
        <button class="button" onClick={retry}>
          {t('state.retry')}
        </button>
      )}
    </div>
  );
}

export function Note({ text }: { text: string }) {
  return <div class="state muted">{text}</div>;
}
