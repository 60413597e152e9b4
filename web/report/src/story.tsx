import { Breaks } from './breaks';
import type { ComponentChildren } from 'preact';
import { useLook } from './context';
import type { Difference, Divergence, PairPage, PairSummary, Verdict } from './data';
import { formatCount, splitLabel } from './format';
import { translateDetail } from './i18n';
import { splitPlace } from '../../src/theme/headline';

type OnOp = (op: string) => void;
const CHIPS = 8;

const makes = (d: Difference) => d.kind === 'op' || d.kind === 'communication' || d.kind === 'collective';

function Facts({ of }: { of: Difference }) {
  const { t } = useLook();
  const line = of.frame && (of.function ? `${of.frame} (${of.function})` : of.frame);
  const facts: [string, ComponentChildren][] = [
    [t('story.detail'), of.detail && <b>{translateDetail(t, of.detail)}</b>],
    [t('story.item'), of.item && <span class="code">{of.item.replace(/^\./, '')}</span>],
    [t('story.inputs'), makes(of) && of.inputs && translateDetail(t, of.inputs)],
    [t('story.line'), line && <span class="code"><Breaks text={line} /></span>],
    [t('story.module'), of.module && <span class="code"><Breaks text={of.module} /></span>],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

function Part({ of, onOp }: { of: Difference; onOp: OnOp }) {
  return (
    <div class="story-part">
      <p class="story-line"><button type="button" class="op-link code" onClick={() => onOp(of.op)}><Breaks text={of.op} /></button></p>
      <Facts of={of} />
    </div>
  );
}

/** The modules that inherit it, as ways into the table. */
function Modules({ of, onOp }: { of: Divergence; onOp: OnOp }) {
  const { t } = useLook();
  const modules = new Map<string, string>(); // -> the first op of it
  for (const { module, direction, first_op } of of.inherited) {
    const name = `${module || first_op}${direction === 'backward' ? ` · ${t('direction.backward')}` : ''}`;
    if (modules.size < CHIPS && !modules.has(name)) modules.set(name, first_op);
  }
  if (modules.size === 0) return null;
  return (
    <div class="inherited">
      <h3>{t('story.inherited')}</h3>
      <p class="chips">
        {[...modules].map(([name, first]) => <button key={name} type="button" class="chip" onClick={() => onOp(first)}>{name}</button>)}
      </p>
    </div>
  );
}

interface Props {
  pair: PairSummary;
  page: PairPage;
  verdict: Verdict;
  pairs: number;
  divergence: Divergence | undefined;
  onOp: OnOp;
}

/** The answer: that of the whole comparison, then what this pair adds to it. */
export function Story({ pair, page, verdict, pairs, divergence, onOp }: Props) {
  const { t } = useLook();
  const { other_dtype: dtype } = pair;
  return (
    <section id="story" class="card" aria-labelledby="story-title">
      <Card of={verdict} onOp={onOp} />
      {divergence && <Modules of={divergence} onOp={onOp} />}
      {pairs > 1 && <OfPair pair={pair} verdict={verdict} onOp={onOp} />}
      {dtype && <p class="note">{t('story.dtype', { count: formatCount(pair.other_dtype_ops), op: dtype.op, detail: translateDetail(t, dtype.detail) })}</p>}
      <Hints page={page} verdict={verdict} />
    </section>
  );
}

function Card({ of, onOp }: { of: Verdict; onOp: OnOp }) {
  const { t, language } = useLook();
  const [headline = '', ...lines] = of.text[language];
  const [sentence, place] = splitPlace(headline);
  const op = of.outcome === 'origin' ? of.origins[0]?.op : undefined;
  return (
    <div class={`verdict-card ${of.outcome}`} data-test="verdict-card">
      <div class="verdict-head">
        <h2 id="story-title" data-test="verdict-headline">{sentence}<small>{place}</small></h2>
        {op && <button type="button" class="button" onClick={() => onOp(op)}>{t('story.rows')}</button>}
      </div>
      {lines.length > 0 && (
        <dl>
          {lines.map((line) => {
            const [label, text] = splitLabel(line);
            return <div key={line} data-test="verdict-line"><dt>{label}</dt><dd><Breaks text={text} /></dd></div>;
          })}
        </dl>
      )}
    </div>
  );
}

/** Of one of several pairs: only what differs there first, for why is a matter of all of them. */
function OfPair({ pair, verdict, onOp }: { pair: PairSummary; verdict: Verdict; onOp: OnOp }) {
  const { t } = useLook();
  const first = pair.earlier_input_difference ?? pair.first_difference;
  if (!first) return <p class="note">{t('story.pairNone', { label: pair.label })}</p>;
  if (verdict.origins.some(({ op }) => op === first.op)) return null;
  return (
    <>
      <h3>{t('story.pair', { label: pair.label })}</h3>
      <Part of={first} onOp={onOp} />
    </>
  );
}

/** What is known of an op like the one that it begins with, and where the table begins to differ. */
function Hints({ page, verdict }: { page: PairPage; verdict: Verdict }) {
  const { t } = useLook();
  const { kind, op, row } = page.advice;
  if (kind === 'none' || verdict.outcome !== 'origin') return null;
  const special = (kind === 'batch_norm' || kind === 'deterministic') && verdict.origins.some((origin) => origin.op === op);
  return (
    <div class="advice">
      {special && <p>{t(`advice.${kind}`)}</p>}
      <p class="muted">{t('advice.row', { op, row })}</p>
    </div>
  );
}
