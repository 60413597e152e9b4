import { useApp, useSession, useText } from '../context';
import { listedReports } from '../../model/file_list';
import { FileLists } from './lists';
import { Icon } from '../icons';
import { Failure, Loading, ServerLine } from '../states';

/** The first thing one sees: what there is to look at. */
export function FilesView() {
  const session = useSession();
  const t = useText();
  const files = useApp((state) => state.files);
  const canConvert = useApp((state) => state.convert.enabled);
  if (files.at === 'idle' || files.at === 'busy') return <Loading />;
  if (files.at === 'failed') return <Failure failed={files} retry={() => void session.loadFiles()} />;
  const { root, files: graphs, trends = [], runs = [], skipped } = files.value;
  const reports = session.reportPage ? listedReports(files.value) : [];
  const dumps = canConvert ? (files.value.dumps ?? []) : [];
  return (
    <main class="files">
      <div class="files-head">
        <div>
          <h1>{t('files.title')}</h1>
          {root && <p class="muted">{t('files.in', { root })}</p>}
        </div>
        <div class="files-ways">
          {canConvert && (
            <button class="button primary" data-test="convert-open" onClick={() => session.openConvert()}>
              <Icon name="convert" />
              {t('convert.title')}
            </button>
          )}
          {!session.exported && (
            <button class="button" onClick={() => void session.loadFiles()}>
              <Icon name="reload" />
              {t('files.reload')}
            </button>
          )}
        </div>
      </div>
      {graphs.length + trends.length + runs.length + reports.length + dumps.length === 0 ? (
        <div class="empty card">
          <strong>{t('files.none')}</strong>
          <span>{t('files.noneHint')}</span>
        </div>
      ) : (
        <FileLists graphs={graphs} trends={trends} runs={runs} reports={reports} dumps={dumps} />
      )}
      {skipped.length > 0 && (
        <details class="skipped">
          <summary>{t('files.skipped', { count: skipped.length })}</summary>
          <ul>
            {skipped.map((entry) => (
              <li key={entry.file}>
                <ServerLine text={entry.reason.startsWith(entry.file) ? entry.reason : `${entry.file} ${entry.reason}`} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </main>
  );
}
