import { createContext } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { TrendApi, TrendInfo, TrendTarget } from '../api/trends';
import { failure } from '../model/failure';
import { BUSY, type Load } from '../model/load';
import { parseThreshold, type ScaleMode, type Thresholds } from '../model/trend_scale';
import { fitChoice, formatTrendLink, lineQuery, loadLine, loadMap, mapCsv, missingChoice, MOST_LINES, PAGE_ROWS, targetLabel, type LineAxis, type MapView, type TrendChoice, type TrendMap } from '../model/trends';
import type { HeatCell } from '../render/heat_map';
import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { Segments } from './segments';
import { Failure, Loading, Note } from './states';
import { TrendHeat, type MarkedLine } from './trend_heat';
import { TrendLines } from './trend_lines';

const SCALES = { linear: 'trend.linear', log: 'trend.log', sigma: 'trend.sigma' } as const;
const VIEWS = { first: 'trend.view.first', other: 'trend.view.other', difference: 'trend.view.difference' } as const;
const KINDS = { default: 'trend.kind.default', layer: 'trend.kind.layer', index: 'trend.kind.index', module: 'trend.kind.module', function: 'trend.kind.function' } as const;
const DIMENSIONS = { rank: 'trend.by.rank', step: 'trend.by.step', target: 'trend.by.target' } as const;

export const TrendContext = createContext<TrendApi | null>(null);

/** A map with what it was asked by: until the next one is there, another choice may be made already. */
interface ShownMap extends TrendMap {
  choice: TrendChoice;
  target: TrendTarget | null;
}

/** Statistics over steps and ranks: a map of values, and lines through its cells. */
export function TrendsView({ file }: { file: string }) {
  const api = useContext(TrendContext);
  if (!api) throw new Error('no trends above this component');
  const session = useSession();
  const t = useText();
  const wanted = useApp((state) => state.trend);
  const [info, setInfo] = useState<Load<TrendInfo>>(BUSY);
  const [choice, setChoice] = useState<TrendChoice | null>(null);
  const [missing, setMissing] = useState<string[]>([]);
  useEffect(() => {
    let gone = false;
    setInfo(BUSY);
    api.info(file).then(
      (value) => {
        if (gone) return;
        setChoice(fitChoice(value, { ...wanted, file }));
        setMissing(missingChoice(value, wanted ?? {}));
        setInfo({ at: 'ready', value });
      },
      (error: unknown) => !gone && setInfo(failure(error)),
    );
    return () => void (gone = true);
  }, [api, file, wanted]);
  if (info.at === 'failed') return <Failure failed={info} leave />;
  if (info.at !== 'ready') return <Loading />;
  if (!choice) return <Note text={t('trend.empty')} />;
  const change = (next: TrendChoice) => {
    setChoice(next);
    setMissing([]);
    session.linkTrend(formatTrendLink(next));
  };
  const { metric, stat, dimension, value } = choice;
  return (
    <>
      {missing.length > 0 && (
        <section class="strayed" role="alert" data-test="strayed">
          <span>{t('trend.strayed', { asked: missing.join(t('measure.and')), shown: [metric, stat, dimension, value].join(' ') })}</span>
          <span class="spacer" />
          <button class="icon-button" title={t('help.close')} aria-label={t('help.close')} onClick={() => setMissing([])}>
            <Icon name="close" />
          </button>
        </section>
      )}
      <TrendPage api={api} info={info.value} choice={choice} onChange={change} />
    </>
  );
}

interface PageProps {
  api: TrendApi;
  info: TrendInfo;
  choice: TrendChoice;
  onChange: (choice: TrendChoice) => void;
}

function TrendPage({ api, info, choice, onChange }: PageProps) {
  const session = useSession();
  const t = useText();
  const [map, setMap] = useState<Load<ShownMap>>(BUSY);
  const [target, setTarget] = useState<TrendTarget | null>(null); // of the map of a target
  const [lines, setLines] = useState<MarkedLine[]>([]);
  const [axis, setAxis] = useState<LineAxis>('step');
  const [mode, setMode] = useState<ScaleMode>('log');
  const [view, setView] = useState<MapView>('first');
  const [limits, setLimits] = useState<Thresholds>({ low: null, high: null });
  const asked = useRef(0);

  useEffect(() => {
    const epoch = ++asked.current;
    loadMap(api, choice, target).then(
      (loaded) => epoch === asked.current && setMap({ at: 'ready', value: { ...loaded, choice, target } }),
      (error: unknown) => epoch === asked.current && setMap(failure(error)),
    );
    setLines((before) => before.map((line) => ({ ...line, cell: null })));
  }, [api, choice, target]);
  // Lines of a second run that is not chosen any more would have no name.
  useEffect(() => setLines([]), [choice.other]);

  const pick = (cell: HeatCell) => {
    if (map.at !== 'ready') return;
    const { choice: shown } = map.value;
    const query = lineQuery(shown, map.value, cell.row, cell.column, map.value.target, axis);
    if (!query) return;
    const epoch = asked.current;
    loadLine(api, shown, query).then(
      (line) => {
        const marked = { ...line, cell: epoch === asked.current ? cell : null };
        setLines((before) => [...before.filter((other) => other.label !== line.label), marked].slice(-MOST_LINES));
      },
      (error: unknown) => session.complain(error),
    );
  };
  const drill = (row: number) => {
    const named = map.at === 'ready' ? map.value.grid.rows[row] : undefined;
    if (!named) return;
    setTarget(named);
    onChange({ ...choice, dimension: 'target', value: named.id, offset: 0 });
  };
  const looked = choice.other === null ? 'first' : view;
  return (
    <main class="trends">
      <TrendBar info={info} choice={choice} target={target} onChange={onChange} />
      <div class="trend-bar" role="group" aria-label={t('trend.look')}>
        <Segments test="trend" label={t('trend.scale')} value={mode} values={['linear', 'log', 'sigma']} text={(v) => t(SCALES[v])} onChange={setMode} />
        {choice.other !== null && (
          <Segments test="trend" label={t('trend.view')} value={looked} values={['first', 'other', 'difference']} text={(v) => t(VIEWS[v])} onChange={setView} />
        )}
        <Segments
          test="trend-order"
          label={t('trend.order')}
          value={choice.outliers ? 'outlier' : 'name'}
          values={['name', 'outlier']}
          text={(v) => t(v === 'name' ? 'trend.byName' : 'trend.byOutlier')}
          onChange={(order) => onChange({ ...choice, outliers: order === 'outlier', offset: 0 })}
        />
        <Limit label={t('trend.below')} onChange={(low) => setLimits((now) => ({ ...now, low }))} />
        <Limit label={t('trend.above')} onChange={(high) => setLimits((now) => ({ ...now, high }))} />
        <span class="spacer" />
        {map.at === 'ready' && <Pager map={map.value} choice={map.value.choice} onChange={onChange} />}
        {map.at === 'ready' && (
          <button class="icon-button" title={t('trend.csv')} aria-label={t('trend.csv')} onClick={() => save(mapCsv(map.value.choice, map.value))}>
            <Icon name="download" />
          </button>
        )}
      </div>
      <div class="trend-map">
        {map.at === 'failed' ? (
          <Failure failed={map} leave />
        ) : map.at !== 'ready' ? (
          <Loading />
        ) : map.value.labels.length === 0 ? (
          <Note text={t('trend.noRows')} />
        ) : (
          <TrendHeat choice={map.value.choice} map={map.value} mode={mode} view={looked} limits={limits} lines={lines} onPick={pick} onDrill={drill} />
        )}
      </div>
      <TrendLines
        lines={lines}
        mode={mode}
        limits={limits}
        axis={axis}
        names={[choice.file, choice.other]}
        onAxis={(next) => {
          setAxis(next);
          setLines([]);
        }}
        onClear={() => setLines([])}
      />
    </main>
  );
}

function TrendBar({ info, choice, target, onChange }: Omit<PageProps, 'api'> & { target: TrendTarget | null }) {
  const t = useText();
  const files = useApp((state) => state.files);
  const [text, setText] = useState(choice.q);
  const metric = info.metrics.find((m) => m.name === choice.metric)!;
  const others = files.at === 'ready' ? (files.value.trends ?? []).filter((entry) => entry.file !== choice.file) : [];
  const set = (change: Partial<TrendChoice>) => onChange(fitChoice(info, { ...choice, offset: 0, ...change })!);
  useEffect(() => {
    if (text === choice.q) return;
    const timer = setTimeout(() => set({ q: text }), 250);
    return () => clearTimeout(timer);
  });
  const values = choice.dimension === 'rank' ? info.ranks : info.steps;
  return (
    <div class="trend-bar" role="group" aria-label={t('trend.choose')}>
      <Chooser name="metric" label={t('trend.metric')} value={choice.metric} values={info.metrics.map((m) => m.name)} onChange={(name) => set({ metric: name })} />
      <Chooser name="stat" label={t('trend.stat')} value={choice.stat} values={metric.stats} onChange={(stat) => set({ stat })} />
      <Segments
        test="trend"
        label={t('trend.dimension')}
        value={choice.dimension}
        values={choice.dimension === 'target' ? ['rank', 'step', 'target'] : ['rank', 'step']}
        text={(v) => t(DIMENSIONS[v])}
        onChange={(dimension) => dimension !== 'target' && set({ dimension, value: -1 })}
      />
      {choice.dimension === 'target' ? (
        <code class="trend-target">{target ? targetLabel(target) : choice.value}</code>
      ) : (
        <Chooser
          name="value"
          label={t(choice.dimension === 'rank' ? 'select.rank' : 'select.step')}
          value={String(choice.value)}
          values={values.map(String)}
          onChange={(value) => set({ value: Number(value) })}
        />
      )}
      {choice.dimension !== 'target' && (
        <>
          <input class="trend-search" data-test="trend-search" type="search" aria-label={t('trend.search')} placeholder={t('trend.search')} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <Tags metric={metric} choice={choice} onChange={(tags) => set({ tags })} />
        </>
      )}
      <span class="spacer" />
      {others.length > 0 && (
        <label class="chooser">
          {t('trend.other')}
          <select data-test="trend-second" value={choice.other ?? ''} onChange={(event) => set({ other: event.currentTarget.value || null })}>
            <option value="">{t('trend.none')}</option>
            {others.map((entry) => (
              <option key={entry.file} value={entry.file}>
                {entry.file}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

/** Chosen tags as chips, and a list to add one; a target has all that are chosen. */
function Tags({ metric, choice, onChange }: { metric: TrendInfo['metrics'][number]; choice: TrendChoice; onChange: (tags: string[]) => void }) {
  const t = useText();
  const kinds = useMemo(() => {
    const groups = new Map<string, string[]>();
    for (const { name, category } of metric.tags) {
      const names = groups.get(category);
      if (names) names.push(name);
      else groups.set(category, [name]);
    }
    return [...groups].sort(([a], [b]) => a.localeCompare(b));
  }, [metric]);
  if (kinds.length === 0) return null;
  return (
    <>
      {choice.tags.map((tag) => (
        <button key={tag} class="count" aria-label={t('trend.removeTag', { tag })} onClick={() => onChange(choice.tags.filter((other) => other !== tag))}>
          {tag}
          <Icon name="close" />
        </button>
      ))}
      <select
        class="trend-tags"
        data-test="trend-tags"
        aria-label={t('trend.addTag')}
        value=""
        onChange={(event) => {
          const tag = event.currentTarget.value;
          event.currentTarget.value = '';
          if (tag && !choice.tags.includes(tag)) onChange([...choice.tags, tag]);
        }}
      >
        <option value="">{t('trend.addTag')}</option>
        {kinds.map(([kind, names]) => (
          <optgroup key={kind} label={kind in KINDS ? t(KINDS[kind as keyof typeof KINDS]) : kind}>
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </optgroup>
        ))}
      </select>
    </>
  );
}

function Chooser({ name, label, value, values, onChange }: { name: string; label: string; value: string; values: string[]; onChange: (value: string) => void }) {
  return (
    <label class="chooser">
      {label}
      <select data-test={`trend-${name}`} value={value} disabled={values.length < 2} onChange={(event) => onChange(event.currentTarget.value)}>
        {values.map((text) => (
          <option key={text}>{text}</option>
        ))}
      </select>
    </label>
  );
}

function Limit({ label, onChange }: { label: string; onChange: (value: number | null) => void }) {
  const [bad, setBad] = useState(false);
  const read = (text: string) => {
    const value = parseThreshold(text);
    setBad(value === undefined);
    if (value !== undefined) onChange(value);
  };
  return (
    <label class="chooser">
      {label}
      <input class="trend-limit" inputMode="decimal" aria-invalid={bad} size={7} onInput={(event) => read(event.currentTarget.value)} />
    </label>
  );
}

function Pager({ map, choice, onChange }: { map: TrendMap; choice: TrendChoice; onChange: (choice: TrendChoice) => void }) {
  const t = useText();
  const { total } = map.grid;
  const last = choice.offset + map.labels.length;
  if (choice.offset === 0 && last === total) return <span class="muted">{t('trend.rows', { count: total })}</span>;
  return (
    <span class="chooser">
      <button class="icon-button" aria-label={t('trend.previous')} disabled={choice.offset === 0} onClick={() => onChange({ ...choice, offset: Math.max(0, choice.offset - PAGE_ROWS) })}>
        <Icon name="up" />
      </button>
      {t('trend.page', { from: choice.offset + 1, to: last, total })}
      <button class="icon-button" aria-label={t('trend.next')} disabled={last >= total} onClick={() => onChange({ ...choice, offset: last })}>
        <Icon name="down" />
      </button>
    </span>
  );
}

function save(text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = 'trend.csv';
  link.click();
  URL.revokeObjectURL(link.href);
}
