import { useLook } from './context';

/** What the command warned of. */
export function Notes({ texts }: { texts: string[] }) {
  const { t } = useLook();
  if (texts.length === 0) return null;
  return (
    <section class="card">
      <h2>{t('notes.title')}</h2>
      <ul>{texts.map((text) => <li key={text}>{text}</li>)}</ul>
    </section>
  );
}
