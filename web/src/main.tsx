import { render } from 'preact';
import { App } from './app';
import { HttpApi } from './api/client';
import { ExportedApi, readExported } from './api/exported';
import { parseLink } from './model/link';
import { Session } from './model/session';
import { INITIAL, readPreferences, Store } from './model/store';
import { browserStorage, SessionContext } from './panels/context';
import type { Views } from './panels/graphs';
import { installProbe } from './probe';
import './theme/style.css';

const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const language = navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
const store = new Store(readPreferences(browserStorage(), { ...INITIAL, theme: dark ? 'dark' : 'light', language }));
const token = new URLSearchParams(location.search).get('token') ?? '';

let restoring = false; // going back and forth writes no history of its own

function writeLink(hash: string, newFile: boolean): void {
  const address = location.pathname + location.search + hash;
  if (hash === location.hash) return;
  if (newFile && !restoring) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
}

const exported = await readExported(document.getElementById('data')?.textContent ?? '');
const session = new Session(store, exported ? new ExportedApi(exported) : new HttpApi(token), writeLink);
const views: Views = {};

/** A lone file is opened at once; with several the user chooses. */
async function start(): Promise<void> {
  const link = parseLink(location.hash);
  if (link) void session.open(link);
  await session.loadFiles();
  const { files, file } = store.get();
  const only = files.at === 'ready' && files.value.files.length === 1 ? files.value.files[0] : undefined;
  if (only && file === null) await session.open({ file: only.file });
}

async function restore(): Promise<void> {
  const link = parseLink(location.hash);
  restoring = true;
  if (link) await session.open(link);
  else if (store.get().file !== null) session.closeFile();
  restoring = false;
}

window.addEventListener('popstate', () => void restore());

installProbe(session, views);
render(
  <SessionContext.Provider value={session}>
    <App views={views} />
  </SessionContext.Provider>,
  document.getElementById('app')!,
);
void start();
