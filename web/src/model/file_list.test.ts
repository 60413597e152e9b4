import { describe, expect, it, vi } from 'vitest';
import type { Config, FileEntry } from '../api/types';
import type { Outcome, Story, Verdict } from '../api/verdict';
import { listedReports, reportNote, shownFiles, type FileOrder } from './file_list';
import { FileNotes, type FileNote } from './file_notes';

const LIST: FileEntry[] = [
  { file: 'run10/a.vis.db', size: 1, mtime: 30 },
  { file: 'run2/b.vis.db', size: 3, mtime: 10 },
  { file: 'run2/c.vis.db', size: 2, mtime: 20 },
];
const story = (outcome: Outcome, headline: string) => ({ version: 1, outcome, text: { en: [headline], zh: [headline] } }) as unknown as Story;
const NOTES: Record<string, FileNote> = { 'run10/a.vis.db': { config: {} as Config, story: story('equal', 'No difference') }, 'run2/c.vis.db': { config: {} as Config, story: story('origin', 'Origin: rank 2, lm_head') } };
const shown = (filter: string, order: FileOrder) => shownFiles(LIST, filter, order, (file) => NOTES[file]).map(({ file }) => file.at(-8));

describe('the list of files', () => {
  it('is sorted by name as people count, by verdict, date and size', () => {
    expect(shown('', 'name')).toEqual(['b', 'c', 'a']);
    expect(shown('', 'verdict')).toEqual(['c', 'a', 'b']);
    expect(shown('', 'changed')).toEqual(['a', 'c', 'b']);
    expect(shown('', 'size')).toEqual(['b', 'c', 'a']);
  });
  it('is filtered by all words of the name or of what is said', () => {
    expect(shown('RUN2 vis', 'name')).toEqual(['b', 'c']);
    expect(shown('lm_head run2', 'name')).toEqual(['c']);
    expect(shown('nothing', 'name')).toEqual([]);
  });
});

describe('what files are about', () => {
  it('is asked for once, few at a time, and a file that cannot be read does not stop the others', async () => {
    let [running, most] = [0, 0];
    const asked: string[] = [];
    const config = async (file: string) => {
      asked.push(file);
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      if (file === 'b') throw new Error('gone');
      return { graph_type: 'compare' } as Config;
    };
    const verdict = async (): Promise<Verdict> => ({ version: 0 });
    const notes = new FileNotes({ config, verdict });
    const changes = vi.fn();
    notes.onChange(changes);
    notes.ask(['a', 'b', 'c', 'd']);
    notes.ask(['d', 'a', 'b', 'c']);
    await vi.waitFor(() => expect(notes.of('c')).toBeDefined());
    expect(notes.of('b')).toBe(null);
    expect(notes.of('a')).toMatchObject({ story: null });
    expect([[...asked].sort().join(''), changes.mock.calls.length]).toEqual(['abcd', 4]);
    expect(most).toBeLessThanOrEqual(2);
    notes.ask(['a']);
    expect(asked).toHaveLength(4);
    notes.forget();
    expect(notes.of('a')).toBe(undefined);
  });
});

describe('reports in the list', () => {
  const report = { file: 'out/accuracy_checking_report_20261130.html', size: 1, mtime: 2, kind: 'laboratory', outcome: 'equal' as const, headline: { en: 'All', zh: '全部' } };
  const table = { file: 'out/accuracy_checking_float64_20261130.csv', size: 1, mtime: 2 };
  it('stand for the table that they were made of, and a table without one for itself', () => {
    expect(listedReports({ reports: [report], checks: [table] })).toEqual([{ ...report, table: table.file }]);
    expect(listedReports({ reports: [], checks: [table] })).toEqual([{ ...table, kind: 'laboratory', table: table.file }]);
    expect(listedReports({ reports: [{ ...report, file: 'x.html' }] })).toHaveLength(1);
  });
  it('say what they conclude themselves', () => {
    expect(reportNote(report)).toEqual({ story: { outcome: 'equal', text: { en: ['All'], zh: ['全部'] } } });
    expect(reportNote({ ...table, kind: 'laboratory' })).toBeNull();
  });
});
