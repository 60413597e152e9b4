interface SplitterProps {
  label: string;
  vertical: boolean; // the bar stands upright and moves sideways
  value: number;
  min: number;
  max: number;
  step: number;
  onMove: (event: PointerEvent) => number;
  onChange: (value: number) => void;
}

/** A bar between two panels, for the pointer and for the arrow keys. */
export function Splitter({ label, vertical, value, min, max, step, onMove, onChange }: SplitterProps) {
  const set = (next: number) => onChange(Math.min(Math.max(next, min), max));
  const onKey = (event: KeyboardEvent) => {
    const less = vertical ? 'ArrowLeft' : 'ArrowDown';
    const more = vertical ? 'ArrowRight' : 'ArrowUp';
    if (event.key !== less && event.key !== more) return;
    event.preventDefault();
    event.stopPropagation();
    set(value + (event.key === more ? step : -step));
  };
  return (
    <div
      class={`splitter ${vertical ? 'vertical' : 'horizontal'}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={vertical ? 'vertical' : 'horizontal'}
      aria-valuenow={Math.round(vertical ? value * 100 : value)}
      aria-valuemin={vertical ? min * 100 : min}
      aria-valuemax={vertical ? max * 100 : max}
      onKeyDown={onKey}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && set(onMove(event))}
    />
  );
}
