import { useEffect, useRef } from 'preact/hooks';
import type { MessageKey } from '../i18n';
import { useSession, useText } from './context';
import { Icon } from './icons';

const KEYS: [string[], MessageKey][] = [
  [['↑', '↓'], 'help.arrows'],
  [['→', '←'], 'help.sides'],
  [['Enter'], 'help.enter'],
  [['/'], 'help.search'],
  [['n', 'p'], 'help.findings'],
  [['[', ']'], 'help.along'],
  [['m'], 'help.switch'],
  [['w', 's'], 'help.zoom'],
  [['a', 'd'], 'help.pan'],
  [['PgUp', 'PgDn'], 'help.page'],
  [['f'], 'help.fit'],
  [['c', 'C'], 'help.match'],
  [['Esc'], 'help.escape'],
];

const MOUSE: [MessageKey, MessageKey][] = [
  ['help.keyClick', 'help.click'],
  ['help.keyDouble', 'help.double'],
  ['help.keyMenu', 'help.menu'],
  ['help.keyWheel', 'help.wheel'],
  ['help.keyDrag', 'help.drag'],
  ['help.keyMap', 'help.map'],
];

export function Help({ onClose }: { onClose: () => void }) {
  const t = useText();
  const session = useSession();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help card" aria-label={t('help.title')} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div class="help-head">
        <h2>{t('help.title')}</h2>
        <button class="icon-button" title={t('help.close')} aria-label={t('help.close')} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      {session.exported && <p data-test="exported-limits">{t('exported.limits')}</p>}
      <dl>
        {KEYS.map(([keys, text]) => (
          <div key={text}>
            <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{t(text)}</dd>
          </div>
        ))}
        {MOUSE.map(([gesture, text]) => (
          <div key={text}>
            <dt>
              <kbd>{t(gesture)}</kbd>
            </dt>
            <dd>{t(text)}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
