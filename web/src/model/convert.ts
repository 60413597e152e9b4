import { ApiError } from '../api/client';
import type { ConvertApi, Listing } from '../api/convert';
import { EMPTY_FORM, isRunning, requestOf, type ConvertForm, type ConvertState } from './convert_form';
import { failure } from './failure';
import type { Store } from './store';

const POLL_MS = 200;

/** The dump converter of the page: a form, and the conversion that runs or ran last on the server. */
export class Converter {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly store: Store,
    private readonly api: ConvertApi,
    private readonly onFiles: () => void, // there are more files now
  ) {}

  private get state(): ConvertState {
    return this.store.get().convert;
  }
  private set(change: Partial<ConvertState>): void {
    this.store.set({ convert: { ...this.state, ...change } });
  }

  /** Finds out whether the host can convert; one that knows nothing of it cannot. A conversion that runs is shown again. */
  async begin(): Promise<void> {
    try {
      const { enabled, templates, conversion } = await this.api.state();
      this.set({ enabled, templates, last: conversion, shown: isRunning(conversion) ? conversion!.id : null });
      if (isRunning(conversion)) this.poll();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.set({ enabled: false });
    }
  }

  open(): void {
    if (this.state.enabled) this.set({ open: true });
  }
  close(): void {
    this.set({ open: false });
  }

  /** A new form with these; one that runs is left alone. */
  fill(change: Partial<ConvertForm>): void {
    this.set({ form: { ...EMPTY_FORM, ...change }, shown: null, faults: [], failed: null });
  }

  edit(change: Partial<ConvertForm>): void {
    const form = { ...this.state.form, ...change };
    // Nobody is told what is missing before having tried; from then on at once.
    const faults = this.state.faults.length > 0 ? requestOf(form).faults : [];
    this.set({ form, faults, failed: null });
  }

  list(path: string): Promise<Listing> {
    return this.api.list(path);
  }

  async start(): Promise<void> {
    const { request, faults } = requestOf(this.state.form);
    this.set({ faults, failed: null });
    if (faults.length > 0) return;
    await this.ask(() => this.api.start(request));
    if (!this.state.failed) this.set({ shown: this.state.last?.id ?? null });
  }

  async cancel(): Promise<void> {
    const { last } = this.state;
    if (last && isRunning(last)) await this.ask(() => this.api.cancel(last.id));
  }

  /** Back to the form, as it was filled in. */
  again(): void {
    const { last } = this.state;
    const failed = last?.state === 'failed' && last.error ? ({ at: 'failed', fault: 'read', error: last.error } as const) : null;
    this.set({ shown: null, failed });
  }

  /** To the progress of the conversion that runs, be it another tab's. */
  watch(): void {
    this.set({ shown: this.state.last?.id ?? null, failed: null });
  }

  private async ask(request: () => ReturnType<ConvertApi['state']>): Promise<void> {
    try {
      const before = this.state.last;
      const { conversion, enabled } = await request();
      this.set({ last: conversion, enabled, failed: null });
      // A short one may have ended before it was seen to run.
      const ended = isRunning(before) || before?.id !== conversion?.id;
      if (ended && conversion?.state === 'done') this.onFiles();
    } catch (error) {
      this.set({ failed: failure(error) });
    }
    if (isRunning(this.state.last)) this.poll();
  }

  private poll(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(() => this.api.state()), POLL_MS);
  }
}
