import { Breaks } from './breaks';
import { Fragment, type ComponentChildren } from 'preact';
import { useLook } from './context';
import { KINDS, type Difference, type Divergence, type Origin, type PairPage, type PairSummary } from './data';
import { formatCount } from './format';
import { translateDetail, type Translate } from './i18n';
import { replayLine } from './replay';

type OnOp = (op: string) => void;
const CHIPS = 8;
const LINES = 8;

const makes = (d: Difference) => d.kind === 'op' || d.kind === 'communication' || d.kind === 'collective';
const kindText = (t: Translate, d: Difference) => (KINDS.includes(d.kind) ? t(`kind.${d.kind}`) : '');

/** A line of advice by what is known of the difference. */
function adviceFor(d: Difference): string {
  if (d.kind === 'argument' || d.kind === 'grows' || d.kind === 'shape') return d.kind;
  if (d.kind === 'missing_op' || d.kind === 'extra_op') return 'ops';
  const side = /\.(backward|parameters_grad)(\.|$)/.test(d.op) ? 'backward' : 'forward';
  return `${side}_${makes(d) ? 'output' : 'input'}`;
}

function unitsText(t: Translate, d: Difference): string {
  const { units } = d as Partial<Origin>;
  if (units === 'inf') return t('story.beyond');
  if (typeof units !== 'number' || units <= 1) return '';
  return t('story.units', { units: units < 1000 ? units.toPrecision(2) : units.toExponential(1) });
}

function Facts({ of }: { of: Difference }) {
  const { t } = useLook();
  const line = of.frame && (of.function ? `${of.frame} (${of.function})` : of.frame);
  const units = unitsText(t, of);
  const { replay } = of as Partial<Origin>;
  const facts: [string, ComponentChildren][] = [
    [t('story.detail'), of.detail && <><b>{translateDetail(t, of.detail)}</b>{units && <span class="muted"> · {units}</span>}</>],
    [t('story.item'), of.item && <span class="code">{of.item.replace(/^\./, '')}</span>],
    [t('story.inputs'), makes(of) && of.inputs && translateDetail(t, of.inputs)],
    [t('story.line'), line && <span class="code"><Breaks text={line} /></span>],
    [t('story.module'), of.module && <span class="code"><Breaks text={of.module} /></span>],
    [t('story.replay'), replay && replayLine(t, replay)],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

function Part({ of, bad, onOp, where = '' }: { of: Difference; bad?: boolean; onOp: OnOp; where?: string }) {
  const { t } = useLook();
  return (
    <div class={bad ? 'story-part bad' : 'story-part'}>
      <p class="story-line">{where && <b>{where} </b>}<button type="button" class="op-link code" onClick={() => onOp(of.op)}><Breaks text={of.op} /></button> <span>{kindText(t, of)}</span></p>
      <Facts of={of} />
    </div>
  );
}

/** Over all ranks: who made it, and how it went on. */
function Whole({ of, onOp }: { of: Divergence & { creator: Origin }; onOp: OnOp }) {
  const { t } = useLook();
  const rank = (o: Origin) => (o.ranks.length ? t('story.rank', { ranks: o.ranks.slice(0, LINES).join(', ') }) : '');
  const where = [of.step === null ? '' : t('story.step', { step: of.step }), rank(of.creator)].filter(Boolean).join(', ');
  const modules = new Map<string, { ops: number; first: string }>();
  for (const { module, direction, ops, first_op } of of.inherited) {
    const name = `${module || first_op}${direction === 'backward' ? ` · ${t('direction.backward')}` : ''}`;
    const known = modules.get(name);
    if (known) known.ops += ops;
    else if (modules.size < CHIPS) modules.set(name, { ops, first: first_op });
  }
  return (
    <>
      <Part of={of.creator} bad onOp={onOp} where={where && `${where}:`} />
      {of.others.slice(0, LINES).map((other) => (
        <div key={`${other.rank}${other.op}`} class="apart"><p class="then">{t('story.apart')}</p><Part of={other} onOp={onOp} where={rank(other)} /></div>
      ))}
      {(of.infected.ops > 0 || of.inherited_by.length > 0) && (
        <div class="inherited">
          <h3>{t('story.inherited')}</h3>
          <ul>
            {of.inherited_by.slice(0, LINES).map(({ rank: to, from, through }) => (
              <li key={to}>{through ? <>{t('story.handover', { rank: to, from: from.join(', ') })} <button type="button" class="op-link code" onClick={() => onOp(through)}><Breaks text={through} /></button></> : t('story.noCall', { rank: to })}</li>
            ))}
          </ul>
          {of.infected.ops > 0 && <p>{t('story.infected', { ops: formatCount(of.infected.ops), forward: formatCount(of.infected.forward), backward: formatCount(of.infected.backward) })}</p>}
          <p class="chips">
            {[...modules].map(([name, { ops, first }]) => <button key={name} type="button" class="chip" onClick={() => onOp(first)}>{name} <b>{formatCount(ops)}</b></button>)}
          </p>
        </div>
      )}
    </>
  );
}

export function Story({ pair, page, pairs, divergence, onOp }: { pair: PairSummary; page: PairPage; pairs: number; divergence: Divergence | undefined; onOp: OnOp }) {
  const { t } = useLook();
  const { first_difference: first, earlier_input_difference: source, other_dtype: dtype } = pair;
  const creator = divergence?.creator;
  const alone = creator && pairs === 1;
  // Of this pair, where it is another one than that of all ranks.
  const own = [source, first].filter((d): d is Difference => d !== null && !alone && d.op !== creator?.op);
  const lead = (alone ? creator : null) ?? first ?? source;
  // What is known of the first difference says more than the first row that did not pass.
  const advice = !lead || (makes(lead) && lead.op === page.advice.op) ? page.advice.kind : adviceFor(lead);
  return (
    <section id="story" class="card" aria-labelledby="story-title">
      <h2 id="story-title">{t('story.title')}</h2>
      {creator && <Whole of={{ ...divergence, creator }} onOp={onOp} />}
      {creator && own.length > 0 && <h3>{t('story.pair', { label: pair.label })}</h3>}
      {own.map((one, i) => (
        <Fragment key={one.op}>
          {i > 0 && <p class="then">{t('story.later')}</p>}
          <Part of={one} bad={!creator} onOp={onOp} />
        </Fragment>
      ))}
      {!alone && !first && !source && <p class={pair.matched_ops > 0 ? 'verdict good' : 'verdict'}>{t(pair.matched_ops > 0 ? 'story.none' : 'story.unknown')}</p>}
      {dtype && <p class="note">{t('story.dtype', { count: formatCount(pair.other_dtype_ops), op: dtype.op, detail: translateDetail(t, dtype.detail) })}</p>}
      {advice !== 'none' && (
        <div class="advice">
          <h3>{t('advice.title')}</h3>
          <p>{t(`advice.${advice}` as 'advice.forward_input')}</p>
          {page.advice.kind !== 'none' && <p class="muted">{t('advice.row', { op: page.advice.op, row: page.advice.row })}</p>}
        </div>
      )}
    </section>
  );
}
