/** "op: Tensor.add.0" -> its label with the colon, and the rest; together they are the line again. */
export function splitLabel(line: string): [label: string, text: string] {
  const found = /^[^\s:：][^:：]{0,24}(?:: |：)/.exec(line);
  return found ? [found[0], line.slice(found[0].length)] : ['', line];
}
