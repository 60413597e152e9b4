import { useEffect, useReducer } from 'preact/hooks';
import type { RunChoice } from '../../model/run_choice';
import { useApp, useSession, useText } from '../context';

const MOST = 3;
const NONE: never[] = [];

/** "module.layers.3.mlp.fc1.weight #0" -> "layers.3.mlp.fc1": what the names of its modules have in common. */
export function moduleOf(label: string): string {
  return label
    .replace(/ .*$/, '')
    .replace(/^module\./, '')
    .replace(/\.(weight|bias)$/, '');
}

/** Graphs of the dumps of these steps, where there are any: a click shows the module there. */
export function RunGraphs({ choice, label, steps }: { choice: RunChoice; label: string; steps: [from: number, to: number] }) {
  const session = useSession();
  const t = useText();
  const files = useApp((state) => (state.files.at === 'ready' ? state.files.value.files : NONE));
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => session.notes.onChange(() => redraw(undefined)), [session]);
  useEffect(() => {
    session.notes.ask([...files].sort((a, b) => b.mtime - a.mtime).map(({ file }) => file));
    return () => session.notes.ask([]);
  }, [session, files]);
  const found = files.flatMap(({ file }) => {
    const config = session.notes.of(file)?.config;
    const step = config?.ranks.includes(choice.rank) && config.steps.find((each) => each >= steps[0] && each < steps[1]);
    return typeof step === 'number' ? [{ file, step }] : [];
  });
  if (found.length === 0) return null;
  return (
    <span class="run-graphs">
      {found.slice(0, MOST).map(({ file, step }) => (
        <button
          key={file}
          class="button"
          data-test="run-graph"
          title={t('run.graphHint', { file })}
          onClick={() => void session.open({ file, step, rank: choice.rank, filter: { side: 'NPU', query: moduleOf(label), levels: [], leaves: false, sort: 'execution' } })}
        >
          {t('run.graph', { step })}
        </button>
      ))}
    </span>
  );
}
