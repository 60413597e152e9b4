import type { NodeDetails, Row, Side } from '../api/types';
import type { Precision } from './status';

/** One item of the node on both sides. */
export interface Pair {
  item: string; // name without the node's own: "input.0", "parameters.weight"
  target: Row | null;
  golden: Row | null;
  result: Precision | null;
  messages: string[];
}

export interface ItemTable {
  pairs: Pair[];
  compared: string[]; // columns that exist once for a pair: differences
  valued: string[]; // columns each side has: the numbers
  rest: string[]; // and what one looks at last
}

const HIDDEN = new Set(['data_name', 'Result', 'Err_message']);
const VALUE_ORDER = ['dtype', 'shape', 'Max', 'Min', 'Mean', 'Norm', 'md5', 'value'];
const LAST = ['requires_grad', 'type'];
const DIFFERENCE_ORDER = ['NormRelativeErr', 'MaxRelativeErr', 'MinRelativeErr', 'MeanRelativeErr', 'Cosine'];

export function itemName(row: Row, node: string): string {
  return row.name.startsWith(`${node}.`) ? row.name.slice(node.length + 1) : row.name;
}

function groupOf(item: string): string {
  return /^(input|output|parameters)\b/.exec(item)?.[1] ?? '';
}

/** Pairs rows by item name; what is left is paired by position within its group, as the comparison does. */
function pairRows(target: Row[], golden: Row[], targetNode: string, goldenNode: string): [string, Row | null, Row | null][] {
  const left = new Map<string, Row>();
  for (const row of golden) left.set(itemName(row, goldenNode), row);
  const targetItems = new Set(target.map((row) => itemName(row, targetNode)));
  const spare = new Map<string, [string, Row][]>();
  for (const [item, row] of left) {
    if (targetItems.has(item)) continue;
    const group = groupOf(item);
    spare.set(group, [...(spare.get(group) ?? []), [item, row]]);
  }
  const pairs: [string, Row | null, Row | null][] = [];
  for (const row of target) {
    const item = itemName(row, targetNode);
    let partner = left.get(item) ?? null;
    if (partner) left.delete(item);
    else {
      const next = spare.get(groupOf(item))?.shift();
      if (next) {
        partner = next[1];
        left.delete(next[0]);
      }
    }
    pairs.push([item, row, partner]);
  }
  for (const [item, row] of left) pairs.push([item, null, row]);
  return pairs;
}

function resultOf(row: Row | null): Precision | null {
  const text = row?.values['Result'];
  return text === 'pass' || text === 'warning' || text === 'error' ? text : null;
}

/** Err_message is JSON text of a list in new files and plain text in old ones. */
function messagesOf(row: Row | null): string[] {
  const text = row?.values['Err_message'] ?? '';
  if (text === '' || text === '[]' || text === 'null') return [];
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.map(String) : [text];
  } catch {
    return [text];
  }
}

function rank(order: string[], key: string): number {
  const at = order.indexOf(key);
  return at < 0 ? order.length : at;
}

/** `side` is that of the node itself. */
export function buildTable(details: NodeDetails, side: Side): ItemTable {
  const { partner } = details;
  const [target, golden] = side === 'Bench' ? [partner, details] : [details, partner];
  const names = [target?.node.name ?? '', golden?.node.name ?? ''] as const;
  const rows = [
    ...pairRows(target?.inputs ?? [], golden?.inputs ?? [], ...names),
    ...pairRows(target?.outputs ?? [], golden?.outputs ?? [], ...names),
  ];
  const pairs = rows.map(([item, left, right]) => ({
    item,
    target: left,
    golden: right,
    result: resultOf(left),
    messages: messagesOf(left),
  }));
  return { pairs, ...columnsOf(pairs) };
}

/** A scalar's value is also its Max; only what is not (a None, a text) needs a column. */
function saysNothingNew(row: Row | null): boolean {
  const value = row?.values['value'];
  return value === undefined || value === 'null' || value === row?.values['Max'];
}

/** Union of the columns. Those no golden row has, though rows were compared, are the comparison's. */
function columnsOf(pairs: Pair[]): Pick<ItemTable, 'compared' | 'valued' | 'rest'> {
  const all = new Set<string>();
  const golden = new Set<string>();
  for (const pair of pairs) {
    for (const key of Object.keys(pair.target?.values ?? {})) all.add(key);
    for (const key of Object.keys(pair.golden?.values ?? {})) {
      golden.add(key);
      all.add(key);
    }
  }
  const hasComparison = pairs.some((pair) => pair.result !== null);
  const columns = { compared: [] as string[], valued: [] as string[], rest: [] as string[] };
  for (const key of all) {
    if (HIDDEN.has(key)) continue;
    if (LAST.includes(key)) columns.rest.push(key);
    else if (hasComparison && !golden.has(key) && !VALUE_ORDER.includes(key)) columns.compared.push(key);
    else columns.valued.push(key);
  }
  if (pairs.every((pair) => saysNothingNew(pair.target) && saysNothingNew(pair.golden))) {
    columns.valued = columns.valued.filter((key) => key !== 'value');
  }
  columns.valued.sort((a, b) => rank(VALUE_ORDER, a) - rank(VALUE_ORDER, b));
  columns.rest.sort((a, b) => rank(LAST, a) - rank(LAST, b));
  // Relative errors say more than absolute ones, so they come first.
  columns.compared.sort((a, b) => rank(DIFFERENCE_ORDER, a) - rank(DIFFERENCE_ORDER, b));
  return columns;
}
