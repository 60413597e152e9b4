import type { RunEvent } from '../../api/runs';
import { grouped } from '../../model/format';
import { useText } from '../context';

const MOST = 50;

/** What was found in the run, by step. */
export function RunEvents({ events, onStep }: { events: RunEvent[]; onStep: (step: number) => void }) {
  const t = useText();
  return (
    <ul class="run-events" aria-label={t('run.events')} data-test="run-events">
      {events.slice(0, MOST).map((event, i) => (
        <li key={i}>
          <button class="text-button" onClick={() => onStep(event.step)}>
            {t('run.event', { step: event.step })}
          </button>
          {event.rank >= 0 && <span class="muted">{t('run.eventRank', { rank: event.rank })}</span>}
          <code>{event.series}</code>
          <span lang="en">{event.text}</span>
        </li>
      ))}
      {events.length > MOST && <li class="muted">{t('run.moreEvents', { count: grouped(events.length - MOST) })}</li>}
    </ul>
  );
}
