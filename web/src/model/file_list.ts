import type { FileEntry } from '../api/types';
import type { FileNote } from './file_notes';

export const FILE_ORDERS = ['name', 'verdict', 'changed', 'size'] as const;
export type FileOrder = (typeof FILE_ORDERS)[number];

const SEVERITY = ['origin', 'unknown', 'round_off', 'equal'];
const LAST = SEVERITY.length;

function severity(note: FileNote | null | undefined): number {
  const at = note?.story ? SEVERITY.indexOf(note.story.outcome) : -1;
  return at < 0 ? LAST : at;
}

/** Those whose names, or what is said of them, have all these words; the worst, the newest or the largest first. */
export function shownFiles(list: FileEntry[], filter: string, order: FileOrder, noteOf: (file: string) => FileNote | null | undefined): FileEntry[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = list.filter(({ file }) => {
    const note = noteOf(file);
    const text = [file, note?.config.target, note?.config.golden, note?.story?.text.en[0], note?.story?.text.zh[0]].join('\n').toLowerCase();
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
