import type { ComponentChildren } from 'preact';
import { useLook } from './context';
import type { Difference, PairPage, PairSummary } from './data';
import { formatCount } from './format';
import { translateDetail } from './i18n';

const named = (d: Difference) => (d.item.startsWith('.') ? d.item.slice(1) : d.item);

function adviceFor(d: Difference): string {
  const side = /\.(backward|parameters_grad)(\.|$)/.test(d.op) ? 'backward' : 'forward';
  return `${side}_${d.kind === 'op' || d.kind === 'communication' ? 'output' : 'input'}`;
}

function Facts({ of }: { of: Difference }) {
  const { t } = useLook();
  const line = of.frame && (of.function ? `${of.frame} (${of.function})` : of.frame);
  const facts: [string, ComponentChildren][] = [
    [t('story.detail'), <b>{translateDetail(t, of.detail)}</b>],
    [t('story.item'), <span class="code">{named(of)}</span>],
    [t('story.inputs'), (of.kind === 'op' || of.kind === 'communication') && of.inputs && translateDetail(t, of.inputs)],
    [t('story.line'), line && <span class="code">{line}</span>],
    [t('story.module'), of.module && <span class="code">{of.module}</span>],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

function Part({ of, text, bad, onOp }: { of: Difference; text: string; bad?: boolean; onOp: (op: string) => void }) {
  return (
    <div class={bad ? 'story-part bad' : 'story-part'}>
      <p class="story-line"><button type="button" class="op-link code" onClick={() => onOp(of.op)}>{of.op}</button> <span>{text}</span></p>
      <Facts of={of} />
    </div>
  );
}

export function Story({ pair, page, onOp }: { pair: PairSummary; page: PairPage; onOp: (op: string) => void }) {
  const { t } = useLook();
  const { first_difference: first, earlier_input_difference: source, other_dtype: dtype } = pair;
  const lead = first ?? source;
  // What is known of the first difference says more than the first row that did not pass.
  const advice = !lead || lead.op === page.advice.op ? page.advice.kind : adviceFor(lead);
  const own = first && (first.kind === 'op' || first.kind === 'communication') ? first : null;
  return (
    <section id="story" class="card" aria-labelledby="story-title">
      <h2 id="story-title">{t('story.title')}</h2>
      {source?.kind === 'input' && <Part of={source} text={t('story.input')} bad={!own} onOp={onOp} />}
      {source?.kind === 'grows' && (
        <>
          <p>{t('story.grows')}</p>
          <Part of={source} text="" onOp={onOp} />
        </>
      )}
      {own && source && <p class="then">{t('story.later')}</p>}
      {own && <Part of={own} text={t(own.kind === 'op' ? 'story.creates' : 'story.communication')} bad onOp={onOp} />}
      {!own && !source && <p class={pair.matched_ops > 0 ? 'verdict good' : 'verdict'}>{t(pair.matched_ops > 0 ? 'story.none' : 'story.unknown')}</p>}
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
