import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Badge } from './badge';
import { useLook } from './context';
import type { Sheet, SheetCell } from './data';
import { cellText, matchingRows } from './cells';
import { formatCount } from './format';

const PAGE = 50;
const JUDGING = ['level', 'equal', 'check_result']; // columns that say whether the row agrees

interface Props {
  id: string;
  sheet: Sheet;
  heads?: string[]; // instead of the names of the columns
  file: string;
  differs?: (row: SheetCell[]) => boolean; // with it, one may see only such rows
}

/** A sheet of a workbook: as it is there, with a filter. */
export function SheetTable({ id, sheet, heads = sheet.columns, file, differs }: Props) {
  const { t } = useLook();
  const [search, setSearch] = useState('');
  const [only, setOnly] = useState(differs !== undefined && sheet.rows.some(differs));
  const [start, setStart] = useState(0);
  const found = useMemo(() => matchingRows(only && differs ? sheet.rows.filter(differs) : sheet.rows, search), [sheet, search, only]);
  useEffect(() => setStart(0), [found]);
  const top = useRef<HTMLDivElement>(null);
  const turn = (to: number) => {
    setStart(to);
    top.current?.scrollTo({ top: 0 });
  };
  const counts = { shown: formatCount(sheet.rows.length), total: formatCount(sheet.total), files: file };
  return (
    <>
      <p class="muted">{sheet.rows.length < sheet.total ? t('table.bounded', counts) : t('table.whole', counts)}</p>
      <div class="tools">
        <input type="search" placeholder={t('sheet.search')} aria-label={t('sheet.search')} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        {differs && <label class="check"><input type="checkbox" checked={only} onChange={() => setOnly(!only)} /> {t('sheet.onlyDifferent')}</label>}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby={id} ref={top}>
        <table class="sheet">
          <thead>
            <tr>{heads.map((head) => <th key={head}>{head}</th>)}</tr>
          </thead>
          <tbody>
            {found.slice(start, start + PAGE).map((row, i) => (
              <tr key={start + i}>
                {row.map((cell, column) => (
                  <td key={column} class={typeof cell === 'number' ? 'code number' : 'code'}>
                    {JUDGING.includes(sheet.columns[column]!) ? <Judged cell={cell} /> : cellText(cell)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {found.length === 0 && <p class="muted empty">{t('table.none')}</p>}
      </div>
      {found.length > PAGE && (
        <div class="pager">
          <button type="button" class="button" disabled={start === 0} onClick={() => turn(start - PAGE)}>{t('table.previous')}</button>
          <span aria-live="polite">{t('table.page', { from: start + 1, to: Math.min(start + PAGE, found.length), total: formatCount(found.length) })}</span>
          <button type="button" class="button" disabled={start + PAGE >= found.length} onClick={() => turn(start + PAGE)}>{t('table.next')}</button>
        </div>
      )}
    </>
  );
}

function Judged({ cell }: { cell: SheetCell }) {
  if (typeof cell === 'boolean') return <Badge verdict={cell ? 'pass' : 'error'} />;
  return cell === 'error' || cell === 'warning' ? <Badge verdict={cell} /> : <>{cellText(cell)}</>;
}
