import { useEffect, useMemo, useReducer, useState } from 'preact/hooks';
import type { DumpEntry, FileEntry } from '../../api/types';
import { dumpsOf } from '../../model/compared';
import { FILE_KINDS, FILE_ORDERS, reportNote, shownFiles, type FileKind, type FileOrder, type ListedReport, type ListNote } from '../../model/file_list';
import type { FileNote } from '../../model/file_notes';
import { fileSize, grouped } from '../../model/format';
import { useApp, usePrefer, useSession, useText } from '../context';
import { Dumps } from './dumps';
import { dateText, FileName } from './name';
import { Icon } from '../icons';
import { arrowsChoose } from '../segments';

const FEW = 8; // files that need no filter

interface Lists extends Record<Exclude<FileKind, 'reports' | 'dumps'>, FileEntry[]> {
  reports: ListedReport[];
  dumps: DumpEntry[];
}

/** Graphs, reports, dumps, monitored runs and trends, each with a filter and an order of its own. */
export function FileLists(lists: Lists) {
  const t = useText();
  const wanted = useApp((state) => state.fileKind);
  const prefer = usePrefer();
  const there = FILE_KINDS.filter((each) => lists[each].length > 0);
  const both = there.length > 1;
  const kind = lists[wanted].length > 0 ? wanted : (there[0] ?? 'graphs');
  return (
    <>
      {both && (
        <div class="tabs file-kinds" role="tablist" aria-label={t('files.kinds')} onKeyDown={arrowsChoose}>
          {there.map((each) => (
            <button key={each} id={`files-${each}`} role="tab" aria-selected={kind === each} tabIndex={kind === each ? 0 : -1} aria-controls="files-panel" data-test={`files-${each}`} onClick={() => prefer({ fileKind: each })}>
              {t(`files.${each}`)} <span class="muted">{grouped(lists[each].length)}</span>
            </button>
          ))}
        </div>
      )}
      <div id="files-panel" {...(both ? { role: 'tabpanel', 'aria-labelledby': `files-${kind}` } : {})}>
        {kind === 'dumps' ? <Dumps list={lists.dumps} /> : <FileTable key={kind} kind={kind} list={lists[kind]} />}
      </div>
    </>
  );
}

function FileTable({ kind, list }: { kind: FileKind; list: (FileEntry & Partial<ListedReport>)[] }) {
  const session = useSession();
  const t = useText();
  const language = useApp((state) => state.language);
  const order = useApp((state) => state.fileOrder);
  const prefer = usePrefer();
  const [filter, setFilter] = useState('');
  const asked = useNotes(kind === 'graphs' ? list : []);
  const told = kind === 'graphs' || kind === 'reports';
  const own = useMemo(() => new Map(kind === 'reports' ? list.map((entry) => [entry.file, reportNote(entry as ListedReport)]) : []), [kind, list]);
  const notes = (file: string): ListNote | null | undefined => (kind === 'reports' ? own.get(file) : asked(file));
  const shown = shownFiles(list, filter, told || order !== 'verdict' ? order : 'name', notes);
  const open = (file: string) => (kind === 'graphs' ? void session.open({ file }) : session.openTrend({ file, ...(kind === 'runs' ? { run: {} } : {}) }, `#${new URLSearchParams({ [kind === 'runs' ? 'run' : 'trend']: file })}`));
  const heads: [order: FileOrder, className: string][] = FILE_ORDERS.filter((each) => told || each !== 'verdict').map((each) => [each, each]);
  return (
    <>
      {list.length >= FEW && (
        <label class="file-filter">
          <Icon name="search" />
          <input type="search" data-test="file-filter" aria-label={t('files.filter')} placeholder={t('files.filter')} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          <span class="muted" role="status">
            {filter && t('files.shown', { shown: grouped(shown.length), total: grouped(list.length) })}
          </span>
        </label>
      )}
      <table class="card file-table">
        <colgroup>
          {heads.map(([each, name]) => (
            <col key={each} class={name} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {heads.map(([each, name]) => (
              <th key={each} class={name} aria-sort={order === each ? (each === 'name' ? 'ascending' : 'descending') : 'none'}>
                <button class="sort" data-test={`files-by-${each}`} title={t('files.sort')} onClick={() => prefer({ fileOrder: each })}>
                  {t(`files.by.${each}`)}
                  {order === each && <Icon name="down" />}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((entry) => (
            <tr key={entry.file}>
              <td>
                {kind === 'reports' ? (
                  <a class="file-link" aria-label={t('files.open', { file: entry.file })} href={entry.table ? session.checkPage?.(entry.table) : session.reportPage?.(entry.file)}>
                    <Icon name="file" />
                    <FileName file={entry.file} />
                  </a>
                ) : (
                  <button class="file-link" aria-label={t('files.open', { file: entry.file })} onClick={() => open(entry.file)}>
                    <Icon name="file" />
                    <FileName file={entry.file} />
                  </button>
                )}
              </td>
              {told && (
                <td class="verdict">
                  <Note note={notes(entry.file)} kind={entry.kind} />
                </td>
              )}
              <td>{dateText(entry.mtime, language)}</td>
              <td class="size">{fileSize(entry.size)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <p class="muted file-none">{t('files.noMatch')}</p>}
    </>
  );
}

/** What is known of each file so far; the rest is asked for once the list stands. */
const REPORTS = ['compare', 'doctor', 'curves', 'configuration', 'checkpoints', 'certificate', 'laboratory'] as const;

function useNotes(list: FileEntry[]): (file: string) => FileNote | null | undefined {
  const { notes } = useSession();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => notes.onChange(() => redraw(undefined)), [notes]);
  useEffect(() => {
    const newest = [...list].sort((a, b) => b.mtime - a.mtime);
    const timer = setTimeout(() => notes.ask(newest.map(({ file }) => file)), 50);
    return () => {
      clearTimeout(timer);
      notes.ask([]);
    };
  }, [notes, list]);
  return (file) => notes.of(file);
}

/** What was compared, and what came out. */
function Note({ note, kind }: { note: ListNote | null | undefined; kind?: string | undefined }) {
  const t = useText();
  const language = useApp((state) => state.language);
  const known = REPORTS.find((each) => each === kind);
  if (!note && !known) return null;
  const { config, story } = note ?? {};
  const dumps = config && dumpsOf(config);
  const about = config
    ? [
        dumps ? dumps.short.join(` ${t('compared.with')} `) : t(config.graph_type === 'compare' ? 'files.compared' : 'files.single'),
        t('files.ranks', { count: config.ranks.length }),
        t('files.steps', { count: config.steps.length }),
        config.task,
      ]
    : [known && t(`report.${known}`)];
  return (
    <>
      {story && (
        <span class={`file-verdict ${story.outcome}`} title={story.text[language].join('\n')} data-test="file-verdict">
          {story.text[language][0]}
        </span>
      )}
      <span class="muted file-about" title={dumps?.full.join('\n')}>{about.filter(Boolean).join(' · ')}</span>
    </>
  );
}
