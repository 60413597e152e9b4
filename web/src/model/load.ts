/** What is asked of the server, as far as it has come. */
export type Load<T> = { at: 'idle' } | { at: 'busy' } | Failed | { at: 'ready'; value: T };

/** What went wrong, as far as the page can word it in the user's language. */
export type Fault = 'noServer' | 'token' | 'request' | 'file' | 'gone' | 'graph' | 'node' | 'read';

/** Nothing more comes until the user acts; said until then. */
export const LASTING: Fault[] = ['noServer', 'token', 'gone'];

export interface Failed {
  at: 'failed';
  fault: Fault;
  error: string; // the server's own line, in English; empty when it gave none
}

export const IDLE = { at: 'idle' } as const;
export const BUSY = { at: 'busy' } as const;
