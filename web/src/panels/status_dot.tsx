import type { Status } from '../model/status';
import { useText } from './context';

/** A colour is never alone: screen readers and colour-blind users get the word. */
export function StatusDot({ status }: { status: Status }) {
  const t = useText();
  return <span class={`dot ${status}`} role="img" aria-label={t(`status.${status}`)} title={t(`status.${status}`)} />;
}

export function StatusChip({ status }: { status: Status }) {
  const t = useText();
  return <span class={`chip ${status}`}>{t(`status.${status}`)}</span>;
}
