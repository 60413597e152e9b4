import { useMemo, useState } from 'preact/hooks';
import { Badge } from './badge';
import { Breaks } from './breaks';
import { differ } from './cells';
import { useLook } from './context';
import { CHECKED, type CheckFinding, type ConfigurationReport, type SheetCell } from './data';
import { formatCount } from './format';
import { translateOrigin } from './i18n';
import { Notes } from './notes';
import { SheetTable } from './sheet';
import { Bar } from './summary';

type Configuration = ConfigurationReport['configuration'];
const PART_VERDICTS = ['error', 'warning', 'pass'] as const;

/** What config_check found: the answer, the rules, the parts of the packs, all values. */
export function ConfigurationAnswer({ report: { configuration: of } }: { report: ConfigurationReport }) {
  const { t } = useLook();
  const effective = useMemo(() => of.effective && { ...of.effective, rows: of.effective.rows.map((row) => row.map((cell, i) => (i > 2 && typeof cell === 'string' ? translateOrigin(t, cell) : cell))) }, [t]);
  const file = of.files.find((name) => name.endsWith('.xlsx')) ?? '';
  const pair = of.golden.files.length > 0;
  const differs = ([, target, golden]: SheetCell[]) => differ(target ?? null, golden ?? null);
  return (
    <>
      <div class="two">
        {of.findings ? <RulesAnswer findings={of.findings} /> : <PartsAnswer parts={of.parts ?? []} />}
        <Sides of={of} />
      </div>
      {of.findings && <Rules findings={of.findings} pair={pair} />}
      {of.parts?.map((part) => (
        <section key={part.name} class="card part" aria-labelledby={`part-${part.name}`}>
          <div class="head"><h2 id={`part-${part.name}`}>{t(`part.${part.name}` as 'part.env')}</h2><Badge verdict={part.verdict} /></div>
          {part.total > 0 ? <SheetTable id={`part-${part.name}`} sheet={part} file={file} /> : <p class="muted empty">{t('part.equal')}</p>}
        </section>
      ))}
      {effective && (
        <section class="card" aria-labelledby="effective-title">
          <h2 id="effective-title">{t('config.effective')}</h2>
          <p class="muted">{t('config.effectiveHint')}</p>
          <SheetTable id="effective-title" sheet={effective} heads={[t('config.quantity'), t('side.target'), t('side.golden'), t('config.targetFrom'), t('config.goldenFrom')]} file={file} differs={pair ? differs : undefined} />
        </section>
      )}
      <Notes texts={of.warnings} />
    </>
  );
}

function RulesAnswer({ findings }: { findings: CheckFinding[] }) {
  const { t } = useLook();
  const count = (verdict: string) => findings.filter((finding) => finding.verdict === verdict).length;
  const [fail, warn, ask] = [count('fail'), count('warn'), count('ask')];
  const lines = [warn > 0 && fail > 0 && t('config.warn', { count: formatCount(warn) }), ask > 0 && t('config.ask', { count: formatCount(ask) })].filter((line) => line !== false);
  const headline = fail > 0 ? t('config.fail', { count: formatCount(fail), total: formatCount(findings.length) }) : warn > 0 ? t('config.onlyWarn', { count: formatCount(warn) }) : t('config.pass');
  const counts = CHECKED.map((verdict): [string, number] => [verdict, count(verdict)]).filter(([, n]) => n > 0);
  const words = counts.map(([verdict, n]) => `${t(`checked.${verdict}` as 'checked.fail')} ${formatCount(n)}`);
  return (
    <Answer outcome={fail > 0 ? 'origin' : warn > 0 ? 'unknown' : 'equal'} headline={headline} lines={lines}>
      <Bar counts={counts} text={words.join(', ')} />
      <ul class="counts">
        {counts.map(([verdict, n]) => <li key={verdict} class={verdict}><b>{formatCount(n)}</b> {t(`checked.${verdict}` as 'checked.fail')}</li>)}
      </ul>
    </Answer>
  );
}

function PartsAnswer({ parts }: { parts: NonNullable<Configuration['parts']> }) {
  const { t } = useLook();
  const named = (verdict: string) => parts.filter((part) => part.verdict === verdict).map((part) => t(`part.${part.name}` as 'part.env'));
  const [wrong, odd, equal] = PART_VERDICTS.map(named) as [string[], string[], string[]];
  const list = (names: string[]) => names.join(t('config.comma'));
  const headline = parts.length === 0 ? t('part.none') : wrong.length > 0 ? t('part.wrong', { parts: list(wrong) }) : odd.length > 0 ? t('part.odd', { parts: list(odd) }) : t('part.agree');
  const lines = [wrong.length > 0 && odd.length > 0 && t('part.odd', { parts: list(odd) }), equal.length > 0 && wrong.length + odd.length > 0 && t('part.same', { parts: list(equal) })].filter((line) => line !== false);
  return <Answer outcome={wrong.length > 0 ? 'origin' : odd.length > 0 || parts.length === 0 ? 'unknown' : 'equal'} headline={headline} lines={lines} />;
}

export function Answer({ outcome, headline, lines, children }: { outcome: string; headline: string; lines: string[]; children?: preact.ComponentChildren }) {
  return (
    <section id="story" class="card" aria-labelledby="story-title">
      <div class={`verdict-card ${outcome}`} data-test="verdict-card">
        <div class="verdict-head"><h2 id="story-title" data-test="verdict-headline">{headline}</h2></div>
        {lines.length > 0 && <ul>{lines.map((line) => <li key={line} data-test="verdict-line">{line}</li>)}</ul>}
      </div>
      {children}
    </section>
  );
}

function Sides({ of }: { of: Configuration }) {
  const { t } = useLook();
  const sides = [[t('side.target'), of.target], [t('side.golden'), of.golden]] as const;
  return (
    <section class="card" aria-labelledby="summary-title">
      <h2 id="summary-title">{t('summary.title')}</h2>
      <dl class="sides">
        {sides.map(([name, side]) => side.files.length > 0 && (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="code">
              {side.files.map((path) => <p key={path}><Breaks text={path} /></p>)}
              {side.frameworks.length > 0 && <p class="muted">{side.frameworks.join(', ')}</p>}
            </dd>
          </div>
        ))}
      </dl>
      <p class="muted">{t('summary.files', { files: of.files.join(', ') })}</p>
    </section>
  );
}

function Rules({ findings, pair }: { findings: CheckFinding[]; pair: boolean }) {
  const { t, language } = useLook();
  const there = CHECKED.filter((verdict) => findings.some((finding) => finding.verdict === verdict));
  const [shown, setShown] = useState<string[]>(() => (there.some((verdict) => verdict !== 'pass') ? there.filter((verdict) => verdict !== 'pass') : [...there]));
  const [search, setSearch] = useState('');
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = findings.filter(({ verdict, rule, values, reason, fix }) => {
    const text = [rule, ...values, reason[language], fix[language]].join(' ').toLowerCase();
    return shown.includes(verdict) && words.every((word) => text.includes(word));
  });
  return (
    <section id="rules" class="card" aria-labelledby="rules-title">
      <h2 id="rules-title">{t('config.rules')}</h2>
      <p class="muted">{t('config.rulesHint', { shown: formatCount(found.length), total: formatCount(findings.length) })}</p>
      <div class="tools">
        <input type="search" placeholder={t('sheet.search')} aria-label={t('sheet.search')} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <div class="segments" role="group" aria-label={t('config.verdicts')}>
          {there.map((verdict) => (
            <button key={verdict} type="button" aria-pressed={shown.includes(verdict)} onClick={() => setShown(shown.includes(verdict) ? shown.filter((v) => v !== verdict) : [...shown, verdict])}>
              {t(`checked.${verdict}`)}
            </button>
          ))}
        </div>
      </div>
      <div class="scroll tall" tabIndex={0} role="region" aria-labelledby="rules-title">
        <table class="sheet rules">
          <thead>
            <tr>
              <th>{t('config.verdict')}</th>
              <th>{t('config.rule')}</th>
              <th>{t('side.target')}</th>
              {pair && <th>{t('side.golden')}</th>}
              <th>{t('config.why')}</th>
            </tr>
          </thead>
          <tbody>
            {found.map(({ rule, verdict, values, origins, reason, fix }) => (
              <tr key={rule} class={verdict}>
                <td><span class={`badge ${verdict}`}>{t(`checked.${verdict}`)}</span></td>
                <td class="code"><Breaks text={rule} /></td>
                {values.slice(0, pair ? 2 : 1).map((value, side) => (
                  <td key={side}><span class="code">{value}</span>{value && <div class="muted from"><Breaks text={translateOrigin(t, origins[side] ?? '')} /></div>}</td>
                ))}
                <td class="why">{verdict !== 'pass' && <>{reason[language]}<div class="fix">{fix[language]}</div></>}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {found.length === 0 && <p class="muted empty">{t('table.none')}</p>}
      </div>
    </section>
  );
}
