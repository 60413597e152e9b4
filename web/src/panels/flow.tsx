import { RULINGS, type FlowNeighbour, type Links, type NodeDetails, type Precision, type Row } from '../api/types';
import type { MessageKey } from '../i18n';
import { measureText } from '../model/layers';
import { statusOf } from '../model/status';
import { useApp, useSession, useText } from './context';
import { Failure, Loading } from './states';
import { StatusDot } from './status_dot';

/** Where the values of a node come from and go to, and who it talks to on other ranks. */
export function Flow({ details }: { details: NodeDetails }) {
  const session = useSession();
  const t = useText();
  const links = useApp((state) => state.links);
  const selection = useApp((state) => state.selection);
  if (links.at === 'failed') {
    const node = session.selectedNode();
    return <Failure failed={links} retry={() => node && selection && void session.select(selection.side, node)} />;
  }
  if (links.at !== 'ready') return <Loading />;
  const { value } = links;
  return (
    <div class="flow" data-test="flow">
      <Ends heading={t('flow.from')} links={value} details={details} givers />
      <Middle links={value} details={details} />
      <Ends heading={t('flow.to')} links={value} details={details} givers={false} />
    </div>
  );
}

function Ends({ heading, links, details, givers }: { heading: string; links: Links; details: NodeDetails; givers: boolean }) {
  const t = useText();
  const list = givers ? links.producers : links.consumers;
  const total = givers ? links.producers_total : links.consumers_total;
  return (
    <div class="flow-column">
      <h3>{heading}</h3>
      {list.length === 0 && <p class="muted">{t(links.flow_known ? 'flow.none' : 'flow.unknown')}</p>}
      <ol>
        {list.map((end, index) => (
          <End key={index} end={end} rows={givers ? details.inputs : details.outputs} givers={givers} />
        ))}
      </ol>
      {list.length < total && <p class="muted">{t('flow.more', { count: total - list.length })}</p>}
    </div>
  );
}

function End({ end, rows, givers }: { end: FlowNeighbour; rows: Row[]; givers: boolean }) {
  const session = useSession();
  const t = useText();
  const mode = useApp((state) => state.mode);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const side = useApp((state) => state.selection?.side ?? 'NPU');
  const row = rows[givers ? end.input : end.output];
  return (
    <li>
      <button class="flow-end" title={end.node.name} data-test={givers ? 'producer' : 'consumer'} onClick={() => void session.goTo(side, end.node.name)}>
        <StatusDot status={statusOf(end.node, mode, compared)} />
        <span class="flow-name">{end.node.name}</span>
        <span class="muted">
          {row ? `${itemOf(row.name)} · ` : ''}
          {t('flow.sure', { percent: end.confidence })}
        </span>
      </button>
    </li>
  );
}

/** "input.0" of "Functional.linear.3.forward.input.0". */
function itemOf(name: string): string {
  return /(?:input|output|kwargs?|parameters)\b.*$/.exec(name)?.[0] ?? name;
}

function Middle({ links, details }: { links: Links; details: NodeDetails }) {
  const session = useSession();
  const t = useText();
  const told = details.communication?.nodes_info ?? {};
  // Files of the earlier tool name one partner for each rank.
  const step = session.state.step;
  const partners = links.partners.length > 0 ? links.partners : Object.entries(told).map(([rank, [, name]]) => ({ step, rank: Number(rank), name, gives: false, takes: false }));
  return (
    <div class="flow-column">
      {links.precision && <Figures precision={links.precision} />}
      {partners.length > 0 && (
        <>
          <h3>{t('flow.ranks')}</h3>
          <ol>
            {partners.map((partner, index) => (
              <li key={index}>
                <button class="flow-end" title={partner.name} data-test={`partner-${partner.rank}`} onClick={() => session.goToGraph(partner.step, partner.rank, partner.name)}>
                  <strong>{t('flow.rank', { rank: partner.rank })}</strong>
                  <span class="flow-name">{partner.name}</span>
                  <span class="muted">{partner.gives && partner.takes ? t('flow.both') : partner.gives ? t('flow.gives') : partner.takes ? t('flow.takes') : ''}</span>
                </button>
              </li>
            ))}
          </ol>
        </>
      )}
    </div>
  );
}

const VERDICTS: readonly string[] = RULINGS;
const MEASURES = ['error', 'input_error', 'units', 'cosine', 'max_abs_err'] as const;

/** The size alone would call this rounding, and the verdict knows better: the figure would contradict it. */
function explained({ verdict, units }: Precision): boolean {
  return (verdict === 'bug' || verdict === 'suspicious') && typeof units === 'number' && units < 1;
}

function Figures({ precision }: { precision: Precision }) {
  const t = useText();
  return (
    <>
      <h3>{t('flow.measured')}</h3>
      <dl class="figures">
        <div>
          <dt>{t('figure.verdict')}</dt>
          <dd data-test="verdict">{VERDICTS.includes(precision.verdict) ? t(`verdict.${precision.verdict}` as MessageKey) : precision.verdict}</dd>
        </div>
        {MEASURES.filter((key) => precision[key] !== null && !(key === 'units' && explained(precision))).map((key) => (
          <div key={key}>
            <dt>{t(`figure.${key}`)}</dt>
            <dd>{measureText(precision[key])}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
