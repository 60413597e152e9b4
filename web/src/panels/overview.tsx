import type { Finding, FindingKind } from '../api/types';
import { shownFindings } from '../model/findings';
import { grouped } from '../model/format';
import { storyOf } from '../model/problems';
import { Magnitudes, OddValues } from './activations';
import { useApp, useSession, useText } from './context';
import { FindingLine } from './finding_line';
import { LayerStrip } from './layer_strip';
import { RankMatrix } from './rank_matrix';
import { StatusDot } from './status_dot';
import { listNodes } from './summary_bar';
import { VerdictCard } from './verdict';

/** Before any node: what is wrong with the whole run, what was found in this graph, how the error runs through the layers, how bad each rank is at each step. */
export function Overview() {
  const t = useText();
  const single = useApp((state) => state.config?.graph_type === 'build');
  return (
    <section class="overview" aria-label={t('overview.label')} data-test="overview">
      <div class="overview-main">
        <VerdictCard />
        <Found />
        {single && <OddValues />}
      </div>
      <div class="overview-side">
        {single && <Magnitudes />}
        <LayerStrip />
        <RankMatrix />
      </div>
    </section>
  );
}

function Found() {
  const session = useSession();
  const t = useText();
  const findings = useApp((state) => state.findings);
  const graph = useApp((state) => state.graph);
  const judged = useApp((state) => storyOf(state) !== null);
  if (findings.at !== 'ready' || graph.at !== 'ready') return null;
  const { list, more } = shownFindings(findings.value.findings, findings.value.total, judged, session.problems.originHere()?.name);
  const { npu, bench, first_error: error, first_warning: warning, first_overflow: overflow } = graph.value.summary;
  // Files of the earlier tool have no findings: what the nodes themselves say takes their place.
  const plain = (kind: FindingKind, name: string): Finding => ({ kind, side: 'NPU', name, text: '', precision: null });
  const own = [
    error ? plain('first_error', error.name) : warning && plain('first_warning', warning.name),
    overflow && !judged && plain('first_overflow', overflow.name),
  ];
  const all = list.length > 0 ? list : own.filter((finding) => !!finding);
  const alone = bench ? npu.unmatched : 0;
  const single = bench === null;
  if ((judged || single) && all.length === 0 && alone === 0) return null;
  return (
    <div class="overview-part found">
      <h2>{t(judged ? 'overview.marked' : 'overview.found')}</h2>
      {all.length === 0 && alone === 0 && <p class="muted">{t('overview.nothing')}</p>}
      <ol>
        {all.map((finding, index) => (
          <FindingLine key={index} finding={finding} />
        ))}
        {alone > 0 && (
          <li>
            <button class="finding" data-test="finding-unmatched" onClick={() => listNodes(session, 'unmatched')}>
              <StatusDot status="unmatched" />
              <strong>{t('overview.unmatched', { count: grouped(alone) })}</strong>
            </button>
          </li>
        )}
      </ol>
      {!judged && findings.value.inherited > 0 && <p class="muted">{t('overview.inherited', { count: grouped(findings.value.inherited) })}</p>}
      {more > 0 && <p class="muted">{t('overview.more', { count: grouped(more) })}</p>}
    </div>
  );
}
