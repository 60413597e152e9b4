import { createContext } from 'preact';
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RunApi, RunEvent, RunFound, RunInfo, RunRows } from '../../api/runs';
import { failure } from '../../model/failure';
import { BUSY, type Load } from '../../model/load';
import { choiceOf, fitRunChoice, formatRunLink, isBare, leadingOf, rowsOf, type RunChoice } from '../../model/run_choice';
import { runScale } from '../../model/run_scale';
import { RunTiles } from '../../model/run_tiles';
import { boundWindow, TILE_BINS, wholeWindow, type Extent, type StepWindow } from '../../model/run_view';
import type { MapView } from '../../model/trends';
import type { RunPicture } from '../../render/run_map';
import { useApp, useSession, useText } from '../context';
import { Icon } from '../icons';
import { RunBar, RunLook } from './bar';
import { RunEvents } from './events';
import { RunLines } from './lines';
import { RunLoss } from './loss';
import { mapHeight, RunMap, type RunCellPlace } from './map';
import { useRunLines } from './line_loader';
import { Failure, Loading, Note } from '../states';

const LIVE_SECONDS = 300; // after the last write
const POLL = { reading: 150, live: 2000, ended: 20000, judging: 1500 }; // ms
const MOST_LINES = 8;

export const RunContext = createContext<RunApi | null>(null);

/** A monitored run, live or finished: layers over steps, and lines through them. */
export function RunView({ run }: { run: string }) {
  const api = useContext(RunContext);
  const session = useSession();
  const t = useText();
  const wanted = useApp((state) => state.trend?.run);
  const [info, setInfo] = useState<Load<RunInfo>>(BUSY);
  // Of the link that it was made for: another one chooses anew. The files of an export answer before any effect runs.
  const [made, setMade] = useState<{ of: typeof wanted; choice: RunChoice | null } | null>(null);
  const choice = made?.of === wanted && made?.choice?.run === run ? made.choice : null;
  const setChoice = (next: RunChoice | null) => setMade({ of: wanted, choice: next });
  const [missing, setMissing] = useState<string[]>([]);
  const rank = choice?.rank ?? wanted?.rank;
  useLayoutEffect(() => {
    if (!api) return;
    let [gone, timer, first] = [false, 0, true];
    const look = async () => {
      let wait = POLL.ended;
      try {
        // A rank that the link names and the run does not have is said so, and the first is shown.
        const value = await api.info(run, rank).catch((error: unknown) => (rank === undefined ? Promise.reject(error) : api.info(run)));
        if (gone) return;
        setInfo({ at: 'ready', value });
        setMade((now) => (now?.of === wanted && now?.choice?.run === run ? now : { of: wanted, choice: fitRunChoice(value, { ...wanted, run }) }));
        if (first && wanted) setMissing(missingOf(value, wanted));
        first = false;
        wait = value.behind ? POLL.reading : isLive(value) ? POLL.live : POLL.ended;
      } catch (error) {
        if (gone) return;
        setInfo((now) => (now.at === 'ready' ? now : failure(error)));
      }
      timer = window.setTimeout(() => void look(), wait);
    };
    void look();
    return () => void ((gone = true), window.clearTimeout(timer));
  }, [api, run, rank, wanted]);
  if (!api) return null;
  if (info.at === 'failed') return <Failure failed={info} leave />;
  if (info.at !== 'ready') return <Loading />;
  if (!choice) return <Note text={t('run.empty')} />;
  const change = (next: RunChoice) => {
    setChoice(next);
    setMissing([]);
    session.linkTrend(formatRunLink(next));
  };
  return (
    <>
      {missing.length > 0 && (
        <section class="strayed" role="alert" data-test="strayed">
          <span>{t('run.strayed', { asked: missing.join(t('measure.and')) })}</span>
          <span class="spacer" />
          <button class="icon-button" title={t('help.close')} aria-label={t('help.close')} onClick={() => setMissing([])}>
            <Icon name="close" />
          </button>
        </section>
      )}
      <RunPage key={run} api={api} info={info.value} choice={choice} bare={isBare(wanted)} onChange={change} />
    </>
  );
}

function isLive({ health, changed }: RunInfo): boolean {
  return health ? health === 'running' || health === 'behind' || health === 'hung' : Date.now() / 1000 - changed < LIVE_SECONDS;
}

function missingOf(info: RunInfo, { metric, stat, rank }: Partial<RunChoice>): string[] {
  const known = info.metrics.find((m) => m.name === metric);
  return [
    ...(rank !== undefined && !info.ranks.includes(rank) ? [`rank ${rank}`] : []),
    ...(metric !== undefined && !known ? [`metric ${metric}`] : []),
    ...(stat !== undefined && known && !known.stats.includes(stat) ? [`stat ${stat}`] : []),
  ];
}

/** What the map of a run needs, of one run or of both. */
function useRunData(api: RunApi, info: RunInfo, choice: RunChoice, redraw: () => void) {
  const session = useSession();
  const { run, rank, metric, stat, fold, q, cell, other } = choice;
  const source = useMemo(() => ({ run, rank, metric, stat, fold, q, cell }), [run, rank, metric, stat, fold, q, cell]);
  const [rows, setRows] = useState<{ of: object; value: Load<RunRows> }>({ of: source, value: BUSY });
  const [second, setSecond] = useState<{ rank: number; rows: RunRows } | null>(null);
  const asked = useRef({ of: null as object | null, at: 0, version: -1 });
  const series = info.metrics.find((m) => m.name === metric)?.series ?? 0;
  // Rows say where values lie: again when there are more series, and now and then while the run grows.
  useLayoutEffect(() => {
    const { of, at, version } = asked.current;
    const fresh = of !== source;
    if (!fresh && (version === info.version || Date.now() - at < 10_000)) return;
    asked.current = { of: source, at: Date.now(), version: info.version };
    const load = () =>
      api.rows(source).then(
        (value) => {
          if (asked.current.of !== source) return;
          setRows({ of: source, value: { at: 'ready', value } });
          if (value.behind) setTimeout(() => void load(), POLL.reading); // it knows more each time
        },
        (error: unknown) => asked.current.of === source && setRows({ of: source, value: failure(error) }),
      );
    void load();
  }, [api, source, info.version, series]);
  // Tiles that come together are drawn together.
  const frame = useRef(0);
  const failed = (error?: unknown) => {
    if (error) return session.complain(error);
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(redraw);
  };
  const tiles = useMemo(() => new RunTiles(api, source, failed), [api, source, series]);
  useEffect(() => () => tiles.close(), [tiles]);
  tiles.setVersion(info.version);
  useEffect(() => {
    setSecond(null);
    if (other === null) return;
    let gone = false;
    void (async () => {
      try {
        const there = await api.info(other);
        const same = there.ranks.includes(rank) ? rank : (there.ranks[0] ?? 0);
        const known = await api.rows({ ...source, run: other, rank: same });
        if (!gone) setSecond({ rank: same, rows: known });
      } catch (error) {
        if (!gone) session.complain(error);
      }
    })();
    return () => void (gone = true);
  }, [api, source, other]);
  const otherTiles = useMemo(
    () => (second && other !== null ? new RunTiles(api, { ...source, run: other, rank: second.rank, as: run, as_rank: rank }, failed) : null),
    [api, source, second],
  );
  useEffect(() => () => otherTiles?.close(), [otherTiles]);
  return { rows: rows.of === source ? rows.value : BUSY, tiles, second, otherTiles };
}

interface PageProps {
  api: RunApi;
  info: RunInfo;
  choice: RunChoice;
  bare: boolean; // nobody has chosen what is shown
  onChange: (choice: RunChoice) => void;
}

function RunPage({ api, info, choice, bare, onChange }: PageProps) {
  const t = useText();
  const [, draw] = useState(0);
  const [view, setView] = useState<MapView>('first');
  const [fit, setFit] = useState(false);
  const [active, setActive] = useState<RunCellPlace | null>(null);
  const [names, setNames] = useState(110); // width of the column of names, which the chart leaves free, too
  const [labels, setLabels] = useState<string[]>([]);
  const [found, setFound] = useState<RunFound>({ events: [] });
  const { events } = found;
  const { rows, tiles, second, otherTiles } = useRunData(api, info, choice, () => draw((count) => count + 1));
  const extent: Extent = { first: info.first_step, last: info.last_step, interval: info.interval };
  const window = choice.steps ? boundWindow({ from: choice.steps[0], to: choice.steps[1] }, extent) : wholeWindow(extent);
  const latest = useRef({ choice, onChange }); // of the timer below
  latest.current = { choice, onChange };
  const linked = useRef(0);
  const [moved, setMoved] = useState<StepWindow | null>(null); // the address follows when it rests
  useEffect(() => setMoved(null), [choice]);
  const shown = moved ?? window;
  const onWindow = (next: StepWindow) => {
    setMoved(next);
    clearTimeout(linked.current);
    const all = wholeWindow(extent);
    const steps: [number, number] | null = next.from <= all.from && next.to >= all.to ? null : [Math.floor(next.from), Math.ceil(next.to)];
    linked.current = setTimeout(() => latest.current.onChange({ ...latest.current.choice, steps }), 400) as unknown as number;
  };
  useEffect(() => {
    let [gone, timer] = [false, 0];
    const ask = () =>
      void api.events(choice.run).then(
        (told) => {
          if (gone) return;
          setFound(told);
          if (told.judging) timer = globalThis.setTimeout(ask, POLL.judging) as unknown as number;
        },
        () => !gone && setFound({ events: [] }),
      );
    ask();
    return () => void ((gone = true), clearTimeout(timer));
  }, [api, choice.run, Math.floor(info.version / 50), info.health]);

  const value = rows.at === 'ready' ? rows.value : null;
  const looked = choice.other === null || !second ? 'first' : view;
  const scale = useMemo(() => (value ? runScale(choice.scale, second ? [value, second.rows] : [value]) : null), [value, second, choice.scale]);
  const coarsest = Math.max(0, Math.ceil(Math.log2((info.last_step + info.interval) / info.interval / TILE_BINS)));
  const ownEvents = useMemo(() => events.filter((event) => event.rank < 0 || event.rank === choice.rank), [events, choice.rank]);
  const { lines, bins } = useRunLines(api, choice, second?.rank ?? null, labels, shown, extent, info.version);
  const picture: RunPicture | null = value && {
    rows: value.rows,
    tiles,
    other: otherTiles,
    view: looked,
    scale,
    interval: info.interval,
    coarsest,
    events: ownEvents,
    marked: labels,
    title: t('select.step'),
  };
  /** Its steps, in the metric and on the rank that show it, with the lines of what began it. */
  const onEvent = (event: RunEvent) => {
    const { from, to } = around(event.step, shown, extent);
    const next = choiceOf(info, choice, event);
    onChange({ ...next, steps: [Math.floor(from), Math.ceil(to)] });
    setLabels(rowsOf(event, next.fold).slice(0, MOST_LINES));
  };
  // A run is opened at what does most harm in it, unless somebody has looked at something else first.
  const opens = useRef({ bare, choice });
  useEffect(() => {
    const lead = opens.current.bare && opens.current.choice === choice ? leadingOf(info, events) : null;
    if (!lead) return;
    opens.current.bare = false;
    onEvent(lead);
  }, [events]);
  // The lines of the first finding that the map shows stand there until others are chosen.
  const culprits = useMemo(() => events.find((event) => event.metric === choice.metric && event.stat === choice.stat && (event.rows ?? []).length > 0), [events, choice.metric, choice.stat]);
  const untouched = useRef(true);
  useEffect(() => {
    if (untouched.current && culprits) setLabels(rowsOf(culprits, choice.fold).slice(0, MOST_LINES));
  }, [culprits]);
  const pick = (cell: RunCellPlace) => {
    untouched.current = false;
    const label = value?.rows[cell.row]?.label;
    if (label !== undefined) setLabels((now) => (now.includes(label) ? now : [...now, label].slice(-MOST_LINES)));
  };
  // Rows of another choice are other rows.
  useEffect(() => setLabels([]), [choice.fold, choice.run]);
  return (
    <main class="trends runs">
      <RunBar info={info} choice={choice} onChange={onChange} />
      <RunLook
        info={info}
        choice={choice}
        rows={value}
        scale={scale}
        view={looked}
        fit={fit}
        active={active}
        events={ownEvents}
        tiles={looked === 'other' && otherTiles ? otherTiles : tiles}
        whole={shown.to - shown.from >= wholeWindow(extent).to - extent.first}
        window={shown}
        onChange={onChange}
        onView={setView}
        onFit={setFit}
        onWhole={() => onWindow(wholeWindow(extent))}
      />
      <RunLoss api={api} info={info} choice={choice} otherRank={second?.rank ?? null} window={shown} extent={extent} events={ownEvents} step={active?.step ?? null} left={names} />
      <div class="trend-map" style={{ flexBasis: `${mapHeight(value?.rows.length ?? 20)}px` }}>
        {rows.at === 'failed' ? (
          <Failure failed={rows} leave />
        ) : !picture ? (
          <Loading />
        ) : picture.rows.length === 0 ? (
          <Note text={t('run.noRows')} />
        ) : (
          <RunMap picture={picture} extent={extent} window={shown} fit={fit} onWindow={onWindow} onActive={setActive} onPick={pick} onNames={setNames} painted={markPainted} />
        )}
      </div>
      {(events.length > 0 || found.judging || found.unjudged) && <RunEvents found={found} rank={choice.rank} onEvent={onEvent} />}
      <RunLines
        lines={lines}
        bins={bins}
        window={shown}
        mode={choice.scale}
        events={ownEvents}
        names={[choice.run, choice.other]}
        stat={`${choice.metric} ${choice.stat}`}
        step={active?.step ?? null}
        left={names}
        onRemove={(label) => ((untouched.current = false), setLabels((now) => now.filter((each) => each !== label)))}
        onClear={() => ((untouched.current = false), setLabels([]))}
      />
    </main>
  );
}

/** A tenth of the run around a step, or less when less is shown already. */
function around(step: number, shown: StepWindow, extent: Extent): StepWindow {
  const span = Math.min(shown.to - shown.from, (extent.last - extent.first) / 10);
  return boundWindow({ from: step - span / 2, to: step + span / 2 }, extent);
}

/** When all of the first screen was drawn, for measurements. */
function markPainted(settled: boolean): void {
  const { body } = document;
  if (settled && !body.dataset['runPainted']) body.dataset['runPainted'] = String(Math.round(performance.now()));
}
