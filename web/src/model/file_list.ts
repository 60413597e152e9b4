import type { FileEntry, FileList, ReportEntry } from '../api/types';
import type { FileNote } from './file_notes';

export const FILE_KINDS = ['graphs', 'reports', 'dumps', 'runs', 'trends'] as const;
export type FileKind = (typeof FILE_KINDS)[number];

/** What is said of a file in a list; of reports, they say it themselves. */
export type ListNote = Partial<Pick<FileNote, 'config'>> & { story: Pick<NonNullable<FileNote['story']>, 'outcome' | 'text'> | null };

/** A report with the table of acc_check that it was made of, whose page of the server has links into its graphs. */
export type ListedReport = Pick<ReportEntry, 'file' | 'size' | 'mtime' | 'kind'> & Partial<ReportEntry> & { table?: string };

/** Reports, and tables of acc_check without one. */
export function listedReports({ reports = [], checks = [] }: Pick<FileList, 'reports' | 'checks'>): ListedReport[] {
  const tableOf = (file: string) => file.replace(/accuracy_checking_report_([^/]*)\.html$/, 'accuracy_checking_float64_$1.csv');
  const tables = new Set(checks.map(({ file }) => file));
  const told = reports.map((report): ListedReport => (tables.delete(tableOf(report.file)) ? { ...report, table: tableOf(report.file) } : report));
  return [...told, ...checks.filter(({ file }) => tables.has(file)).map((entry) => ({ ...entry, kind: 'laboratory', table: entry.file }))];
}

export function reportNote({ outcome, headline }: ListedReport): ListNote | null {
  return headline && outcome ? { story: { outcome, text: { en: [headline.en], zh: [headline.zh] } } } : null;
}

export const FILE_ORDERS = ['name', 'verdict', 'changed', 'size'] as const;
export type FileOrder = (typeof FILE_ORDERS)[number];

const SEVERITY = ['origin', 'unknown', 'round_off', 'equal'];
const LAST = SEVERITY.length;

function severity(note: ListNote | null | undefined): number {
  const at = note?.story ? SEVERITY.indexOf(note.story.outcome) : -1;
  return at < 0 ? LAST : at;
}

/** Those whose names, or what is said of them, have all these words; the worst, the newest or the largest first. */
export function shownFiles<Entry extends FileEntry>(list: Entry[], filter: string, order: FileOrder, noteOf: (file: string) => ListNote | null | undefined): Entry[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = list.filter(({ file }) => {
    const note = noteOf(file);
    const text = [file, note?.config?.target, note?.config?.golden, note?.story?.text.en[0], note?.story?.text.zh[0]].join('\n').toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const byName = (a: FileEntry, b: FileEntry) => a.file.localeCompare(b.file, 'en', { numeric: true });
  const by: Record<FileOrder, (a: FileEntry, b: FileEntry) => number> = {
    name: byName,
    verdict: (a, b) => severity(noteOf(a.file)) - severity(noteOf(b.file)) || byName(a, b),
    changed: (a, b) => b.mtime - a.mtime || byName(a, b),
    size: (a, b) => b.size - a.size || byName(a, b),
  };
  return shown.sort(by[order]);
}
