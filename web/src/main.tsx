import { render } from 'preact';
import { App } from './app';
import { HttpApi } from './api/client';
import { ExportedApi, readExported } from './api/exported';
import { ExportedRunApi } from './api/exported_runs';
import { ExportedTrendApi } from './api/exported_trends';
import { HttpRunApi } from './api/runs';
import { HttpTrendApi } from './api/trends';
import { findHost } from './host';
import { parseLink } from './model/link';
import { CONVERT_HASH, Session } from './model/session';
import { INITIAL, readPreferences, Store } from './model/store';
import { parseTrendLink } from './model/trends';
import { browserStorage, SessionContext } from './panels/context';
import type { Views } from './panels/graphs';
import { RunContext } from './panels/runs/page';
import { TrendContext } from './panels/trends';
import { installProbe } from './probe';
import './theme/style.css';
import './theme/dock.css';
import './theme/files.css';
import './theme/matching.css';
import './theme/runs.css';
import './theme/trends.css';
import './theme/verdict.css';
import './theme/rulings.css';

const host = findHost();
const language = navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
const store = new Store(readPreferences(browserStorage(), { ...INITIAL, theme: host.theme, language }));
host.onTheme((theme) => store.set({ theme }));

let restoring = false; // going back and forth writes no history of its own

const exported = await readExported(document.getElementById('data')?.textContent ?? '');
const http = exported ? null : new HttpApi(host.token);
const trends = http ? new HttpTrendApi((what, params) => http.get(what, params)) : new ExportedTrendApi(exported!.trends ?? []);
const served = http && new HttpRunApi((what, params) => http.get(what, params));
const linkedRun = parseTrendLink(host.readLink());
if (linkedRun?.run) served?.prefetch({ ...linkedRun.run, run: linkedRun.file });
const runs = served ?? new ExportedRunApi(exported!.runs ?? []);
const session = new Session(store, http ?? new ExportedApi(exported!), (hash, entry) =>
  host.writeLink(hash, entry && !restoring),
);
session.address = () => host.address;
session.checkPage = host.checkPage;
session.reportPage = host.reportPage;
const views: Views = {};

const namesConversion = () => `#${host.readLink().replace(/^#/, '')}` === CONVERT_HASH;

/** A lone file is opened at once; with several the user chooses. */
async function start(): Promise<void> {
  const link = parseLink(host.readLink());
  const trend = parseTrendLink(host.readLink());
  if (link) void session.open(link);
  else if (trend) session.openTrend(trend);
  const converting = namesConversion();
  void session.convert?.begin().then(() => converting && session.openConvert());
  await session.loadFiles(!converting && !link && !trend);
}

async function restore(): Promise<void> {
  const link = parseLink(host.readLink());
  restoring = true;
  const trend = parseTrendLink(host.readLink());
  session.convert?.close();
  if (namesConversion()) session.openConvert();
  else if (link) await session.revisit(link);
  else if (trend) session.openTrend(trend);
  else if (store.get().file !== null || store.get().trend !== null) session.closeFile();
  restoring = false;
}

host.onLink(() => void restore());

installProbe(session, views);
render(
  <SessionContext.Provider value={session}>
    <TrendContext.Provider value={trends}>
      <RunContext.Provider value={runs}>
        <App views={views} />
      </RunContext.Provider>
    </TrendContext.Provider>
  </SessionContext.Provider>,
  document.getElementById('app')!,
);
void start();
