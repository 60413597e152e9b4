import type { Level } from '../api/types';
import type { ColorMode } from '../model/status';
import { useApp, usePrefer, useSession, useText } from './context';
import { Icon } from './icons';
import { Segments } from './segments';

const PRECISIONS = ['error', 'warning', 'unmatched', 'pass', 'none'] as const;
const OVERFLOWS = ['critical', 'high', 'medium'] as const;
const COLOR_MODES: readonly ColorMode[] = ['precision', 'overflow'];

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
  const counts: [Level, number][] =
    mode === 'overflow'
      ? OVERFLOWS.map((level) => [level, summary.overflow?.[level] ?? 0])
      : compared
        ? PRECISIONS.map((level) => [level, summary.npu[level]])
        : [];
  return (
    <section class="summary-bar" aria-label={t('summary.label')}>
      <span class="muted total">{t('summary.nodes', { count: summary.npu.nodes.toLocaleString() })}</span>
      {counts.map(([level, count]) => (
        <button key={level} class={`count ${level}`} disabled={count === 0} title={t('summary.filter', { status: t(`status.${level}`) })} data-test={`count-${level}`} onClick={() => listNodes(session, level)}>
          <span class={`dot ${level}`} />
          <b>{count.toLocaleString()}</b>
          <span>{t(`status.${level}`)}</span>
        </button>
      ))}
      <Findings />
      <div class="summary-ways">
        {compared && config.overflow_check && (
          <Segments label={t('view.colors')} value={mode} values={COLOR_MODES} text={(option) => t(`view.${option}`)} onChange={(option) => session.show({ mode: option })} />
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
  const mode = useApp((state) => state.mode);
  const level = session.problemLevel();
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  if (!level) return compared || mode === 'overflow' ? <span class="clean">{t(mode === 'overflow' ? 'summary.noOverflow' : 'summary.clean')}</span> : null;
  const label = mode === 'overflow' ? t('summary.firstOverflow') : level === 'error' ? t('summary.firstError') : t('summary.firstWarning');
  return (
    <div class="findings">
      <button class="button primary" data-test="first-finding" onClick={() => void session.goToFirstProblem()}>
        <Icon name="target" />
        {label}
      </button>
      <button class="icon-button" title={t('summary.previous')} aria-label={t('summary.previous')} onClick={() => void session.goToProblem(-1)}>
        <Icon name="up" />
      </button>
      <button class="icon-button" title={t('summary.next')} aria-label={t('summary.next')} onClick={() => void session.goToProblem(1)}>
        <Icon name="down" />
      </button>
    </div>
  );
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
