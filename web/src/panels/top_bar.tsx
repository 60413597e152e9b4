import { dumpsOf } from '../model/compared';
import { useApp, usePrefer, useSession, useText } from './context';
import { Icon } from './icons';
import { SearchBox } from './search';

export function TopBar({ onHelp }: { onHelp: () => void }) {
  const session = useSession();
  const t = useText();
  const named = useApp((state) => state.file ?? state.trend?.file ?? null);
  const root = useApp((state) => (state.files.at === 'ready' ? state.files.value.root : ''));
  const file = named === '.' ? root.replace(/\/+$/, '').replace(/^.*\//, '') || named : named; // a run that is the served directory
  const theme = useApp((state) => state.theme);
  const language = useApp((state) => state.language);
  const ready = useApp((state) => state.graph.at === 'ready');
  const converting = useApp((state) => state.convert.open);
  const canConvert = useApp((state) => state.convert.enabled);
  const prefer = usePrefer();
  return (
    <header class="top-bar">
      <button class="brand" onClick={() => session.closeFile()} title={t('files.back')}>
        <Logo />
        <span>msprobe</span>
      </button>
      {file ? (
        <>
          <button class="file-name" onClick={() => session.closeFile()} title={`${file} – ${t('files.back')}`}>
            <Icon name="back" />
            {file.includes('/') && <span class="dir">{file.slice(0, file.lastIndexOf('/') + 1)}</span>}
            <span class="base">{file.slice(file.lastIndexOf('/') + 1)}</span>
          </button>
          <GraphSelectors />
          <Compared />
        </>
      ) : (
        <span class="muted tagline">{t('app.tagline')}</span>
      )}
      <span class="spacer" />
      {ready && !converting && <SearchBox />}
      {session.exported && (
        <button class="text-button" data-test="exported" title={t('exported.limits')} onClick={onHelp}>
          {t('exported.title')}
        </button>
      )}
      {canConvert && file && !converting && (
        <button class="icon-button" data-test="convert-icon" title={t('convert.title')} aria-label={t('convert.title')} onClick={() => session.openConvert()}>
          <Icon name="convert" />
        </button>
      )}
      <button class="icon-button" title={t('help.title')} aria-label={t('help.title')} onClick={onHelp}>
        <Icon name="keyboard" />
      </button>
      <button
        class="icon-button"
        data-test="theme"
        title={t(theme === 'dark' ? 'theme.toLight' : 'theme.toDark')}
        aria-label={t(theme === 'dark' ? 'theme.toLight' : 'theme.toDark')}
        onClick={() => prefer({ theme: theme === 'dark' ? 'light' : 'dark' })}
      >
        <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
      </button>
      <button class="text-button" data-test="language" lang={language === 'en' ? 'zh' : 'en'} title={t('language.switchLabel')} onClick={() => prefer({ language: language === 'en' ? 'zh' : 'en' })}>
        {t('language.switch')}
      </button>
    </header>
  );
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 24 24" aria-hidden="true">
      <path class="logo-a" d="M3 17 8 8l4 6 3-4" />
      <path class="logo-b" d="M15 10l6-5" />
      <path class="logo-c" d="M15 10l6 6" />
    </svg>
  );
}

/** Which dumps the graph shows. */
function Compared() {
  const t = useText();
  const config = useApp((state) => state.config);
  const dumps = config && dumpsOf(config);
  if (!dumps) return null;
  const [target, golden] = dumps.full;
  const title = golden === undefined ? target : `${t('side.NPU')}: ${target}\n${t('side.Bench')}: ${golden}`;
  return (
    <span class="compared" data-test="compared" title={title}>
      {dumps.short.map((path, index) => (
        <span key={index}>
          {index > 0 && <i> {t('compared.with')} </i>}
          {path}
        </span>
      ))}
    </span>
  );
}

function GraphSelectors() {
  const session = useSession();
  const t = useText();
  const config = useApp((state) => state.config);
  const step = useApp((state) => state.step);
  const rank = useApp((state) => state.rank);
  const microStep = useApp((state) => state.microStep);
  if (!config) return null;
  const microSteps = Array.from({ length: config.micro_steps }, (_, index) => index);
  return (
    <div class="selectors">
      <Chooser name={t('select.step')} value={step} values={config.steps} onChoose={(value) => session.showStep(value)} />
      <Chooser name={t('select.rank')} value={rank} values={config.ranks} onChoose={(value) => session.showRank(value)} />
      {config.micro_steps > 1 && (
        <Chooser name={t('select.microStep')} value={microStep} values={[-1, ...microSteps]} all={t('select.all')} onChoose={(value) => session.showMicroStep(value)} />
      )}
    </div>
  );
}

interface ChooserProps {
  name: string;
  value: number;
  values: number[];
  all?: string; // the word for -1
  onChoose: (value: number) => void;
}

function Chooser({ name, value, values, all, onChoose }: ChooserProps) {
  return (
    <label class="chooser">
      <span>{name}</span>
      <select value={value} disabled={values.length < 2} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
        {values.map((option) => (
          <option key={option} value={option}>
            {option < 0 && all ? all : option}
          </option>
        ))}
      </select>
    </label>
  );
}
