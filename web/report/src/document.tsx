import { useState } from 'preact/hooks';
import { Breaks } from './breaks';
import { Answer } from './configuration';
import { useLook } from './context';
import type { DocumentBlock, DocumentCell, DocumentReport, DocumentTable } from './data';
import { formatCount } from './format';
import { LineChart } from './line_chart';

/** A report as sentences, tables, commands and lines: doctor, curves, checkpoints, certificates. */
export function DocumentAnswer({ report: { document: of } }: { report: DocumentReport }) {
  const { language } = useLook();
  return (
    <>
      <Answer outcome={of.outcome} headline={of.headline[language]} lines={of.lines.map((line) => line[language])} />
      {of.parts.map(({ title, blocks }, i) => (
        <section key={i} class="card" aria-labelledby={`part-${i}`}>
          <h2 id={`part-${i}`}>{title[language]}</h2>
          {blocks.map((block, b) => <Block key={b} block={block} title={`part-${i}`} />)}
        </section>
      ))}
    </>
  );
}

function Block({ block, title }: { block: DocumentBlock; title: string }) {
  const { language } = useLook();
  return (
    <>
      {block.text && <p class="document-text">{block.text[language]}</p>}
      {block.commands && <Commands commands={block.commands} />}
      {block.table && <Table table={block.table} title={title} />}
      {block.chart && <LineChart chart={block.chart} />}
    </>
  );
}

function Commands({ commands }: { commands: string[] }) {
  const { t } = useLook();
  const [copied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard?.writeText(`${commands.join('\n')}\n`).then(
      () => setCopied(true),
      () => undefined,
    );
  return (
    <div class="commands">
      <pre class="code" tabIndex={0}>{commands.join('\n')}</pre>
      <button type="button" class="button" data-test="copy-commands" onClick={copy}>{t(copied ? 'document.copied' : 'document.copy')}</button>
    </div>
  );
}

function Table({ table, title }: { table: DocumentTable; title: string }) {
  const { t, language } = useLook();
  return (
    <>
      <div class="scroll tall" tabIndex={0} role="region" aria-labelledby={title}>
        <table class="sheet document">
          <thead>
            <tr>{table.columns.map((column, i) => <th key={i}>{column[language]}</th>)}</tr>
          </thead>
          <tbody>
            {table.rows.map((row, r) => (
              <tr key={r}>{row.map((cell, c) => <Cell key={c} cell={cell} head={table.columns[c]?.[language] ?? ''} />)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.total > table.rows.length && <p class="muted">{t('document.cut', { shown: formatCount(table.rows.length), total: formatCount(table.total) })}</p>}
    </>
  );
}

const BADGES: Record<string, string> = { good: 'pass', bad: 'error', odd: 'ask' };

function Cell({ cell, head }: { cell: DocumentCell; head: string }) {
  const { language } = useLook();
  const badge = BADGES[cell.tone];
  return (
    <td class={badge ? '' : cell.tone} data-head={head}>
      {cell.lines.map((line, i) => (badge ? <span key={i} class={`badge ${badge}`}>{line[language]}</span> : <div key={i}><Breaks text={line[language]} /></div>))}
      {cell.commands && <Commands commands={cell.commands} />}
    </td>
  );
}
