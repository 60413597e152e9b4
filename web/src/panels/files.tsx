import type { FileEntry } from '../api/types';
import { fileSize } from '../model/format';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { Failure, Loading } from './states';

function dateText(seconds: number, language: string): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' });
  return format.format(new Date(seconds * 1000));
}

/** The first thing one sees: which graphs there are. */
export function FilesView() {
  const session = useSession();
  const t = useText();
  const files = useApp((state) => state.files);
  const canConvert = useApp((state) => state.convert.enabled);
  if (files.at === 'idle' || files.at === 'busy') return <Loading />;
  if (files.at === 'failed') return <Failure failed={files} retry={() => void session.loadFiles()} />;
  const { root, files: list, trends = [], skipped } = files.value;
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
      {list.length === 0 && trends.length === 0 ? (
        <div class="empty card">
          <strong>{t('files.none')}</strong>
          <span>{t('files.noneHint')}</span>
        </div>
      ) : (
        <>
          <FileTable list={list} open={(file) => void session.open({ file })} />
          {trends.length > 0 && <h2 class="files-kind">{t('trend.files')}</h2>}
          <FileTable list={trends} open={(file) => session.openTrend({ file }, `#${new URLSearchParams({ trend: file })}`)} />
        </>
      )}
      {skipped.length > 0 && (
        <details class="skipped">
          <summary>{t('files.skipped', { count: skipped.length })}</summary>
          <ul>
            {skipped.map((entry) => (
              <li key={entry.file} lang="en">
                {entry.reason.startsWith(entry.file) ? '' : `${entry.file} `}
                {entry.reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </main>
  );
}

function FileName({ file }: { file: string }) {
  const slash = file.lastIndexOf('/') + 1;
  return (
    <span>
      <span class="muted">{file.slice(0, slash)}</span>
      <wbr />
      {file.slice(slash)}
    </span>
  );
}

function FileTable({ list, open }: { list: FileEntry[]; open: (file: string) => void }) {
  const t = useText();
  const language = useApp((state) => state.language);
  if (list.length === 0) return null;
  return (
    <table class="card file-table">
      <colgroup>
        <col />
        <col class="size" />
        <col class="changed" />
      </colgroup>
      <thead>
        <tr>
          <th>{t('files.file')}</th>
          <th class="number">{t('files.size')}</th>
          <th>{t('files.changed')}</th>
        </tr>
      </thead>
      <tbody>
        {list.map((entry) => (
          <tr key={entry.file}>
            <td>
              <button class="file-link" aria-label={t('files.open', { file: entry.file })} onClick={() => open(entry.file)}>
                <Icon name="file" />
                <FileName file={entry.file} />
              </button>
            </td>
            <td class="number">{fileSize(entry.size)}</td>
            <td>{dateText(entry.mtime, language)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
