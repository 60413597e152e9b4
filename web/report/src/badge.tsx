import { useLook } from './context';

const RULES = ['error', 'warning', 'pass'];
const RULER = ['bug', 'suspicious', 'inherited', 'round-off', 'bit-equal'];

/** A verdict in its colour: of the ruler, or of the old rule; other texts stay as they are. */
export function Badge({ verdict }: { verdict: string }) {
  const { t } = useLook();
  const text = RULES.includes(verdict) ? t(`verdict.${verdict}` as 'verdict.pass') : RULER.includes(verdict) ? t(`judged.${verdict.replace('-', '_')}` as 'judged.bug') : verdict;
  return <span class={`badge ${verdict}`}>{text}</span>;
}
