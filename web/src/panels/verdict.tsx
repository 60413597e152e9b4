import { storyOf } from '../model/problems';
import { splitLabel } from '../model/verdict_lines';
import { markdownOf, splitPlace } from '../theme/headline';
import { useApp, useCopy, useSession, useText } from './context';
import { Icon } from './icons';
import { ServerLine } from './states';
import { OriginBars } from './value_bars';

/** What is wrong with the whole run, in the words of the command line, before anything about one graph. */
export function VerdictCard() {
  const session = useSession();
  const t = useText();
  const copy = useCopy();
  const language = useApp((state) => state.language);
  const story = useApp(storyOf);
  const failed = useApp((state) => (state.verdict.at === 'failed' ? state.verdict : null));
  if (failed) {
    return (
      <p class="muted" role="alert">
        {t('story.failed')} <code><ServerLine text={failed.error} /></code>
      </p>
    );
  }
  if (!story) return null;
  const [headline = '', ...lines] = story.text[language];
  const [sentence, place] = splitPlace(headline);
  return (
    <section class={`verdict-card ${story.outcome}`} aria-label={t('story.label')} data-test="verdict-card">
      <div class="verdict-head">
        <h2 data-test="verdict-headline">{sentence}<small>{place}</small></h2>
        <button class="icon-button" title={t('story.copy')} aria-label={t('story.copy')} data-test="verdict-copy" onClick={() => copy(markdownOf(story.text[language]))}>
          <Icon name="copy" />
        </button>
        {story.outcome === 'origin' && (
          <button class="button primary" data-test="verdict-go" onClick={() => void session.problems.goToOrigin()}>
            <Icon name="target" />
            {t('story.go')}
          </button>
        )}
      </div>
      {story.compared && <OriginBars origin={story.origins[0]} />}
      {lines.length > 0 && (
        <dl>
          {lines.map((line, index) => {
            const [label, text] = splitLabel(line);
            return (
              <div key={index} data-test="verdict-line">
                <dt>{label}</dt>
                <dd>{text}</dd>
              </div>
            );
          })}
        </dl>
      )}
    </section>
  );
}
