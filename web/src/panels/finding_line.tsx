import { FINDING_KINDS, type Finding, type FindingKind, type Precision } from '../api/types';
import type { Translate } from '../i18n';
import { measurePercent, percentText, type NodeFigures } from '../model/findings';
import { measureText } from '../model/layers';
import { useApp, useSession, useText } from './context';
import { useFigures } from './figures';
import { ServerLine } from './states';
import { StatusDot } from './status_dot';

const TALKS = ['missing_call', 'call_order', 'no_partner', 'call_data', 'call_root', 'replica', 'layout', 'suspect_rank'];

export function FindingLine({ finding }: { finding: Finding }) {
  const session = useSession();
  const t = useText();
  const { kind, name, side, text, precision } = finding;
  const checksums = useApp((state) => state.config?.task === 'md5');
  const known = (FINDING_KINDS as readonly string[]).includes(kind);
  const table = useFigures(side, name, precision !== null && name !== '');
  return (
    <li>
      <button class="finding" title={name} data-test={`finding-${kind}`} disabled={!name} onClick={() => void session.goTo(side, name)}>
        <StatusDot status={/overflow|parameter|gradient/.test(kind) ? 'critical' : kind === 'origin' ? 'bug' : kind === 'first_error' ? 'error' : 'warning'} />
        <span>
          <strong>{known ? t(`finding.${kind as FindingKind}`) : kind}</strong> <span class="finding-name">{name}</span>
          {side === 'Bench' && <span class="muted"> {t('side.Bench')}</span>}
          {precision && table && <span class="muted finding-figures">{figures(precision, table, checksums, t)}</span>}
          {TALKS.includes(kind) && (
            <span class="muted finding-figures">
              <ServerLine text={text} />
            </span>
          )}
        </span>
      </button>
    </li>
  );
}

/** "differs by 25 %, 1.2e+6 × what rounding explains, inputs and weights by 3e-8 %". */
function figures({ error, units, input_error: input }: Precision, table: NodeFigures, checksums: boolean, t: Translate): string {
  const parts = [
    error !== null && outputText(error, table.output, checksums, t),
    units !== null && error !== 'inf' && (units === 'inf' || units >= 1) && t('measure.units', { value: measureText(units) }),
    input !== null && inputText(input, table.input, checksums, t),
  ];
  return parts.filter(Boolean).join(t('measure.and'));
}

function outputText(error: number | 'inf', percent: number | null, checksums: boolean, t: Translate): string {
  if (error === 'inf') return t(checksums ? 'measure.sums' : 'measure.kind');
  return t('measure.error', { value: percent === null ? measurePercent(error) : percentText(percent) });
}

function inputText(input: number | 'inf', percent: number | null, checksums: boolean, t: Translate): string {
  if (input === 0) return t('measure.equalInputs');
  if (input === 'inf') return t(checksums ? 'measure.inputSums' : 'measure.inputKind');
  return t('measure.inputs', { value: percent === null ? measurePercent(input) : percentText(percent) });
}
