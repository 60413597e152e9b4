// Names of series, as src/view/run/run_rows.cc takes them.

/** "model.layers.3" of "model.layers.3.mlp.weight #0"; what has no number stands for itself. */
export function layerOf(label: string): string {
  const name = label.replace(/( vpp \d+)?( #\d+)?$/, '');
  const parts = name.split('.');
  const at = parts.findIndex((part) => /^\d+$/.test(part));
  return at < 0 ? name : parts.slice(0, at + 1).join('.');
}

/** layers.2 before layers.10. */
export function naturalOrder(a: string, b: string): number {
  const [first, second] = [a, b].map((text) => text.split(/(\d+)/));
  for (let i = 0; i < Math.min(first!.length, second!.length); i++) {
    const [x, y] = [first![i]!, second![i]!];
    if (x === y) continue;
    return i % 2 === 1 && Number(x) !== Number(y) ? Number(x) - Number(y) : x < y ? -1 : 1;
  }
  return first!.length - second!.length;
}
