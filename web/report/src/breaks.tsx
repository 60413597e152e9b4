/** A path or a name of an op, which may go on in the next line after a part of it, not in the middle of a word. */
export function Breaks({ text }: { text: string }) {
  const parts = text.split(/(?<=[/.])(?=[^/.\s])/);
  return <>{parts.map((part, i) => [i > 0 && <wbr />, part])}</>;
}
