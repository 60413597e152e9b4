/** Arrow keys in a row of choices, radio buttons or tabs: the next or the previous one is focused and chosen. */
export function arrowsChoose(event: KeyboardEvent): void {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!by || !(event.currentTarget instanceof HTMLElement)) return;
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>('[role=radio], [role=tab]')];
  const next = all[(all.findIndex((each) => each === document.activeElement) + by + all.length) % all.length];
  next?.focus();
  next?.click();
  event.preventDefault();
  event.stopPropagation();
}

interface SegmentsProps<T extends string> {
  label: string;
  value: T;
  values: readonly T[];
  text: (value: T) => string;
  test?: string; // what the names for tests begin with
  onChange: (value: T) => void;
}

/** One of a few choices, all visible. */
export function Segments<T extends string>({ label, value, values, text, test, onChange }: SegmentsProps<T>) {
  return (
    <div class="segments" role="radiogroup" aria-label={label} onKeyDown={arrowsChoose}>
      {values.map((each) => (
        <button key={each} type="button" role="radio" aria-checked={each === value} tabIndex={each === value ? 0 : -1} data-test={test && `${test}-${each}`} onClick={() => onChange(each)}>
          {text(each)}
        </button>
      ))}
    </div>
  );
}
