import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { accuracyRows, cellOf, distances, graphAddress, HISTOGRAM, JUDGED, KNOWN, magnitudesOf, NAME, opOf, parseHistogram, ULP_CLASSES, VERDICT, type AccuracyOrder, type Magnitudes } from './accuracy_data';
import { Breaks } from './breaks';
import { useLook } from './context';
import type { AccuracyFunction, AccuracyReport, AccuracyRow } from './data';
import { formatCount, formatMeasure } from './format';
import { Bar } from './summary';

type Accuracy = AccuracyReport['accuracy'];
const PAGE = 50;
const SHOWN = [NAME, 1, VERDICT, 3, 4, 6, 7, 8, 13]; // columns; the others are in the open row
const MEASURES = [3, 4, 6, 7];

/** What acc_check found: the answer, the functions, their results. */
export function AccuracyAnswer({ report: { accuracy: of } }: { report: AccuracyReport }) {
  const [search, setSearch] = useState('');
  const look = (name: string) => {
    setSearch(name);
    document.getElementById('rows')?.scrollIntoView();
  };
  return (
    <>
      <div class="two">
        <Verdict of={of} />
        <About of={of} />
      </div>
      <Functions functions={of.functions} onFunction={look} />
      <Results of={of} search={search} setSearch={setSearch} />
    </>
  );
}

function Verdict({ of }: { of: Accuracy }) {
  const { t } = useLook();
  const counts = JUDGED.map((verdict): [string, number] => [verdict.replace('-', '_'), of.results[verdict] ?? 0]);
  const [wrong, suspicious] = [of.results['wrong'] ?? 0, of.results['suspicious'] ?? 0];
  const total = formatCount(of.total);
  const headline =
    of.total === 0 ? t('accuracy.nothing') : wrong > 0 ? t('accuracy.wrong', { count: formatCount(wrong), total }) : suspicious > 0 ? t('accuracy.suspicious', { count: formatCount(suspicious), total }) : t('accuracy.fine');
  const worst = wrong + suspicious > 0 ? of.rows[0] : undefined;
  const lines = [
    wrong > 0 && suspicious > 0 && t('accuracy.also', { count: formatCount(suspicious) }),
    worst && t('accuracy.worst', { name: cellOf(worst, NAME), times: formatMeasure(worst[0]) }),
    t('accuracy.calls', { failed: formatCount(of.failed), warned: formatCount(of.warned), passed: formatCount(of.passed), skipped: formatCount(of.skipped) }),
  ].filter((line) => typeof line === 'string');
  const there = counts.filter(([, count]) => count > 0);
  const word = (verdict: string) => t(`measured.${verdict}` as 'measured.right');
  return (
    <section id="story" class="card" aria-labelledby="story-title">
      <div class={`verdict-card ${wrong > 0 ? 'origin' : suspicious > 0 || of.total === 0 ? 'unknown' : 'equal'}`} data-test="verdict-card">
        <div class="verdict-head"><h2 id="story-title" data-test="verdict-headline">{headline}</h2></div>
        <ul>{lines.map((line) => <li key={line} data-test="verdict-line"><Breaks text={line} /></li>)}</ul>
      </div>
      <Bar counts={there.map(([verdict, count]) => [`measured ${verdict}`, count])} text={there.map(([verdict, count]) => `${word(verdict)} ${formatCount(count)}`).join(', ')} />
      <ul class="counts">
        {there.map(([verdict, count]) => <li key={verdict} class={`measured ${verdict}`}><b>{formatCount(count)}</b> {word(verdict)}</li>)}
      </ul>
    </section>
  );
}

function About({ of }: { of: Accuracy }) {
  const { t } = useLook();
  return (
    <section class="card" aria-labelledby="summary-title">
      <h2 id="summary-title">{t('accuracy.title')}</h2>
      <dl class="sides">
        <div><dt>{t('accuracy.dump')}</dt><dd class="code"><Breaks text={of.dump} /></dd></div>
        <div><dt>{t('accuracy.device')}</dt><dd class="code">{of.device}</dd></div>
      </dl>
      <p class="muted note">{t('summary.files', { files: of.files.join(', ') })}</p>
    </section>
  );
}

function Measured({ verdict }: { verdict: string }) {
  const { t } = useLook();
  const key = verdict.replace('-', '_');
  return <span class={`badge measured ${key}`}>{t(`measured.${key}` as 'measured.right')}</span>;
}

/** Seven columns, as high as their share on a scale that shows one element of a million. */
function Distances({ histogram }: { histogram: Magnitudes }) {
  const { t } = useLook();
  const counts = distances(histogram);
  const most = Math.log10(1 + Math.max(...counts));
  if (most === 0) return null;
  return (
    <svg class="distances" width="84" height="24" role="img" aria-label={t('accuracy.bar', { counts: counts.map(formatCount).join(', ') })}>
      {counts.map((count, i) => {
        const height = count === 0 ? 0 : Math.max(2, (22 * Math.log10(1 + count)) / most);
        return <rect key={i} class={i < 2 ? 'near' : i < 4 ? 'off' : 'far'} x={i * 12} y={23 - height} width="10" height={height} />;
      })}
      <line class="axis" x1="0" x2="84" y1="23.5" y2="23.5" />
    </svg>
  );
}

/** Elements by the size of the value and by distance. */
function DistanceTable({ histogram }: { histogram: Magnitudes }) {
  const { t } = useLook();
  return (
    <table class="magnitudes">
      <thead>
        <tr>
          <th>{t('accuracy.magnitude')}</th>
          {ULP_CLASSES.map((ulp) => <th key={ulp} class="number">{t('accuracy.upTo', { ulp })}</th>)}
          <th class="number">{t('accuracy.beyond')}</th>
        </tr>
      </thead>
      <tbody>
        {magnitudesOf(histogram).map((magnitude) => (
          <tr key={magnitude}><td class="code">{magnitude}</td>{histogram[magnitude]!.map((count, i) => <td key={i} class="number">{formatCount(count)}</td>)}</tr>
        ))}
      </tbody>
    </table>
  );
}

function Functions({ functions, onFunction }: { functions: AccuracyFunction[]; onFunction: (name: string) => void }) {
  const { t } = useLook();
  const [most, setMost] = useState(PAGE);
  return (
    <section id="functions" class="card" aria-labelledby="functions-title">
      <h2 id="functions-title">{t('accuracy.functions')}</h2>
      <p class="muted">{t('accuracy.functionsHint')}</p>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="functions-title">
        <table class="ops">
          <thead>
            <tr><th>{t('accuracy.function')}</th><th>{t('accuracy.dtype')}</th><th>{t('accuracy.verdict')}</th><th class="number">{t('accuracy.times')}</th><th class="number">{t('accuracy.off')}</th><th>{t('accuracy.histogram')}</th></tr>
          </thead>
          <tbody>
            {functions.slice(0, most).map((of) => (
              <tr key={`${of.name} ${of.dtype}`} class={`measured ${of.verdict.replace('-', '_')}`}>
                <td><button type="button" class="op-link code" onClick={() => onFunction(`${of.name} ${of.dtype}`)}><Breaks text={of.name} /></button></td>
                <td class="code">{of.dtype.replace(/^.*\./, '')}</td>
                <td><Measured verdict={of.verdict} /></td>
                <td class="number">{formatMeasure(of.times)}</td>
                <td class="number">{formatCount(of.off)} / {formatCount(of.results)}</td>
                <td><Distances histogram={of.histogram} /></td>
              </tr>
            ))}
          </tbody>
        </table>
        {functions.length === 0 && <p class="muted empty">{t('table.none')}</p>}
      </div>
      {functions.length > most && <button type="button" class="button" onClick={() => setMost(most + 4 * PAGE)}>{t('ops.more', { count: Math.min(4 * PAGE, functions.length - most) })}</button>}
    </section>
  );
}

function GraphField({ address, setAddress }: { address: string; setAddress: (address: string) => void }) {
  const { t } = useLook();
  const bad = address.trim() !== '' && graphAddress(address, 'x') === '';
  return (
    <div class="graph-field">
      <input type="url" placeholder={t('accuracy.graph')} aria-label={t('accuracy.graph')} aria-invalid={bad} aria-describedby="graph-hint" value={address} onInput={(event) => setAddress(event.currentTarget.value)} />
      <span id="graph-hint" class="muted">{t(bad ? 'accuracy.graphBad' : 'accuracy.graphHint')}</span>
    </div>
  );
}

function ResultName({ name, address }: { name: string; address: string }) {
  const { t } = useLook();
  const href = graphAddress(address, opOf(name));
  if (href === '') return <Breaks text={name} />;
  return <a class="op-link" href={href} target="_blank" rel="noreferrer" aria-label={t('accuracy.inGraph', { name })}><Breaks text={name} /></a>;
}

function Results({ of, search, setSearch }: { of: Accuracy; search: string; setSearch: (text: string) => void }) {
  const { t } = useLook();
  const [verdicts, setVerdicts] = useState<string[]>([...JUDGED]);
  const [order, setOrder] = useState<AccuracyOrder>({ column: -1, descending: false });
  const [address, setAddress] = useState('');
  const [start, setStart] = useState(0);
  const [open, setOpen] = useState<string[]>([]);
  const found = useMemo(() => accuracyRows(of.rows, { search, verdicts, ...order }), [of.rows, search, verdicts, order]);
  useEffect(() => setStart(0), [found]);
  const top = useRef<HTMLDivElement>(null);
  const turn = (to: number) => {
    setStart(to);
    top.current?.scrollTo({ top: 0 });
  };
  // Of figures the largest come first.
  const sortBy = (column: number) => setOrder({ column, descending: order.column === column ? !order.descending : MEASURES.includes(column) });
  const head = (column: number, text: string) => (
    <th key={column} aria-sort={order.column !== column ? 'none' : order.descending ? 'descending' : 'ascending'}>
      <button type="button" aria-label={t('table.sort', { column: text })} onClick={() => sortBy(column)}>{text}{order.column !== column ? '' : order.descending ? ' ▼' : ' ▲'}</button>
    </th>
  );
  const counts = { shown: formatCount(of.rows.length), total: formatCount(of.total), files: of.files.at(-1) ?? '' };
  const toggle = (name: string) => setOpen(open.includes(name) ? open.filter((other) => other !== name) : [...open, name]);
  return (
    <section id="rows" class="card" aria-labelledby="rows-title">
      <h2 id="rows-title">{t('accuracy.results')}</h2>
      <p class="muted">{t(of.rows.length < of.total ? 'table.bounded' : 'table.whole', counts)}</p>
      <div class="tools">
        <input type="search" placeholder={t('sheet.search')} aria-label={t('sheet.search')} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <div class="segments" role="group" aria-label={t('table.verdicts')}>
          {JUDGED.map((verdict) => (
            <button key={verdict} type="button" aria-pressed={verdicts.includes(verdict)} onClick={() => setVerdicts(verdicts.includes(verdict) ? verdicts.filter((v) => v !== verdict) : [...verdicts, verdict])}>
              {t(`measured.${verdict.replace('-', '_')}` as 'measured.right')}
            </button>
          ))}
        </div>
      </div>
      <GraphField address={address} setAddress={setAddress} />
      <div class="scroll tall" tabIndex={0} role="region" aria-labelledby="rows-title" ref={top}>
        <table class="rows">
          <thead>
            <tr>
              {head(-1, t('accuracy.badness'))}
              {SHOWN.map((column) => head(column, of.columns[column] ?? ''))}
              <th><span class="plain-head">{t('accuracy.histogram')}</span></th>
            </tr>
          </thead>
          <tbody>
            {found.slice(start, start + PAGE).map((row) => <ResultLines key={cellOf(row, NAME)} row={row} columns={of.columns} address={address} open={open.includes(cellOf(row, NAME))} toggle={toggle} />)}
          </tbody>
        </table>
        {found.length === 0 && <p class="muted empty">{t('table.none')}</p>}
      </div>
      <div class="pager">
        <button type="button" class="button" disabled={start === 0} onClick={() => turn(start - PAGE)}>{t('table.previous')}</button>
        <span aria-live="polite">{t('table.page', { from: found.length ? start + 1 : 0, to: Math.min(start + PAGE, found.length), total: formatCount(found.length) })}</span>
        <button type="button" class="button" disabled={start + PAGE >= found.length} onClick={() => turn(start + PAGE)}>{t('table.next')}</button>
      </div>
    </section>
  );
}

interface LinesProps {
  row: AccuracyRow;
  columns: string[];
  address: string;
  open: boolean;
  toggle: (name: string) => void;
}

function ResultLines({ row, columns, address, open, toggle }: LinesProps) {
  const { t } = useLook();
  const name = cellOf(row, NAME);
  const histogram = parseHistogram(cellOf(row, HISTOGRAM));
  return (
    <Fragment>
      <tr class={`measured ${cellOf(row, VERDICT).replace('-', '_')}`}>
        <td><button type="button" class="expander" aria-expanded={open} aria-label={`${formatMeasure(row[0])}: ${t('table.open', { row: name })}`} onClick={() => toggle(name)}>{open ? '▾' : '▸'} {formatMeasure(row[0])}</button></td>
        {SHOWN.map((column) => (
          <td key={column} class={MEASURES.includes(column) ? 'code number' : 'code'}>
            {column === VERDICT ? <Measured verdict={cellOf(row, column)} /> : column === NAME ? <ResultName name={name} address={address} /> : cellOf(row, column).replace(/^(torch|mindspore)\./, '')}
          </td>
        ))}
        <td><Distances histogram={histogram} /></td>
      </tr>
      {open && (
        <tr class="whole">
          <td colSpan={SHOWN.length + 2}>
            <dl>{columns.slice(0, HISTOGRAM).map((column, i) => (i !== KNOWN || cellOf(row, i)) && <div key={column}><dt>{column}</dt><dd class="code">{cellOf(row, i)}</dd></div>)}</dl>
            <DistanceTable histogram={histogram} />
          </td>
        </tr>
      )}
    </Fragment>
  );
}
