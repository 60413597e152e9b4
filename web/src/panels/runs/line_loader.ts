import { useEffect, useRef, useState } from 'preact/hooks';
import type { RunApi, RunBands } from '../../api/runs';
import type { RunChoice } from '../../model/run_choice';
import { levelFor, type Extent, type StepWindow } from '../../model/run_view';
import type { LineBins, RunLine } from './lines';

const BINS = 500; // across the chart
const REST = 120; // ms that a window rests before lines are asked for

interface Loaded {
  labels: string[];
  bins: LineBins;
  bands: RunBands;
  other: RunBands | null;
}

/** The lines of some rows in the steps shown; until finer ones are there, those of before. */
export function useRunLines(api: RunApi, choice: RunChoice, otherRank: number | null, labels: string[], window: StepWindow, extent: Extent, version: number): { lines: RunLine[]; bins: LineBins | null } {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const asked = useRef(0);
  const { run, other, rank, metric, stat, fold, cell } = choice;
  const { from, to } = window;
  useEffect(() => {
    const epoch = ++asked.current;
    if (labels.length === 0) return setLoaded(null);
    const timer = setTimeout(() => {
      const level = levelFor(window, BINS, extent.interval);
      const width = extent.interval * 2 ** level;
      const first = Math.floor(from / width);
      const bins = Math.min(2048, Math.ceil(to / width) - first);
      const query = { metric, stat, fold, cell, q: '', level, from: first, bins, offset: 0, limit: labels.length, labels };
      const second = other !== null && otherRank !== null ? api.bands({ ...query, run: other, rank: otherRank }).catch(() => null) : null; // the run may not have it
      Promise.all([api.bands({ ...query, run, rank }), second]).then(
        ([bands, more]) => epoch === asked.current && setLoaded({ labels, bins: { from: first * width, width, bins }, bands, other: more }),
        () => undefined, // the map says what is wrong
      );
    }, REST);
    return () => clearTimeout(timer);
  }, [api, run, other, otherRank, rank, metric, stat, fold, cell, labels, from, to, version]);
  const lines = labels.map((label): RunLine => {
    const row = loaded?.labels.indexOf(label) ?? -1;
    return { label, row: Math.max(0, row), bands: row < 0 ? null : loaded!.bands, other: row < 0 ? null : loaded!.other };
  });
  return { lines, bins: loaded?.bins ?? null };
}
