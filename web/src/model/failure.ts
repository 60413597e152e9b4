import { ApiError } from '../api/client';
import type { Failed, Fault } from './store';

/** An error as the page shows it: worded by kind in the user's language, the server's line beside it. */
export function failure(error: unknown): Failed {
  if (!(error instanceof ApiError)) return { at: 'failed', fault: 'read', error: error instanceof Error ? error.message : String(error) };
  return { at: 'failed', fault: faultOf(error.status), error: error.message };
}

function faultOf(status: number): Fault {
  if (status === 0) return 'noServer';
  if (status === 403) return 'token';
  if (status === 404) return 'file';
  return status < 500 ? 'request' : 'read';
}
