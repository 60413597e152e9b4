import type { Translate } from '../i18n';
import type { Strayed } from '../model/strayed';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';

function placesText({ step, rank, microStep }: Strayed, t: Translate): string {
  const parts = [
    [t('select.step'), step],
    [t('select.rank'), rank],
    [t('select.microStep'), microStep],
  ];
  return parts.filter(([, value]) => value !== undefined).map((part) => part.join(' ')).join(t('measure.and'));
}

/** A link that names what the file does not have: what was asked for, what is shown instead, and what there is. */
export function StrayedNote() {
  const session = useSession();
  const t = useText();
  const strayed = useApp((state) => state.strayed);
  const config = useApp((state) => state.config);
  const step = useApp((state) => state.step);
  const rank = useApp((state) => state.rank);
  if (!strayed || !config) return null;
  const choices: [string, number[], (value: number) => void][] = [
    [t('select.step'), strayed.step === undefined ? [] : config.steps, (value) => session.showStep(value)],
    [t('select.rank'), strayed.rank === undefined ? [] : config.ranks, (value) => session.showRank(value)],
  ];
  return (
    <section class="strayed" role="alert" data-test="strayed">
      <span>
        <strong>{t('link.missing', { asked: placesText(strayed, t) })}</strong> {t('link.shown', { shown: placesText({ step, rank }, t) })}
      </span>
      {choices.map(
        ([name, values, choose]) =>
          values.length > 0 && (
            <span key={name} class="strayed-choice">
              {t('link.choose', { name })}
              {values.slice(0, MOST_CHOICES).map((value) => (
                <button key={value} class="count" aria-label={`${name} ${value}`} onClick={() => choose(value)}>
                  {value}
                </button>
              ))}
              {values.length > MOST_CHOICES && '…'}
            </span>
          ),
      )}
      <span class="spacer" />
      <button class="icon-button" title={t('help.close')} aria-label={t('help.close')} onClick={() => session.store.set({ strayed: null })}>
        <Icon name="close" />
      </button>
    </section>
  );
}

const MOST_CHOICES = 16; // all of them are in the lists above
