/** One of a few choices, all visible. */
export function Segments<T extends string>({ label, value, values, text, onChange }: { label: string; value: T; values: readonly T[]; text: (value: T) => string; onChange: (value: T) => void }) {
  return (
    <div class="segments" role="radiogroup" aria-label={label}>
      {values.map((each) => (
        <button key={each} role="radio" aria-checked={each === value} data-test={`trend-${each}`} onClick={() => onChange(each)}>
          {text(each)}
        </button>
      ))}
    </div>
  );
}
