import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { NodeDetails, Row } from '../api/types';
import type { VerdictOrigin } from '../api/verdict';
import { translateSaid } from '../i18n/said';
import { shortNumber } from '../model/format';
import { largestPercent, percentText } from '../model/findings';
import { magnitude } from '../model/magnitude';
import { originOf } from '../model/problems';
import { disagreement } from '../model/status';
import { buildTable, type ItemTable, type Pair } from '../model/table';
import { sortPairs, toCsv, type Sort } from '../model/table_tools';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { Note } from './states';
import { StatusChip } from './status_dot';

const WORDS = new Set(['dtype', 'shape', 'md5', 'value', 'requires_grad', 'type', 'group_ranks', 'group_id', 'Requires_grad Consistent']);
const FIRST_PAIRS = 100; // more are drawn on demand: optimizer nodes hold thousands

/** What the verdict of the file names, where the selected node is its origin. */
function useOriginItem(): VerdictOrigin | null {
  const session = useSession();
  useApp((state) => state.selection);
  const origin = useApp(originOf);
  return origin?.item && session.problems.atOrigin() ? origin : null;
}

/** Inputs, parameters and outputs; the two sides of an item stand below each other, its differences once beside them. */
export function ItemsTable({ details }: { details: NodeDetails }) {
  const t = useText();
  const [all, setAll] = useState(false);
  const [sort, setSort] = useState<Sort | null>(null);
  const compared = useApp((state) => state.config?.graph_type === 'compare');
  const tips = useApp((state) => state.config?.tool_tip ?? null);
  const side = useApp((state) => state.selection?.side ?? 'NPU');
  const table = useMemo(() => buildTable(details, side), [details, side]);
  const origin = useOriginItem();
  if (details.left_out) return <Note text={t('details.leftOut')} />;
  if (table.pairs.length === 0) return <Note text={t(details.node.children > 0 ? 'details.noItemsModule' : 'details.noItems')} />;
  const sorted = sortPairs(table.pairs, sort);
  const shown = all ? sorted : sorted.slice(0, FIRST_PAIRS);
  const head = { sort, onSort: setSort };
  const judged = side === 'Bench' ? details.partner?.node : details.node;
  const conflict = judged && compared ? disagreement(judged) : null;
  const largest = conflict === 'passes' ? largestPercent(table.pairs.flatMap(({ target }) => target ?? [])) : null;
  return (
    <>
      {conflict && (
        <p class="items-note" data-test="items-note">
          {t(`details.${conflict}`)}
        </p>
      )}
      <table class="items" onCopy={copyFullValues}>
        <thead>
          <tr>
            <th class="item">
              {t('details.item')}
              <Download table={table} node={details.node.name} />
            </th>
            {compared && (
              <Head column="Result" kind="result" {...head}>
                {t('details.result')}
              </Head>
            )}
            {compared && <th class="side">{t('details.side')}</th>}
            {table.valued.map((column) => (
              <Head key={column} column={column} kind={WORDS.has(column) ? '' : 'number'} {...head}>
                {column}
              </Head>
            ))}
            {table.compared.map((column) => (
              <Head key={column} column={column} kind={WORDS.has(column) ? '' : 'number'} hint={tips?.[column] ?? ''} {...head}>
                {column}
              </Head>
            ))}
            {table.rest.map((column) => (
              <th key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        {shown.map((pair, index) => (
          <PairRows key={index} pair={pair} table={table} compared={compared} largest={largest} begins={origin !== null && pair.item === origin.item} percent={origin?.percent ?? null} />
        ))}
      </table>
      {shown.length < table.pairs.length && (
        <button class="button show-all" onClick={() => setAll(true)}>
          {t('details.showAll', { count: table.pairs.length })}
        </button>
      )}
    </>
  );
}

interface HeadProps {
  column: string;
  kind: string;
  hint?: string;
  sort: Sort | null;
  onSort: (sort: Sort | null) => void;
  children: ComponentChildren;
}

/** Sorts by its column: largest first, smallest first, as recorded. */
function Head({ column, kind, hint, sort, onSort, children }: HeadProps) {
  const own = sort?.column === column ? sort : null;
  const next = own ? (own.descending ? { column, descending: false } : null) : { column, descending: true };
  return (
    <th class={kind} title={hint} aria-sort={own ? (own.descending ? 'descending' : 'ascending') : 'none'}>
      <button class="sort" data-test={`sort-${column}`} onClick={() => onSort(next)}>
        {children}
        {own && <Icon name={own.descending ? 'down' : 'up'} />}
      </button>
    </th>
  );
}

function Download({ table, node }: { table: ItemTable; node: string }) {
  const t = useText();
  const save = () => {
    const text = toCsv(table, { target: t('side.NPU'), golden: t('side.Bench') });
    const address = URL.createObjectURL(new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' }));
    const link = document.createElement('a');
    link.href = address;
    link.download = `${node.replace(/[^\w.-]+/g, '_')}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return (
    <button class="icon-button download" data-test="download" title={t('details.download')} aria-label={t('details.download')} onClick={save}>
      <Icon name="download" />
    </button>
  );
}

interface PairProps {
  pair: Pair;
  table: ItemTable;
  compared: boolean;
  begins: boolean; // the verdict of the file names this item
  percent: number | null; // by how much, by the verdict
  largest: number | null; // percentage of the item that differs most, where the rules pass it and the ruler does not
}

function PairRows({ pair, table, compared, largest, begins, percent: told }: PairProps) {
  const t = useText();
  const { valued, rest, compared: differences } = table;
  const { target, golden, result, messages } = pair;
  if (!compared) {
    return (
      <tbody>
        <tr>
          <th scope="row" class="item" title={target?.name ?? ''}>
            {pair.item}
            {begins && <OriginChip />}
          </th>
          <Values row={target} columns={valued} />
          <Values row={target} columns={rest} />
        </tr>
      </tbody>
    );
  }
  const sides = [target && 'NPU', golden && 'Bench'].filter((side) => side !== null) as ('NPU' | 'Bench')[];
  const tone = result ?? (sides.length < 2 ? 'unmatched' : 'none');
  const passes = result === 'pass';
  const own = largest !== null && passes && target ? largestPercent([target]) : null;
  const percent = begins ? told : own;
  const differs = (begins && passes) || (own !== null && own > 0 && own === largest);
  const span = sides.length + (messages.length > 0 ? 1 : 0);
  const said = messages.map((message) => translateSaid(t, message));
  return (
    <tbody class={differs || begins ? `${tone} differs` : tone}>
      {sides.map((side, index) => (
        <tr key={side} class={side}>
          {index === 0 && (
            <>
              <th scope="row" class="item" rowSpan={span} title={(target ?? golden)?.name ?? ''}>
                {pair.item}
                {begins && <OriginChip />}
              </th>
              <td class="result" rowSpan={span}>
                {differs ? <span class="chip differs">{percent === null ? t('status.passDiffers') : t('status.passDiffersBy', { value: percentText(percent) })}</span> : result && <StatusChip status={result} />}
                {sides.length < 2 && <span class="muted one-side">{t(target ? 'details.onlyTarget' : 'details.onlyGolden')}</span>}
              </td>
            </>
          )}
          <td class="side">{t(`side.${side}`)}</td>
          <Values row={side === 'NPU' ? target : golden} columns={valued} />
          {index === 0 && differences.map((column) => <Value key={column} text={target?.values[column]} size={magnitude(column, target?.values[column])} span={sides.length} kind={WORDS.has(column) ? 'difference' : 'number difference'} />)}
          <Values row={side === 'NPU' ? target : golden} columns={rest} />
        </tr>
      ))}
      {messages.length > 0 && (
        <tr class="message">
          <td colSpan={1 + valued.length + differences.length + rest.length} title={said.join('\n')}>
            <span class="message-text">{said.join(' ')}</span>
          </td>
        </tr>
      )}
    </tbody>
  );
}

function OriginChip() {
  const t = useText();
  return (
    <span class="chip origin" data-test="item-origin">
      {t('story.first')}
    </span>
  );
}

function Values({ row, columns }: { row: Row | null; columns: string[] }) {
  return (
    <>
      {columns.map((column) => (
        <Value key={column} text={row?.values[column]} kind={WORDS.has(column) ? '' : 'number'} />
      ))}
    </>
  );
}

const NON_FINITE = /^[+-]?(nan|inf|infinity)%?$/i;

interface ValueProps {
  text: string | undefined;
  span?: number;
  kind?: string;
  size?: number | null; // of a relative error, from 0 to 1
}

function Value({ text, span, kind = '', size = null }: ValueProps) {
  const full = text?.trim() ?? '';
  const empty = full === '' || full === 'null';
  const shown = empty ? '–' : shortNumber(full).replace(/^torch\./, '');
  const classes = [kind, NON_FINITE.test(full) ? 'not-finite' : '', empty ? 'nothing' : '', size ? 'sized' : ''];
  return (
    <td class={classes.filter(Boolean).join(' ')} rowSpan={span} title={empty ? '' : full} data-full={empty ? '' : full} style={size ? { '--size': size } : undefined}>
      {shown}
    </td>
  );
}

/** What is copied are the full values, tab-separated, not the rounded ones on the screen. */
function copyFullValues(event: ClipboardEvent): void {
  const selection = window.getSelection();
  if (!selection || selection.isCollapsed || !(event.currentTarget instanceof HTMLElement)) return;
  const lines: string[] = [];
  for (const row of event.currentTarget.querySelectorAll('tr')) {
    const cells = [...row.querySelectorAll<HTMLElement>('th, td')].filter((cell) => selection.containsNode(cell, true));
    if (cells.length > 0) lines.push(cells.map((cell) => cell.dataset['full'] ?? cell.textContent ?? '').join('\t'));
  }
  if (lines.length === 0) return;
  event.clipboardData?.setData('text/plain', lines.join('\n'));
  event.preventDefault();
}
