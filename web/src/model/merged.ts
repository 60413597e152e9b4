// The lines that say how a node was put together from the ranks, as a table; the words are those of the earlier tool.

export interface MergedValue {
  item: string; // "output.0"
  stat: string; // "Max"
  formula: string;
  result: string;
}

export type MergedNote =
  | { kind: 'axis'; axis: string; ranks: string }
  | { kind: 'source'; name: string }
  | { kind: 'parts'; item: string; ranks: string }
  | { kind: 'line'; text: string }; // as it is written

export interface MergedData {
  notes: MergedNote[];
  values: MergedValue[];
}

const AXIS = /^This data is the merged data after .+\((\w+)\), and the data is merged from rank \[(.*)\]\.$/;
const VALUE = /^The (\w+) value merging method for (.+?) is: (.+) = (.+)$/s;
const SOURCE = /^The output of this data is merged from (.+)$/;
const PARTS = /^(.+) is a sum of parts of rank \[(.*)\]: statistics of summands cannot be merged$/;

export function readMerged(lines: string[]): MergedData {
  const out: MergedData = { notes: [], values: [] };
  for (const line of lines) {
    const [axis, value, source, parts] = [AXIS, VALUE, SOURCE, PARTS].map((pattern) => pattern.exec(line));
    if (value) out.values.push({ stat: value[1]!, item: value[2]!, formula: value[3]!, result: value[4]! });
    else if (axis) out.notes.push({ kind: 'axis', axis: axis[1]!, ranks: axis[2]! });
    else if (source) out.notes.push({ kind: 'source', name: source[1]! });
    else if (parts) out.notes.push({ kind: 'parts', item: parts[1]!, ranks: parts[2]! });
    else out.notes.push({ kind: 'line', text: line.replace(/^finding: /, '') });
  }
  return out;
}
