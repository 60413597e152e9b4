import { RULINGS, type Config, type Level, type Summary } from '../api/types';
import type { MessageKey } from '../i18n';
import { grouped } from '../model/format';
import { originOf, storyOf } from '../model/problems';
import type { ColorMode } from '../model/status';
import { useApp, usePrefer, useSession, useText } from './context';
import { Icon } from './icons';
import { Segments } from './segments';

const PRECISIONS = ['error', 'warning', 'unmatched', 'pass', 'none'] as const;
const OVERFLOWS = ['critical', 'high', 'medium'] as const;
const RULED = [...RULINGS.slice(0, 3), 'unmatched', ...RULINGS.slice(3)] as const;
const FIRST: Partial<Record<Level, MessageKey>> = { error: 'summary.firstError', warning: 'summary.firstWarning', bug: 'summary.firstBug', suspicious: 'summary.firstSuspicious', inherited: 'summary.firstInherited' };

/** The ways to colour a graph: the verdict first, where the file has one. */
function colorModes({ graph_type, verdicts, overflow_check }: Config): ColorMode[] {
  if (graph_type !== 'compare') return [];
  return [...(verdicts ? (['verdict'] as const) : []), 'precision', ...(overflow_check ? (['overflow'] as const) : [])];
}

function countsOf({ npu, overflow, verdicts }: Summary, mode: ColorMode, compared: boolean): [Level, number][] {
  if (mode === 'overflow') return OVERFLOWS.map((level) => [level, overflow?.[level] ?? 0]);
  if (!compared) return [];
  if (mode === 'precision') return PRECISIONS.map((level) => [level, npu[level]]);
  const judged = RULED.map((level): [Level, number] => [level, level === 'unmatched' ? npu.unmatched : (verdicts?.[level] ?? 0)]);
  return judged.filter(([level, count]) => level === 'bug' || count > 0); // there are more of them than of results, and room is short
}


/** What there is to find, how much of it, and the way to the first of it. Also the legend. */
export function SummaryBar() {
  const session = useSession();
  const t = useText();
  const graph = useApp((state) => state.graph);
  const config = useApp((state) => state.config);
  const mode = useApp((state) => state.mode);
  const prefer = usePrefer();
  const sync = useApp((state) => state.sync);
  const follow = useApp((state) => state.follow);
  if (graph.at !== 'ready' || !config) return null;
  const { summary } = graph.value;
  const compared = config.graph_type === 'compare';
  const counts = countsOf(summary, mode, compared);
  const modes = colorModes(config);
  const choose = (option: ColorMode) => {
    if (option !== 'overflow') prefer({ rules: option === 'precision' });
    session.show({ mode: option });
  };
  return (
    <section class="summary-bar" aria-label={t('summary.label')}>
      <span class="muted total">{t('summary.nodes', { count: grouped(summary.npu.nodes) })}</span>
      {counts.map(([level, count]) => (
        <button key={level} class={`count ${level}`} disabled={count === 0} title={t('summary.filter', { status: t(`status.${level}`) })} data-test={`count-${level}`} onClick={() => listNodes(session, level)}>
          <span class={`dot ${level}`} />
          <b>{grouped(count)}</b>
          <span class="count-name">{t(`status.${level}`)}</span>
        </button>
      ))}
      <Findings />
      <div class="summary-ways">
        {modes.length > 1 && (
          <Segments label={t('view.colors')} value={mode} values={modes} test="colors" text={(option) => t(option === 'precision' && config.verdicts ? 'view.rules' : `view.${option}`)} onChange={choose} />
        )}
        {compared && session.matching && <MatchButton />}
        {compared && (
          <>
            <Toggle on={sync} label={t('view.sync')} hint={t('view.syncHint')} onChange={(value) => prefer({ sync: value })} />
            <Toggle on={follow} label={t('view.follow')} hint={t('view.followHint')} onChange={(value) => prefer({ follow: value })} />
          </>
        )}
        <button class="icon-button" title={t('view.collapse')} aria-label={t('view.collapse')} onClick={() => session.collapseAll()}>
          <Icon name="collapse" />
        </button>
      </div>
    </section>
  );
}

function MatchButton() {
  const session = useSession();
  const t = useText();
  const open = useApp((state) => state.matching.open);
  return (
    <button class="button" data-test="matching" aria-pressed={open} title={t('match.hint')} onClick={() => session.matching?.toggle()}>
      <Icon name="link" />
      {t('match.title')}
    </button>
  );
}

export function listNodes(session: ReturnType<typeof useSession>, level: Level): void {
  session.finder.search({ query: '', levels: [level], side: 'NPU' });
  document.getElementById('search')?.focus();
}

function Findings() {
  const session = useSession();
  const t = useText();
  useApp((state) => state.graph);
  useApp((state) => state.mode);
  const origin = useApp((state) => originOf(state) !== null);
  const level = session.problems.level();
  return (
    <>
      {(origin || level) && (
        <div class="findings">
          <button class="button primary" data-test="first-finding" onClick={() => void session.problems.first()}>
            <Icon name="target" />
            {t(origin || !level ? 'story.first' : (FIRST[level] ?? 'summary.firstOverflow'))}
          </button>
          <button class="icon-button" title={t('summary.previous')} aria-label={t('summary.previous')} onClick={() => void session.problems.go(-1)}>
            <Icon name="up" />
          </button>
          <button class="icon-button" data-test="next-finding" title={t('summary.next')} aria-label={t('summary.next')} onClick={() => void session.problems.go(1)}>
            <Icon name="down" />
          </button>
        </div>
      )}
      <Conclusion found={level !== null} />
    </>
  );
}

/** The answer for the whole file; of a file without one, that this graph has nothing marked. */
function Conclusion({ found }: { found: boolean }) {
  const t = useText();
  const story = useApp(storyOf);
  const waiting = useApp((state) => state.verdict.at === 'busy');
  const language = useApp((state) => state.language);
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const verdicts = useApp((state) => (state.graph.at === 'ready' ? state.graph.value.summary.verdicts : null));
  const card = useApp((state) => state.selection === null);
  if (story && card) return null; // which has its words
  if (story) {
    const headline = story.text[language][0] ?? '';
    return (
      <span class={`conclusion ${story.outcome}`} data-test="conclusion" title={headline}>
        {headline}
      </span>
    );
  }
  if (found || waiting || (!compared && mode !== 'overflow')) return null;
  const begin = (verdicts?.bug ?? 0) + (verdicts?.suspicious ?? 0);
  if (mode === 'precision' && begin > 0) return <span class="clean">{t('summary.rulesClean', { count: grouped(begin) })}</span>;
  return <span class="clean">{t(mode === 'overflow' ? 'summary.noOverflow' : mode === 'verdict' ? 'summary.judgedClean' : 'summary.clean')}</span>;
}

interface ToggleProps {
  on: boolean;
  label: string;
  hint: string;
  onChange: (value: boolean) => void;
}

function Toggle({ on, label, hint, onChange }: ToggleProps) {
  return (
    <label class="toggle" title={hint}>
      <input type="checkbox" role="switch" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span class="knob" aria-hidden="true" />
      {label}
    </label>
  );
}
