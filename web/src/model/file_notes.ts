import type { Api } from '../api/client';
import type { Config } from '../api/types';
import type { Story } from '../api/verdict';

/** What a file is about: what was compared, and what the tool says of it. */
export interface FileNote {
  config: Config;
  story: Story | null;
}

const AT_ONCE = 2; // each opens a file; the page that is opened meanwhile must not wait for them

/** Reads what the files of the list are about, the first ones first; each once. */
export class FileNotes {
  private readonly notes = new Map<string, FileNote | null>(); // null: it cannot be read
  private readonly waiting = new Set<string>();
  private readonly reading = new Set<string>();
  private readonly listeners = new Set<() => void>();
  private running = 0;
  private epoch = 0;

  constructor(private readonly api: Pick<Api, 'config' | 'verdict'>) {}

  of(file: string): FileNote | null | undefined {
    return this.notes.get(file);
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The files may have changed. */
  forget(): void {
    this.epoch++;
    this.notes.clear();
    this.waiting.clear();
  }

  /** In this order; what was asked for before and is not among them has to wait for the next time. */
  ask(files: string[]): void {
    this.waiting.clear();
    for (const file of files) if (!this.notes.has(file) && !this.reading.has(file)) this.waiting.add(file);
    while (this.running < AT_ONCE && this.waiting.size > 0) void this.work();
  }

  private async work(): Promise<void> {
    this.running++;
    for (let [file] = this.waiting; file !== undefined; [file] = this.waiting) {
      this.waiting.delete(file);
      const { epoch } = this;
      this.reading.add(file);
      const note = await this.read(file);
      this.reading.delete(file);
      if (epoch !== this.epoch) continue;
      this.notes.set(file, note);
      for (const listener of [...this.listeners]) listener();
    }
    this.running--;
  }

  private async read(file: string): Promise<FileNote | null> {
    try {
      const [config, verdict] = await Promise.all([this.api.config(file), this.api.verdict(file)]);
      return { config, story: verdict.version === 1 ? verdict : null };
    } catch {
      return null; // the list shows the file without; opening it tells why
    }
  }
}
