import { useEffect, useRef } from 'preact/hooks';
import { Breaks } from './breaks';
import { useLook } from './context';
import { RULER, type CompareReport, type PairPage, type PairSummary } from './data';
import { formatCount } from './format';

const BEGUN = ['bug', 'suspicious', 'inherited'] as const;
const RULES = ['error', 'warning', 'pass'] as const;

export const fileNames = (pair: PairSummary) => pair.files.map((path) => path.slice(path.lastIndexOf('/') + 1)).join(', ');

/** Parts of a whole, each at least wide enough to be seen. */
export function Bar({ counts, text }: { counts: [string, number][]; text: string }) {
  return (
    <div class="bar" role="img" aria-label={text}>
      {counts.map(([part, count]) => count > 0 && <i key={part} class={part} style={{ flexGrow: count, minWidth: '6px' }} />)}
    </div>
  );
}

/** What the ruler says of the ops of a pair, and below it what the old rule says of its rows; of a pair without a ruler only that. */
function Verdicts({ pair }: { pair: PairSummary }) {
  const { t } = useLook();
  const rules = { error: formatCount(pair.error), warning: formatCount(pair.warning), pass: formatCount(pair.pass) };
  const judged = RULER.map((verdict): [(typeof RULER)[number], number] => [verdict, pair.ruler?.[verdict] ?? 0]).filter(([, count]) => count > 0);
  if (judged.length === 0) {
    return (
      <>
        <Bar counts={[['error', pair.error], ['warning', pair.warning], ['pass', pair.pass]]} text={t('summary.bar', rules)} />
        <ul class="counts">
          <li class="error"><b>{rules.error}</b> {t('verdict.error')}</li>
          <li class="warning"><b>{rules.warning}</b> {t('verdict.warning')}</li>
          <li class="pass"><b>{rules.pass}</b> {t('verdict.pass')}</li>
          <li class="muted">{t('summary.rows', { count: formatCount(pair.rows) })}</li>
        </ul>
      </>
    );
  }
  return (
    <>
      <h3>{t('ruler.title')}</h3>
      <Bar counts={judged} text={judged.map(([verdict, count]) => `${t(`ruler.${verdict}`)} ${formatCount(count)}`).join(', ')} />
      <dl class="ruler">
        {judged.map(([verdict, count]) => (
          <div key={verdict} class={verdict}><dt><i />{t(`ruler.${verdict}`)}</dt><dd>{formatCount(count)}</dd></div>
        ))}
      </dl>
      <p class="muted" data-test="old-rule">{t('summary.oldRule', { ...rules, rows: formatCount(pair.rows) })}</p>
    </>
  );
}

function Names({ title, names, total }: { title: string; names: string[]; total: number }) {
  const { t } = useLook();
  if (total === 0) return <li>{title}</li>;
  return (
    <li>
      <details>
        <summary>{title}</summary>
        <ul class="names code">{names.map((name) => <li key={name}>{name}</li>)}</ul>
        {total > names.length && <p class="muted">{t('summary.cut', { count: formatCount(names.length) })}</p>}
      </details>
    </li>
  );
}

/** Which pair everything but the verdict is about, and the ways to its neighbours. */
function PairStep({ pairs, at, choose }: { pairs: PairSummary[]; at: number; choose: (pair: number) => void }) {
  const { t } = useLook();
  return (
    <nav class="pair-step" aria-label={t('pairs.title')}>
      <button type="button" class="button" aria-label={t('pairs.previous')} title={t('pairs.previous')} disabled={at === 0} onClick={() => choose(at - 1)}>‹</button>
      <b>{pairs[at]!.label}</b>
      <span class="muted">{t('pairs.at', { at: formatCount(at + 1), count: formatCount(pairs.length) })}</span>
      <button type="button" class="button" aria-label={t('pairs.next')} title={t('pairs.next')} disabled={at + 1 === pairs.length} onClick={() => choose(at + 1)}>›</button>
    </nav>
  );
}

interface SummaryProps {
  pairs: PairSummary[];
  at: number;
  page: PairPage;
  choose: (pair: number) => void;
}

export function Summary({ pairs, at, page, choose }: SummaryProps) {
  const { t } = useLook();
  const pair = pairs[at]!;
  const mode = t(`mode.${pair.mode}` as 'mode.statistics');
  return (
    <section class="card" aria-labelledby="summary-title">
      <div class="head">
        <h2 id="summary-title">{t('summary.title')}</h2>
        {pairs.length > 1 && <PairStep pairs={pairs} at={at} choose={choose} />}
      </div>
      <dl class="sides">
        <div><dt>{t('side.target')}</dt><dd class="code"><Breaks text={pair.target} /></dd></div>
        <div><dt>{t('side.golden')}</dt><dd class="code"><Breaks text={pair.golden} /></dd></div>
      </dl>
      <p class="muted">{pairs.length === 1 && pair.label && `${pair.label} · `}{mode}{pair.fuzzy && ` · ${t('mode.fuzzy')}`}</p>
      <Verdicts pair={pair} />
      <ul key={at} class="ops-counts">
        <li>{t('summary.matched', { count: formatCount(pair.matched_ops) })}</li>
        <Names title={t('summary.targetOnly', { count: formatCount(pair.target_only_ops) })} names={page.target_only} total={pair.target_only_ops} />
        <Names title={t('summary.goldenOnly', { count: formatCount(pair.golden_only_ops) })} names={page.golden_only} total={pair.golden_only_ops} />
      </ul>
      <p class="muted">{t('summary.files', { files: fileNames(pair) })}</p>
    </section>
  );
}

/** All pairs, when there are several, and what could not be compared. */
export function Pairs({ report, chosen, choose }: { report: CompareReport; chosen: number; choose: (pair: number) => void }) {
  const { t } = useLook();
  const { pairs, failures, target_only_dirs: mine, golden_only_dirs: theirs } = report.summary;
  const list = useRef<HTMLDivElement>(null);
  // A pair far down the list is in sight when the report opens.
  useEffect(() => {
    const row = list.current?.querySelector<HTMLElement>('tr.chosen');
    if (row && list.current) list.current.scrollTop = row.offsetTop - list.current.clientHeight / 2;
  }, []);
  const judged = pairs.some((pair) => pair.ruler);
  if (pairs.length < 2 && !failures.length && !mine.length && !theirs.length) return null;
  return (
    <section class="card" aria-labelledby="pairs-title">
      <h2 id="pairs-title">{t('pairs.title')}</h2>
      <p class="muted">{t('pairs.hint')}</p>
      <div ref={list} class="scroll" tabIndex={0} role="region" aria-labelledby="pairs-title">
        <table class="pairs">
          <thead>
            <tr>
              <th>{t('pairs.pair')}</th>
              {judged ? BEGUN.map((verdict) => <th key={verdict} class="number">{t(`judged.${verdict}`)}</th>) : RULES.map((verdict) => <th key={verdict} class="number">{t(`verdict.${verdict}`)}</th>)}
              <th>{t('pairs.first')}</th>
            </tr>
          </thead>
          <tbody>
            {pairs.map((pair, i) => {
              const first = pair.first_difference ?? pair.earlier_input_difference;
              return (
                <tr key={pair.label} class={i === chosen ? 'chosen' : ''}>
                  <td><button type="button" class="text-link" aria-current={i === chosen} onClick={() => choose(i)}>{pair.label || pair.target}</button></td>
                  {judged
                    ? BEGUN.map((verdict) => <td key={verdict} class="number">{pair.ruler ? formatCount(pair.ruler[verdict]) : ''}</td>)
                    : RULES.map((verdict) => <td key={verdict} class="number">{formatCount(pair[verdict])}</td>)}
                  <td class="code">{first ? <Breaks text={first.op} /> : t('pairs.none')}</td>
                </tr>
              );
            })}
            {failures.map(({ label, error }) => <tr key={label}><td>{label}</td><td colSpan={4}>{t('pairs.notCompared', { error })}</td></tr>)}
            {mine.map((dir) => <tr key={dir}><td class="code"><Breaks text={dir} /></td><td colSpan={4}>{t('pairs.noGolden')}</td></tr>)}
            {theirs.map((dir) => <tr key={dir}><td class="code"><Breaks text={dir} /></td><td colSpan={4}>{t('pairs.noTarget')}</td></tr>)}
          </tbody>
        </table>
      </div>
    </section>
  );
}
