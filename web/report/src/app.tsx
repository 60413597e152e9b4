import { useEffect, useMemo, useState } from 'preact/hooks';
import { applyPalette, makePalette, type ThemeName } from '../../src/theme/palette';
import { ConfigurationAnswer } from './configuration';
import { LookContext } from './context';
import { Curves } from './curves';
import { isConfiguration, isDocument, isLaboratory, type CompareReport, type Report } from './data';
import { DocumentAnswer } from './document';
import { formatTime } from './format';
import { CATALOGUES, translator, type Language, type MessageKey } from './i18n';
import { LaboratoryAnswer } from './lab_answer';
import { WorstOps } from './ops';
import { pairOfOrigin } from './pairs';
import { Notes } from './notes';
import { Replays } from './replay';
import { Story } from './story';
import { Pairs, Summary } from './summary';
import { Rows } from './table';

function preferredLanguage(): Language {
  return navigator.language.startsWith('zh') ? 'zh' : 'en';
}
function preferredTheme(): ThemeName {
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** The verdict stands before the list of pairs, however long that is; what is about the chosen one stands behind it. */
function Answer({ report, at, choose }: { report: CompareReport; at: number; choose: (pair: number) => void }) {
  const pair = report.summary.pairs[at]!;
  const page = report.pages[at]!;
  const [search, setSearch] = useState('');
  const showOp = (op: string) => {
    setSearch(op);
    document.getElementById('rows')?.scrollIntoView({ behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  };
  const chooseOther = (other: number) => {
    setSearch('');
    choose(other);
  };
  return (
    <>
      <div class="two">
        <Story key={at} pair={pair} page={page} verdict={report.summary.verdict} pairs={report.summary.pairs.length} divergence={report.summary.first_divergence} onOp={showOp} />
        <Summary pairs={report.summary.pairs} at={at} page={page} choose={chooseOther} />
      </div>
      <Pairs key="pairs" report={report} chosen={at} choose={chooseOther} />
      <Parts key={`parts ${at}`} report={report} at={at} search={search} setSearch={setSearch} onOp={showOp} />
    </>
  );
}

interface PartsProps {
  report: CompareReport;
  at: number;
  search: string;
  setSearch: (search: string) => void;
  onOp: (op: string) => void;
}

function Parts({ report, at, search, setSearch, onOp: showOp }: PartsProps) {
  const pair = report.summary.pairs[at]!;
  const page = report.pages[at]!;
  return (
    <>
      <Replays report={report} label={pair.label} onOp={showOp} />
      <Curves page={page} onOp={showOp} />
      <WorstOps page={page} onOp={showOp} />
      <Rows pair={pair} page={page} search={search} setSearch={setSearch} />
    </>
  );
}

function Comparison({ report }: { report: CompareReport }) {
  const [pair, setPair] = useState(() => pairOfOrigin(report));
  return (
    <>
      {report.pages.length > 0 ? <Answer report={report} at={pair} choose={setPair} /> : <Pairs report={report} chosen={pair} choose={setPair} />}
      <Notes texts={report.summary.pairs[pair]?.warnings ?? []} />
    </>
  );
}

function titleOf(report: Report | null): MessageKey {
  if (!report) return 'title';
  if (isConfiguration(report)) return 'config.title';
  if (isLaboratory(report)) return 'lab.title';
  const key = isDocument(report) ? `document.kind.${report.document.kind}` : 'title';
  return key in CATALOGUES.en ? (key as MessageKey) : 'title';
}

export function App({ report }: { report: Report | null }) {
  const [language, setLanguage] = useState<Language>(preferredLanguage);
  const [theme, setTheme] = useState<ThemeName>(preferredTheme);
  const look = useMemo(() => ({ t: translator(language), language, palette: makePalette(theme) }), [language, theme]);
  const { t } = look;
  const title = t(titleOf(report));
  useEffect(() => {
    applyPalette(look.palette, document.documentElement);
    document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
    document.title = `msprobe · ${title}`;
  }, [look]);
  return (
    <LookContext.Provider value={look}>
      <a class="skip" href="#story">{t('skip')}</a>
      <header>
        <svg class="logo" viewBox="0 0 24 24" aria-hidden="true">
          <path class="logo-a" d="M3 17 8 8l4 6 3-4" />
          <path class="logo-b" d="M15 10l6-5" />
          <path class="logo-c" d="M15 10l6 6" />
        </svg>
        <h1>msprobe <span>{title}</span></h1>
        <span class="spacer" />
        {report && <span class="muted made">{t('made', { time: formatTime(report.time), tool: report.tool })}</span>}
        <button type="button" class="text-button" onClick={() => print()}>{t('print')}</button>
        <button type="button" class="text-button" onClick={() => setTheme(theme === 'dark' ? 'light' : 'dark')}>{t(theme === 'dark' ? 'switch.light' : 'switch.dark')}</button>
        <button type="button" class="text-button" lang={language === 'zh' ? 'en' : 'zh-CN'} title={t('switch.languageLabel')} onClick={() => setLanguage(language === 'zh' ? 'en' : 'zh')}>{t('switch.language')}</button>
      </header>
      <main>
        {report === null ? (
          <p class="card broken" role="alert">{t('broken')}</p>
        ) : isConfiguration(report) ? (
          <ConfigurationAnswer report={report} />
        ) : isDocument(report) ? (
          <DocumentAnswer report={report} />
        ) : isLaboratory(report) ? (
          <LaboratoryAnswer report={report} />
        ) : (
          <Comparison report={report} />
        )}
      </main>
    </LookContext.Provider>
  );
}
