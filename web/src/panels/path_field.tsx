import { useEffect, useRef, useState } from 'preact/hooks';
import type { DumpKind, Listing } from '../api/convert';
import type { MessageKey } from '../i18n';
import { failure } from '../model/failure';
import { BUSY, type Load } from '../model/load';
import { useSession, useText } from './context';
import { Icon } from './icons';
import { Failure, Loading } from './states';

export type Wanted = 'dump' | 'directory' | 'yaml';

interface PathFieldProps {
  name: string; // of the field, for labels and tests
  label: string;
  hint?: string;
  fault?: string | undefined;
  wanted: Wanted;
  value: string;
  bare?: boolean; // the label stands elsewhere
  onChange: (value: string) => void;
}

/** A path below the served directory: typed, or chosen from a list. */
export function PathField({ name, label, hint, fault, wanted, value, bare, onChange }: PathFieldProps) {
  const t = useText();
  const [picking, setPicking] = useState(false);
  const note = fault ?? hint;
  return (
    <div class="field">
      {!bare && <label for={`field-${name}`}>{label}</label>}
      <div class="path-field">
        <input
          id={`field-${name}`}
          type="text"
          spellcheck={false}
          autocomplete="off"
          value={value}
          aria-label={bare ? label : undefined}
          aria-invalid={fault !== undefined}
          aria-describedby={note ? `note-${name}` : undefined}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
        <button type="button" class="button" data-test={`browse-${name}`} aria-label={t('picker.browse', { name: label })} onClick={() => setPicking(true)}>
          {t('picker.open')}
        </button>
      </div>
      {note && (
        <span id={`note-${name}`} class={fault ? 'field-fault' : 'muted field-hint'}>
          {note}
        </span>
      )}
      {picking && (
        <Picker
          label={label}
          wanted={wanted}
          from={value}
          onClose={() => setPicking(false)}
          onChoose={(path) => {
            setPicking(false);
            onChange(path);
          }}
        />
      )}
    </div>
  );
}

const KINDS: Record<Exclude<DumpKind, ''>, MessageKey> = { rank: 'picker.rank', step: 'picker.step', run: 'picker.run' };

function join(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`;
}

interface PickerProps {
  label: string;
  wanted: Wanted;
  from: string;
  onClose: () => void;
  onChoose: (path: string) => void;
}

function Picker({ label, wanted, from, onClose, onChoose }: PickerProps) {
  const session = useSession();
  const t = useText();
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  // What is chosen already stands in its directory; where that is not there, one begins at the top.
  const [path, setPath] = useState(from.replace(/\/?[^/]*$/, ''));
  const [listing, setListing] = useState<Load<Listing>>(BUSY);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    let current = true;
    setListing(BUSY);
    session.convert?.list(path).then(
      (value) => current && setListing({ at: 'ready', value }),
      (error: unknown) => {
        if (!current) return;
        if (path !== '') setPath('');
        else setListing(failure(error));
      },
    );
    return () => void (current = false);
  }, [path, session]);
  // The keyboard stays in the list while one goes through directories.
  useEffect(() => {
    if (listing.at === 'ready') list.current?.querySelector('button')?.focus();
  }, [listing]);
  const parts = path === '' ? [] : path.split('/');
  return (
    <dialog ref={dialog} class="picker card" aria-label={label} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div class="help-head">
        <h2>{label}</h2>
        <button type="button" class="icon-button" title={t('help.close')} aria-label={t('help.close')} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <nav class="crumbs" aria-label={t('picker.place')}>
        <button type="button" onClick={() => setPath('')}>
          {t('picker.root')}
        </button>
        {parts.map((part, index) => (
          <button type="button" key={index} onClick={() => setPath(parts.slice(0, index + 1).join('/'))}>
            {part}
          </button>
        ))}
      </nav>
      {listing.at === 'failed' && <Failure failed={listing} />}
      {listing.at === 'busy' && <Loading />}
      {listing.at === 'ready' && (
        <>
          <ul ref={list} onKeyDown={arrows}>
            {listing.value.dirs.map(({ name, kind }) => (
              <li key={name}>
                <button type="button" class="entry" data-test={`dir-${name}`} onClick={() => setPath(join(path, name))}>
                  <Icon name="folder" />
                  <span>{name}</span>
                  {kind && <span class="badge">{t(KINDS[kind])}</span>}
                </button>
                {wanted === 'dump' && kind && (
                  <button type="button" class="button" data-test={`choose-${name}`} aria-label={t('picker.choose', { name })} onClick={() => onChoose(join(path, name))}>
                    {t('picker.take')}
                  </button>
                )}
              </li>
            ))}
            {wanted === 'yaml' &&
              listing.value.files.map((name) => (
                <li key={name}>
                  <button type="button" class="entry" data-test={`file-${name}`} onClick={() => onChoose(join(path, name))}>
                    <Icon name="file" />
                    <span>{name}</span>
                  </button>
                </li>
              ))}
          </ul>
          {listing.value.dirs.length === 0 && (wanted !== 'yaml' || listing.value.files.length === 0) && <p class="muted picker-none">{t('picker.none')}</p>}
          {listing.value.cut && <p class="muted picker-none">{t('picker.cut')}</p>}
          {wanted !== 'yaml' && (
            <div class="picker-foot">
              <button type="button" class="button primary" data-test="use-directory" disabled={path === '' && wanted === 'directory'} onClick={() => onChoose(path === '' ? '.' : path)}>
                {t('picker.use')}
              </button>
              {listing.value.kind && <span class="badge">{t(KINDS[listing.value.kind])}</span>}
            </div>
          )}
        </>
      )}
    </dialog>
  );
}

/** Up and down go through the entries, left leaves the directory by its crumbs with Tab; Enter is the button's own. */
function arrows(event: KeyboardEvent): void {
  const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!by || !(event.currentTarget instanceof HTMLElement)) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>('.entry')];
  const at = buttons.indexOf(document.activeElement as HTMLElement);
  buttons[Math.min(Math.max(at + by, 0), buttons.length - 1)]?.focus();
  event.preventDefault();
}
