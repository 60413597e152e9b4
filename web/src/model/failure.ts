import { ApiError } from '../api/client';
import type { Failed, Fault } from './load';

/** An error as the page shows it: worded by kind in the user's language, the server's line beside it. */
export function failure(error: unknown): Failed {
  if (!(error instanceof ApiError)) return { at: 'failed', fault: 'read', error: error instanceof Error ? error.message : String(error) };
  return { at: 'failed', fault: faultOf(error.status, error.message), error: error.message };
}

/** What a "not found" of the server is about; i18n/server_said.ts has these lines in Chinese. */
const ABSENT: [RegExp, Fault][] = [
  [/ has no graph of step /, 'graph'],
  [/ no (target|golden) node | has no (target|golden) side |^no graph of .* has a node /, 'node'],
  [/ does not exist: choose from the list of files$| is not a regular file: choose from the list of files$/, 'gone'],
  [/ tensor | lies outside of the served directory|: keep the dump where it was|too many to sort/, 'read'],
];

function faultOf(status: number, text: string): Fault {
  if (status === 0) return 'noServer';
  if (status === 403) return 'token';
  if (status === 404) return ABSENT.find(([pattern]) => pattern.test(text))?.[1] ?? 'file';
  return status < 500 ? 'request' : 'read';
}
