import { Fragment } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { Breaks } from './breaks';
import { Answer } from './configuration';
import { useLook } from './context';
import { CHECK_COLUMNS, JUDGED, type CheckedFunction, type LaboratoryReport } from './data';
import { formatCount, formatMeasure } from './format';
import { checkedFunctions, graphLink, resultsOf, type FunctionOrder } from './laboratory';
import { translateWhy } from './i18n';
import { SheetTable } from './sheet';
import { Bar } from './summary';

type Laboratory = LaboratoryReport['laboratory'];
const STEP = 50;
const MOST_RESULTS = 30;
const MESSAGE = 3; // column of the calls
const ORDERS = ['badness', 'name', 'results', 'times', 'ulp', 'rtol'] as const satisfies readonly FunctionOrder[];
const COLUMN = { name: CHECK_COLUMNS.indexOf('API Name'), verdict: CHECK_COLUMNS.indexOf('Verdict'), error: CHECK_COLUMNS.indexOf('Error (ulp)'), limit: CHECK_COLUMNS.indexOf('Round-off (ulp)'), element: CHECK_COLUMNS.indexOf('Element Error (ulp)'), elementLimit: CHECK_COLUMNS.indexOf('Element Round-off (ulp)'), known: CHECK_COLUMNS.indexOf('Known'), rule: CHECK_COLUMNS.indexOf('Rule'), rtol: CHECK_COLUMNS.indexOf('Required rtol'), classes: CHECK_COLUMNS.indexOf('Classes') };

/** What acc_check found: the answer, the functions with the histograms of their errors, the calls that do not pass. */
export function LaboratoryAnswer({ report: { laboratory: of } }: { report: LaboratoryReport }) {
  const { t } = useLook();
  const counts = [...JUDGED].reverse().map((verdict): [string, number] => [verdict, of.verdicts[verdict] ?? 0]).filter(([, n]) => n > 0);
  const [wrong, suspicious] = [of.verdicts.wrong ?? 0, of.verdicts.suspicious ?? 0];
  const total = formatCount(of.total);
  const headline = wrong > 0 ? t('lab.wrong', { count: formatCount(wrong), total }) : suspicious > 0 ? t('lab.suspicious', { count: formatCount(suspicious), total }) : of.total === 0 ? t('lab.nothing') : t('lab.right', { total });
  const unknown = of.verdicts.unknown ?? 0;
  const calls = useMemo(() => of.calls.rows.map((row) => row.map((cell, i) => (i === MESSAGE ? translateWhy(t, cell) : cell))), [of, t]);
  const lines = [wrong > 0 && suspicious > 0 && t('lab.suspicious', { count: formatCount(suspicious), total }), unknown > 0 && t('lab.unknown', { count: formatCount(unknown) })].filter((line) => line !== false);
  return (
    <>
      <div class="two">
        <Answer outcome={wrong > 0 ? 'origin' : suspicious + unknown > 0 || of.total === 0 ? 'unknown' : 'equal'} headline={headline} lines={lines}>
          <Bar counts={counts} text={counts.map(([verdict, n]) => `${t(`float64.${verdict}` as 'float64.right')} ${formatCount(n)}`).join(', ')} />
          <ul class="counts">
            {counts.map(([verdict, n]) => <li key={verdict} class={verdict}><b>{formatCount(n)}</b> {t(`float64.${verdict}` as 'float64.right')}</li>)}
          </ul>
        </Answer>
        <Files of={of} />
      </div>
      <Functions of={of} />
      {of.calls.total > 0 && (
        <section class="card" aria-labelledby="calls-title">
          <h2 id="calls-title">{t('lab.calls')}</h2>
          <p class="muted">{t('lab.callsHint')}</p>
          <SheetTable id="calls-title" sheet={{ name: 'calls', columns: ['API name', 'Forward Test Success', 'Backward Test Success', 'Message'], total: of.calls.total, rows: calls }} heads={[t('lab.call'), t('lab.forward'), t('lab.backward'), t('lab.message')]} file={of.files[1] ?? ''} />
        </section>
      )}
    </>
  );
}

function Files({ of }: { of: Laboratory }) {
  const { t } = useLook();
  const told = ['pass', 'warning', 'error', 'SKIP'].filter((status) => of.calls.counts[status]);
  return (
    <section class="card" aria-labelledby="summary-title">
      <h2 id="summary-title">{t('lab.files')}</h2>
      {told.length > 0 && (
        <>
          <p>{t('lab.standards')}</p>
          <ul class="counts">
            {told.map((status) => <li key={status} class={status}><b>{formatCount(of.calls.counts[status]!)}</b> {t(`lab.status.${status}` as 'lab.status.pass')}</li>)}
          </ul>
        </>
      )}
      <p class="muted">{t('summary.files', { files: of.files.join(', ') })}</p>
    </section>
  );
}

function Functions({ of }: { of: Laboratory }) {
  const { t } = useLook();
  const [search, setSearch] = useState('');
  const [order, setOrder] = useState<FunctionOrder>('badness');
  const [most, setMost] = useState(STEP);
  const [open, setOpen] = useState<string[]>([]);
  const [graph, setGraph] = useState(of.graphs[0] ?? '');
  const found = useMemo(() => checkedFunctions(of.functions, search, order), [of, search, order]);
  const head = (by: FunctionOrder, text: string, number = true) => (
    <th aria-sort={order === by ? (by === 'name' ? 'ascending' : 'descending') : 'none'} class={number ? 'number' : undefined}>
      <button type="button" aria-label={t('table.sort', { column: text })} onClick={() => setOrder(by)}>{text}{order === by ? (by === 'name' ? ' ▲' : ' ▼') : ''}</button>
    </th>
  );
  return (
    <section id="rows" class="card" aria-labelledby="functions-title">
      <h2 id="functions-title">{t('lab.functions')}</h2>
      <p class="muted">{t('lab.functionsHint')}</p>
      <div class="tools">
        <input type="search" placeholder={t('sheet.search')} aria-label={t('sheet.search')} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        {of.graphs.length > 0 && (
          <label class="chooser">
            {t('lab.graph')}
            <select value={graph} onChange={(event) => setGraph(event.currentTarget.value)}>
              {of.graphs.map((file) => <option key={file} value={file}>{file}</option>)}
            </select>
          </label>
        )}
      </div>
      <div class="scroll tall" tabIndex={0} role="region" aria-labelledby="functions-title">
        <table class="rows functions">
          <thead>
            <tr>
              {head(ORDERS[1], t('lab.function'), false)}
              {head(ORDERS[0], t('config.verdict'), false)}
              {head(ORDERS[2], t('lab.results'))}
              {head(ORDERS[3], t('lab.times'))}
              {head(ORDERS[4], t('lab.ulp'))}
              {head(ORDERS[5], t('lab.rtol'))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map((each) => {
              const key = `${each.name} ${each.direction} ${each.dtype}`;
              const isOpen = open.includes(key);
              return (
                <Fragment key={key}>
                  <tr class={each.verdict}>
                    <td>
                      <button type="button" class="expander" aria-expanded={isOpen} aria-label={t('lab.open', { name: key })} onClick={() => setOpen(isOpen ? open.filter((other) => other !== key) : [...open, key])}>{isOpen ? '▾' : '▸'}</button>{' '}
                      <span class="code"><Breaks text={each.name} /></span> <span class="muted">{each.direction && t(`lab.${each.direction}` as 'lab.forward')} {each.dtype.replace('torch.', '')}</span>
                    </td>
                    <td><Verdict verdict={each.verdict} /></td>
                    <td class="number">{formatCount(each.results)}</td>
                    <td class="number">{formatMeasure(each.times)}</td>
                    <td class="number">{formatMeasure(each.ulp)}</td>
                    <td class="number">{formatMeasure(each.rtol)}</td>
                  </tr>
                  {isOpen && (
                    <tr class="whole">
                      <td colSpan={ORDERS.length}>
                        <Histogram of={each} />
                        <Results of={of} each={each} graph={graph} />
                      </td>
                    </tr>
                  )}
                </Fragment>
              );
            })}
          </tbody>
        </table>
        {found.length === 0 && <p class="muted empty">{t('table.none')}</p>}
      </div>
      {found.length > most && <button type="button" class="button" onClick={() => setMost(most + 4 * STEP)}>{t('ops.more', { count: Math.min(4 * STEP, found.length - most) })}</button>}
    </section>
  );
}

function Verdict({ verdict }: { verdict: string }) {
  const { t } = useLook();
  const colour = verdict === 'wrong' ? 'error' : verdict === 'suspicious' ? 'warning' : 'none';
  return <span class={`badge ${colour}`}>{(JUDGED as readonly string[]).includes(verdict) ? t(`float64.${verdict}` as 'float64.right') : verdict}</span>;
}

const CLASSES = ['≤ 0.5', '≤ 1', '≤ 2', '≤ 4', '≤ 16', '≤ 256', '> 256'];

/** Elements by magnitude, each bar split by how many ulp they are away. */
function Histogram({ of }: { of: CheckedFunction }) {
  const { t } = useLook();
  if (of.histogram.length === 0) return <p class="muted">{t('lab.noHistogram')}</p>;
  const total = of.histogram.flatMap(([, ...counts]) => counts).reduce((sum, count) => sum + count, 0);
  const used = CLASSES.map((_, i) => of.histogram.some(([, ...counts]) => (counts[i] ?? 0) > 0));
  return (
    <figure class="ulp-histogram">
      <figcaption>{t('lab.histogram', { count: formatCount(total) })}</figcaption>
      <table>
        <thead>
          <tr><th>{t('lab.magnitude')}</th><th><span class="unseen">{t('lab.share')}</span></th>{CLASSES.map((name, i) => used[i] && <th key={name} class="number"><i class={`ulp-${i}`} aria-hidden="true" /> {name}</th>)}</tr>
        </thead>
        <tbody>
          {of.histogram.map(([range, ...counts]) => {
            const all = counts.reduce((sum, count) => sum + count, 0);
            return (
              <tr key={range}>
                <td class="code">{range}</td>
                <td class="ulp-bar"><div aria-hidden="true">{counts.map((count, i) => count > 0 && <i key={i} class={`ulp-${i}`} style={{ width: `${Math.max(1, (100 * count) / all)}%` }} />)}</div></td>
                {counts.map((count, i) => used[i] && <td key={i} class="number">{formatCount(count)}</td>)}
              </tr>
            );
          })}
        </tbody>
      </table>
    </figure>
  );
}

function Results({ of, each, graph }: { of: Laboratory; each: CheckedFunction; graph: string }) {
  const { t } = useLook();
  const rows = resultsOf(of.rows, each);
  if (rows.length === 0) return <p class="muted">{t('lab.notKept')}</p>;
  const cell = (row: string[], column: keyof typeof COLUMN) => row[COLUMN[column]] ?? '';
  return (
    <>
      <table class="lab-results">
        <thead>
          <tr><th>{t('lab.result')}</th><th>{t('config.verdict')}</th><th class="number">{t('lab.error')}</th><th class="number">{t('lab.elementError')}</th><th class="number">{t('lab.rtol')}</th><th>{t('lab.rule')}</th></tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST_RESULTS).map((row) => {
            const link = graph && graphLink(graph, cell(row, 'name'));
            return (
              <tr key={cell(row, 'name')}>
                <td class="code">{link ? <a class="op-link" href={link} title={t('lab.toGraph')}><Breaks text={cell(row, 'name')} /></a> : <Breaks text={cell(row, 'name')} />}</td>
                <td><Verdict verdict={cell(row, 'verdict')} /></td>
                <td class="number">{cell(row, 'error')} <span class="muted">({cell(row, 'limit')})</span></td>
                <td class="number">{cell(row, 'element')} {cell(row, 'elementLimit') && <span class="muted">({cell(row, 'elementLimit')})</span>}</td>
                <td class="number">{cell(row, 'rtol')}</td>
                <td lang="en">{[cell(row, 'rule'), cell(row, 'known'), cell(row, 'classes')].filter(Boolean).join(' · ')}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length > MOST_RESULTS && <p class="muted">{t('lab.more', { count: formatCount(rows.length - MOST_RESULTS), file: of.files[0] ?? '' })}</p>}
    </>
  );
}
