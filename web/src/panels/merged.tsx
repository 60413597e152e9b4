import type { MessageKey } from '../i18n';
import { readMerged, type MergedData, type MergedNote } from '../model/merged';
import { useCopy, useText } from './context';
import { Icon } from './icons';
import { ServerLine } from './states';

/** From which ranks a node of a parallel run comes, and how its figures were worked out, side by side. */
export function Merged({ columns }: { columns: [MessageKey, string[]][] }) {
  const t = useText();
  return (
    <div class="stacks" data-test="merged">
      {columns.map(([title, lines]) => (
        <div key={title} class="stack-column">
          <CopyHead title={t(title)} text={lines.join('\n')} />
          <Side data={readMerged(lines)} />
        </div>
      ))}
    </div>
  );
}

function Side({ data: { notes, values } }: { data: MergedData }) {
  const t = useText();
  return (
    <>
      {notes.length > 0 && (
        <ul class="merged-notes">
          {notes.map((note, index) => (
            <li key={index}>
              <Note note={note} />
            </li>
          ))}
        </ul>
      )}
      {values.length > 0 && (
        <table class="merged">
          <thead>
            <tr>
              <th scope="col">{t('details.item')}</th>
              <th scope="col">{t('merge.stat')}</th>
              <th scope="col">{t('merge.result')}</th>
              <th scope="col">{t('merge.formula')}</th>
            </tr>
          </thead>
          <tbody>
            {values.map(({ item, stat, formula, result }, index) => (
              <tr key={index}>
                <th scope="row">{values[index - 1]?.item === item ? '' : item}</th>
                <td>{stat}</td>
                <td class="merged-result">{result}</td>
                <td class="muted">{formula}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function Note({ note }: { note: MergedNote }) {
  const t = useText();
  if (note.kind === 'line') return <ServerLine text={note.text} />;
  const { kind, ...values } = note;
  return <>{t(`merge.${kind}`, values)}</>;
}

function CopyHead({ title, text }: { title: string; text: string }) {
  const t = useText();
  const copy = useCopy();
  return (
    <div class="stack-head">
      <strong>{title}</strong>
      {text && (
        <button class="icon-button" title={t('details.copy')} aria-label={t('details.copy')} onClick={() => copy(text)}>
          <Icon name="copy" />
        </button>
      )}
    </div>
  );
}
