import { useState } from 'preact/hooks';
import type { DumpEntry } from '../../api/types';
import { useApp, useSession, useText } from '../context';
import { dateText, FileName } from './name';
import { Icon } from '../icons';

/** Recorded runs: the graph of one, or a comparison of two. */
export function Dumps({ list }: { list: DumpEntry[] }) {
  const session = useSession();
  const t = useText();
  const language = useApp((state) => state.language);
  const [chosen, setChosen] = useState<string[]>([]); // the target, then the golden side
  /** Without the form, which is filled in for another try. */
  const convert = (target: string, golden = '') => {
    session.convert?.fill({ target, golden });
    session.openConvert();
    void session.convert?.start();
  };
  const name = (file: string) => (file === '.' ? t('dumps.here') : file);
  const choose = (file: string, on: boolean) => setChosen((now) => (on ? [...now, file].slice(-2) : now.filter((each) => each !== file)));
  const [target, golden] = chosen;
  const hint = !target ? t('dumps.hint') : !golden ? t('dumps.one', { file: name(target) }) : t('dumps.two', { target: name(target), golden: name(golden) });
  return (
    <>
      {list.length > 1 && (
        <div class="dumps-pair" data-test="dumps-pair">
          <span role="status">{hint}</span>
          {golden !== undefined && (
            <button class="text-button" data-test="dumps-swap" onClick={() => setChosen([golden, target!])}>
              {t('dumps.swap')}
            </button>
          )}
          <span class="spacer" />
          <button class="button primary" data-test="dumps-compare" disabled={golden === undefined} onClick={() => convert(target!, golden)}>
            {t('dumps.compare')}
          </button>
        </div>
      )}
      <table class="card file-table dumps">
        <tbody>
          {list.map(({ file, steps, ranks, mtime }) => (
            <tr key={file}>
              <td>
                <label class="file-link">
                  {list.length > 1 && <input type="checkbox" aria-label={t('dumps.choose', { file: name(file) })} checked={chosen.includes(file)} onChange={(event) => choose(file, event.currentTarget.checked)} />}
                  {file === '.' ? name(file) : <FileName file={file} />}
                </label>
              </td>
              <td class="dump-about">{[t('files.ranks', { count: ranks }), t('files.steps', { count: steps }), dateText(mtime, language)].join(' · ')}</td>
              <td class="dump-way">
                <button class="button" data-test="dump-build" onClick={() => convert(file)}>
                  <Icon name="convert" />
                  {t('dumps.build')}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
