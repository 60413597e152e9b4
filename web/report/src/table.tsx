import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Badge } from './badge';
import { useLook } from './context';
import type { PairPage, PairSummary } from './data';
import { formatCount } from './format';
import { mainColumns, selectRows } from './rows';
import { fileNames } from './summary';

const PAGE = 50;
const VERDICTS = ['error', 'warning', 'pass'] as const;

interface Props {
  pair: PairSummary;
  page: PairPage;
  search: string;
  setSearch: (text: string) => void;
}

export function Rows({ pair, page, search, setSearch }: Props) {
  const { t } = useLook();
  const { columns, rows, total, stacks } = page.table;
  const [verdicts, setVerdicts] = useState<string[]>([...VERDICTS]);
  const [order, setOrder] = useState({ column: -2, descending: false });
  const [all, setAll] = useState(false);
  const [start, setStart] = useState(0);
  const [open, setOpen] = useState<number[]>([]);
  const found = useMemo(() => selectRows(rows, columns, { search, verdicts, ...order }), [rows, columns, search, verdicts, order]);
  useEffect(() => setStart(0), [found]);
  const shown = useMemo(() => (all ? columns.map((_, i) => i) : mainColumns(columns)), [all, columns]);
  const result = columns.indexOf('Result');
  const ruler = columns.indexOf('Ruler Verdict');
  const rowClass = (cells: string[]) => (['bug', 'suspicious'].includes(cells[ruler] ?? '') ? cells[ruler] : cells[result]) ?? '';
  const part = found.slice(start, start + PAGE);
  const top = useRef<HTMLDivElement>(null);
  const turn = (to: number) => {
    setStart(to);
    top.current?.scrollTo({ top: 0 });
  };
  const sortBy = (column: number) => setOrder({ column, descending: order.column === column ? !order.descending : false });
  const arrow = (column: number) => (order.column !== column ? '' : order.descending ? ' ▼' : ' ▲');
  const sorted = (column: number) => (order.column !== column ? 'none' : order.descending ? 'descending' : 'ascending');
  const files = fileNames(pair);

  return (
    <section id="rows" class="card" aria-labelledby="rows-title">
      <h2 id="rows-title">{t('table.title')}</h2>
      <p class="muted">{rows.length < total ? t('table.bounded', { shown: formatCount(rows.length), total: formatCount(total), files }) : t('table.whole', { total: formatCount(total), files })}</p>
      <div class="tools">
        <input type="search" placeholder={t('table.search')} aria-label={t('table.search')} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <div class="segments" role="group" aria-label={t('table.verdicts')}>
          {VERDICTS.map((verdict) => (
            <button key={verdict} type="button" aria-pressed={verdicts.includes(verdict)} onClick={() => setVerdicts(verdicts.includes(verdict) ? verdicts.filter((v) => v !== verdict) : [...verdicts, verdict])}>
              {t(`verdict.${verdict}`)}
            </button>
          ))}
        </div>
        <label class="check"><input type="checkbox" checked={all} onChange={() => setAll(!all)} /> {t('table.columns')}</label>
      </div>
      <div class="scroll tall" tabIndex={0} role="region" aria-labelledby="rows-title" ref={top}>
        <table class="rows">
          <thead>
            <tr>
              <th aria-sort={sorted(-1)}><button type="button" aria-label={t('table.sort', { column: t('table.row') })} onClick={() => sortBy(-1)}>{t('table.row')}{arrow(-1)}</button></th>
              {shown.map((i) => (
                <th key={i} aria-sort={sorted(i)}><button type="button" aria-label={t('table.sort', { column: columns[i]! })} onClick={() => sortBy(i)}>{columns[i]}{arrow(i)}</button></th>
              ))}
            </tr>
          </thead>
          <tbody>
            {part.map((row) => {
              const [index, , stack, cells] = row;
              const isOpen = open.includes(index);
              const number = index + 2; // as a spreadsheet counts, below the header
              return (
                <Fragment key={index}>
                  <tr class={rowClass(cells)}>
                    <td><button type="button" class="expander" aria-expanded={isOpen} aria-label={t('table.open', { row: number })} onClick={() => setOpen(isOpen ? open.filter((i) => i !== index) : [...open, index])}>{isOpen ? '▾' : '▸'} {number}</button></td>
                    {shown.map((i) => (
                      <td key={i} class="code">{i === result || i === ruler ? <Badge verdict={cells[i] ?? ''} /> : <span class={columns[i] === 'Err_message' ? 'message' : 'cell'} lang={columns[i] === 'Err_message' ? 'en' : undefined}>{cells[i] === '[]' && columns[i] === 'Err_message' ? '' : cells[i]}</span>}</td>
                    ))}
                  </tr>
                  {isOpen && (
                    <tr class="whole">
                      <td colSpan={shown.length + 1}>
                        <dl>{columns.map((name, i) => <div key={name}><dt>{name}</dt><dd class="code">{cells[i]}</dd></div>)}</dl>
                        {stack >= 0 && (
                          <>
                            <h4>{t('table.stack')}</h4>
                            <pre tabIndex={0}>{stacks[stack]?.join('\n')}</pre>
                          </>
                        )}
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
      <div class="pager">
        <button type="button" class="button" disabled={start === 0} onClick={() => turn(start - PAGE)}>{t('table.previous')}</button>
        <span aria-live="polite">{t('table.page', { from: found.length ? start + 1 : 0, to: Math.min(start + PAGE, found.length), total: formatCount(found.length) })}</span>
        <button type="button" class="button" disabled={start + PAGE >= found.length} onClick={() => turn(start + PAGE)}>{t('table.next')}</button>
      </div>
    </section>
  );
}
