import type { RunEvent, RunFound } from '../../api/runs';
import { grouped } from '../../model/format';
import { useApp, useText } from '../context';

const MOST = 50;

interface Props {
  found: RunFound;
  rank: number; // shown
  onEvent: (event: RunEvent) => void;
}

/** What was found in the run, by step. */
export function RunEvents({ found, rank, onEvent }: Props) {
  const { events, judging = false, unjudged = '', unjudged_zh = '' } = found;
  const t = useText();
  const language = useApp((state) => state.language);
  const said = (event: RunEvent) => (language === 'zh' && event.text_zh ? event.text_zh : event.text);
  // A sentence of the judge begins with the step, which the button has.
  const rest = (text: string) => text.replace(/^step \d+[:：]\s*/, '');
  return (
    <ul class="run-events" aria-label={t('run.events')} data-test="run-events">
      {events.slice(0, MOST).map((event, i) => (
        <li key={i}>
          <button class="text-button" onClick={() => onEvent(event)}>
            {t('run.event', { step: event.step })}
          </button>
          {event.rank >= 0 && <span class={event.rank === rank ? 'muted' : ''}>{t('run.eventRank', { rank: event.rank })}</span>}
          {event.source === 'anomaly' && <code>{event.series}</code>}
          <span lang={event.text_zh && language === 'zh' ? undefined : 'en'}>{rest(said(event))}</span>
        </li>
      ))}
      {events.length > MOST && <li class="muted">{t('run.moreEvents', { count: grouped(events.length - MOST) })}</li>}
      {unjudged && <li class="muted" data-test="run-unjudged">{language === 'zh' ? unjudged_zh : unjudged}</li>}
      {judging && <li class="muted" data-test="run-judging">{t('run.judging')}</li>}
    </ul>
  );
}
