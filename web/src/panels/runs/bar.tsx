import { useEffect, useState } from 'preact/hooks';
import { NO_VALUE, RUN_CELLS, RUN_FOLDS, type RunEvent, type RunInfo, type RunRows } from '../../api/runs';
import { grouped } from '../../model/format';
import { fitRunChoice, type RunChoice } from '../../model/run_choice';
import { REACH, type RunScale } from '../../model/run_scale';
import type { RunTiles } from '../../model/run_tiles';
import { TILE_BINS, TILE_ROWS, tileSteps, type StepWindow } from '../../model/run_view';
import { valueText } from '../../model/trend_scale';
import type { MapView } from '../../model/trends';
import { heatColor } from '../../render/heat_map';
import { useApp, usePalette, useText } from '../context';
import { Icon } from '../icons';
import { RunGraphs } from './graphs';
import type { RunCellPlace } from './map';
import { Segments } from '../segments';

const SCALES = { linear: 'trend.linear', log: 'trend.log', sigma: 'trend.sigma' } as const;
const VIEWS = { first: 'trend.view.first', other: 'trend.view.other', difference: 'trend.view.difference' } as const;
const FOLDS = { layer: 'run.fold.layer', none: 'run.fold.none' } as const;
const CELLS = { highest: 'run.cell.highest', mean: 'run.cell.mean', lowest: 'run.cell.lowest' } as const;
const LIVE_SECONDS = 300;

interface BarProps {
  info: RunInfo;
  choice: RunChoice;
  onChange: (choice: RunChoice) => void;
}

/** What is shown: metric, statistic, rank, rows, second run. */
export function RunBar({ info, choice, onChange }: BarProps) {
  const t = useText();
  const files = useApp((state) => state.files);
  const [text, setText] = useState(choice.q);
  const metric = info.metrics.find((m) => m.name === choice.metric);
  const others = files.at === 'ready' ? (files.value.runs ?? []).filter((entry) => entry.file !== choice.run) : [];
  const set = (change: Partial<RunChoice>) => onChange(fitRunChoice(info, { ...choice, ...change })!);
  useEffect(() => {
    if (text === choice.q) return;
    const timer = setTimeout(() => set({ q: text }), 250);
    return () => clearTimeout(timer);
  });
  return (
    <div class="trend-bar" role="group" aria-label={t('trend.choose')}>
      <Choose name="metric" label={t('trend.metric')} value={choice.metric} values={info.metrics.map((m) => m.name)} onChange={(name) => set({ metric: name })} />
      <Choose name="stat" label={t('trend.stat')} value={choice.stat} values={metric?.stats ?? []} onChange={(stat) => set({ stat })} />
      <RankField info={info} rank={choice.rank} onChange={(rank) => set({ rank })} />
      <Segments test="run-fold" label={t('run.rows')} value={choice.fold} values={RUN_FOLDS} text={(v) => t(FOLDS[v])} onChange={(fold) => set({ fold })} />
      <input class="trend-search" data-test="run-search" type="search" aria-label={t('trend.search')} placeholder={t('trend.search')} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <span class="spacer" />
      {others.length > 0 && (
        <label class="chooser">
          {t('trend.other')}
          <select data-test="run-second" value={choice.other ?? ''} onChange={(event) => set({ other: event.currentTarget.value || null })}>
            <option value="">{t('trend.none')}</option>
            {others.map((entry) => (
              <option key={entry.file}>{entry.file}</option>
            ))}
          </select>
        </label>
      )}
      <RunState info={info} />
    </div>
  );
}

/** A number with arrows: a list of 1,024 ranks is no choice. */
function RankField({ info, rank, onChange }: { info: RunInfo; rank: number; onChange: (rank: number) => void }) {
  const t = useText();
  const [bad, setBad] = useState<string | null>(null);
  const { ranks } = info;
  const read = (text: string) => {
    const value = Number(text);
    const known = text !== '' && ranks.includes(value);
    setBad(known ? null : text);
    if (known && value !== rank) onChange(value);
  };
  const hint = bad ? t('run.noRank', { rank: bad }) : t('run.rankHint', { count: grouped(ranks.length), first: ranks[0] ?? 0, last: ranks.at(-1) ?? 0 });
  return (
    <label class="chooser" title={hint}>
      {t('select.rank')}
      <input class="run-rank" data-test="run-rank" type="number" min={ranks[0]} max={ranks.at(-1)} disabled={ranks.length < 2} aria-label={t('run.rank')} aria-invalid={bad !== null} value={rank} onInput={(event) => read(event.currentTarget.value)} />
      {bad && <span role="status">{hint}</span>}
    </label>
  );
}

/** 2026-11-25 18:24. Intl loads tables for every language first, a tenth of a second. */
function timeText(seconds: number): string {
  const at = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** Whether the run still writes. */
function RunState({ info }: { info: RunInfo }) {
  const t = useText();
  const step = grouped(info.last_step);
  const { health, ranks_with_it: ranks = [] } = info;
  // A run without heartbeats is told by the time of its last write.
  const live = health ? health === 'running' || health === 'behind' : Date.now() / 1000 - info.changed < LIVE_SECONDS;
  const bad = health === 'hung' || health === 'killed' || health === 'failed';
  const told = health === undefined ? (live ? t('run.live', { step }) : t('run.ended', { step, time: timeText(info.changed) })) : t(`run.health.${health}`, { step, ranks: ranks.join(', '), time: timeText(info.changed) });
  return (
    <span class={`run-state ${bad || health === 'behind' ? 'bad' : 'muted'}`} data-test="run-state" data-step={info.last_step} data-health={health}>
      <span class={`run-dot ${bad ? 'bad' : live ? 'live' : ''}`} />
      {info.behind ? t('run.behind', { step }) : told}
      {info.cut_rows > 0 && <span data-test="run-cut"> · {t('run.cut', { rows: grouped(info.cut_rows), file: info.cut_file })}</span>}
    </span>
  );
}

interface LookProps extends BarProps {
  rows: RunRows | null;
  scale: RunScale | null;
  view: MapView;
  fit: boolean;
  active: RunCellPlace | null;
  events: RunEvent[];
  tiles: RunTiles;
  whole: boolean;
  window: StepWindow;
  onView: (view: MapView) => void;
  onFit: (fit: boolean) => void;
  onWhole: () => void;
}

/** How it is shown, and what the pointed cell holds. */
export function RunLook(props: LookProps) {
  const { choice, onChange, rows, view, fit, onView, onFit, whole, onWhole } = props;
  const t = useText();
  return (
    <>
      <div class="trend-bar" role="group" aria-label={t('trend.look')}>
        <Segments test="run" label={t('trend.scale')} value={choice.scale} values={['linear', 'log', 'sigma']} text={(v) => t(SCALES[v])} onChange={(scale) => onChange({ ...choice, scale })} />
        <Segments test="run" label={t('run.cell')} value={choice.cell} values={RUN_CELLS} text={(v) => t(CELLS[v])} onChange={(cell) => onChange({ ...choice, cell })} />
        <Segments test="run" label={t('run.height')} value={fit ? 'fit' : 'read'} values={['read', 'fit']} text={(v) => t(v === 'fit' ? 'run.height.fit' : 'run.height.read')} onChange={(v) => onFit(v === 'fit')} />
        {choice.other !== null && <Segments test="run" label={t('trend.view')} value={view} values={['first', 'other', 'difference']} text={(v) => t(VIEWS[v])} onChange={onView} />}
        <button class="text-button" data-test="run-whole" disabled={whole} onClick={onWhole}>
          <Icon name="reload" />
          {t('run.whole')}
        </button>
        <span class="spacer" />
        {rows && <span class="muted">{t('trend.rows', { count: grouped(rows.rows.length) })}</span>}
      </div>
      <div class="trend-read">
        <span class="trend-readout" data-test="run-readout" aria-live="polite">
          {useReadout(props)}
        </span>
        {props.active && <RunGraphs choice={choice} label={rows?.rows[props.active.row]?.label ?? ''} steps={binSteps(props) ?? [props.active.step, props.active.step + 1]} />}
        {rows && rows.odd > 0 && (
          <span class="trend-legend" data-test="run-odd">
            <span class="trend-special nan" />
            <span class="trend-special infinite" />
            {t('run.odd', { count: grouped(rows.odd) })}
          </span>
        )}
        <RunLegend {...props} />
      </div>
    </>
  );
}

/** The steps of the pointed cell, as the finest tile that holds it has them. */
function held({ tiles, active, info, window }: LookProps) {
  if (!active) return null;
  for (let level = 0; level < 31; level++) {
    const steps = tileSteps(level, info.interval);
    if (steps < (window.to - window.from) / 64) continue;
    const column = Math.floor(active.step / steps);
    const tile = tiles.get({ level, column, page: Math.floor(active.row / TILE_ROWS) });
    if (!tile) continue;
    const width = steps / TILE_BINS;
    const bin = Math.floor((active.step - column * steps) / width);
    const value = tile.values[(active.row % TILE_ROWS) * tile.bins + bin];
    return { from: column * steps + bin * width, width, value: value === undefined || value === NO_VALUE ? null : value };
  }
  return null;
}

function binSteps(props: LookProps): [number, number] | null {
  const cell = held(props);
  return cell && [cell.from, cell.from + cell.width];
}

function useReadout(props: LookProps): string {
  const { active, rows, info, events } = props;
  const t = useText();
  const row = active && rows?.rows[active.row];
  if (!active || !row) return t('run.hint');
  const cell = held(props);
  const last = cell ? cell.from + cell.width - info.interval : active.step;
  const step = !cell || last <= cell.from ? `${t('select.step')} ${Math.floor(cell?.from ?? active.step)}` : t('run.steps', { from: cell.from, to: last });
  const near = cell ? events.filter((event) => event.step >= cell.from && event.step < cell.from + cell.width).slice(0, 2) : [];
  return [row.label, ...(row.series > 1 ? [t('run.of', { count: row.series })] : []), step, ...(cell ? [valueText(cell.value)] : []), ...near.map((event) => `${event.series} ${event.text}`)].join(' · ');
}

function RunLegend({ scale, view }: LookProps) {
  const t = useText();
  const palette = usePalette();
  if (!scale) return null;
  const sigma = scale.mode === 'sigma';
  const difference = view === 'difference';
  const diverging = sigma || difference;
  const [low, high] = difference ? ['-100 %', '+100 %'] : sigma ? [`-${REACH} σ`, `+${REACH} σ`] : [`≤ ${valueText(scale.low)}`, `≥ ${valueText(scale.high)}`];
  return (
    <span class="trend-legend" data-test="run-legend">
      {low}
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        {Array.from({ length: 20 }, (_, i) => (
          <rect key={i} x={i * 5} width="5.2" height="10" fill={heatColor(i / 19, diverging, palette)} />
        ))}
      </svg>
      {high}
      {sigma && !difference && ` ${t('run.sigma')}`}
    </span>
  );
}

function Choose({ name, label, value, values, onChange }: { name: string; label: string; value: string; values: string[]; onChange: (value: string) => void }) {
  return (
    <label class="chooser">
      {label}
      <select data-test={`run-${name}`} value={value} disabled={values.length < 2} onChange={(event) => onChange(event.currentTarget.value)}>
        {values.map((text) => (
          <option key={text}>{text}</option>
        ))}
      </select>
    </label>
  );
}
