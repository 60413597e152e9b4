import { useEffect, useRef } from 'preact/hooks';
import { RULINGS } from '../api/types';
import type { MessageKey } from '../i18n';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { StatusChip } from './status_dot';

const KEYS: [string[], MessageKey][] = [
  [['↑', '↓'], 'help.arrows'],
  [['→', '←'], 'help.sides'],
  [['Enter'], 'help.enter'],
  [['/'], 'help.search'],
  [['n', 'p'], 'help.findings'],
  [['[', ']'], 'help.along'],
  [['m'], 'help.switch'],
  [['w', 's'], 'help.zoom'],
  [['0'], 'view.zoomReset'],
  [['a', 'd'], 'help.pan'],
  [['PgUp', 'PgDn'], 'help.page'],
  [['f'], 'help.fit'],
  [['c', 'C'], 'help.match'],
  [['Ctrl+Z'], 'help.undo'],
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

const LEVELS = ['error', 'warning', 'pass', 'unmatched', 'none'] as const;
const OVERFLOWS = ['critical', 'high', 'medium'] as const;

/** What the colours of the open graph mean. */
function Legend() {
  const t = useText();
  const config = useApp((state) => state.config);
  const shown = [...(config?.verdicts ? RULINGS : []), ...(config?.graph_type === 'compare' ? LEVELS : []), ...(config?.overflow_check ? OVERFLOWS : [])];
  if (shown.length === 0) return null;
  return (
    <section class="legend" data-test="legend">
      <h3>{t('legend.title')}</h3>
      <dl>
        {shown.map((level) => (
          <div key={level}>
            <dt>
              <StatusChip status={level} />
            </dt>
            <dd>{t(`legend.${level}`)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

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
      <div class="help-columns">
        <dl>
          {KEYS.map(([keys, text]) => (
            <div key={text}>
              <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
              <dd>{t(text)}</dd>
            </div>
          ))}
        </dl>
        <div>
          <dl>
            {MOUSE.map(([gesture, text]) => (
              <div key={text}>
                <dt>
                  <kbd>{t(gesture)}</kbd>
                </dt>
                <dd>{t(text)}</dd>
              </div>
            ))}
          </dl>
          <Legend />
        </div>
      </div>
    </dialog>
  );
}
