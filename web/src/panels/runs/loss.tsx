import { useEffect, useMemo, useState } from 'preact/hooks';
import type { RunApi, RunEvent, RunInfo } from '../../api/runs';
import type { RunChoice } from '../../model/run_choice';
import { lossOf } from '../../model/run_choice';
import type { Extent, StepWindow } from '../../model/run_view';
import { useText } from '../context';
import { useRunLines } from './line_loader';
import { LineChart } from './lines';

interface Props {
  api: RunApi;
  info: RunInfo;
  choice: RunChoice;
  otherRank: number | null;
  window: StepWindow;
  extent: Extent;
  events: RunEvent[];
  step: number | null;
  left: number;
}

/** The loss over the steps of the map, above it: what all else is about. */
export function RunLoss({ api, info, choice, otherRank, window, extent, events, step, left }: Props) {
  const t = useText();
  const shown = useMemo(() => lossOf(info, choice), [info, choice]);
  const [labels, setLabels] = useState<string[]>([]);
  const { run, rank } = choice;
  const metric = shown?.metric;
  useEffect(() => {
    let gone = false;
    if (!shown) return setLabels([]);
    api.rows(shown).then(
      ({ rows }) => !gone && setLabels((now) => (now[0] === rows[0]?.label ? now : rows.slice(0, 1).map((row) => row.label))),
      () => undefined, // a rank of an earlier stage of a pipeline has none
    );
    return () => void (gone = true);
  }, [api, run, rank, metric]);
  const { lines, bins } = useRunLines(api, shown ?? choice, otherRank, labels, window, extent, info.version);
  if (!shown || lines.length === 0) return null;
  return (
    <section class="run-loss" data-test="run-loss" aria-label={t('run.loss')}>
      <LineChart lines={lines} bins={bins} window={window} mode="linear" events={events} stat={t('run.loss')} step={step} left={left} flat />
    </section>
  );
}
