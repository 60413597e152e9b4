import type { NodeSummary, Ruling } from './types';

/** A node as a list: of thousands of children that is a third of the bytes. docs/page_api.md has its order. */
export type NodeList = [
  name: string,
  labelParts: number,
  type: NodeSummary['type'],
  children: number,
  order: number,
  precision: number | null,
  overflow: NodeSummary['overflow'],
  matched: string | true | null,
  micro_step: number,
  errors: number,
  warnings: number,
  unmatched: number,
  overflows: number,
  verdict: Ruling | null,
  suspicious: number,
  bugs: number,
];

function lastParts(name: string, parts: number): string {
  let dot = name.length;
  for (let i = 0; i < parts && dot >= 0; i++) dot = dot === 0 ? -1 : name.lastIndexOf('.', dot - 1);
  return name.slice(dot + 1);
}

export function readNode(list: NodeList): NodeSummary {
  const [name, labelParts, type, children, order, precision, overflow, matched, micro_step, error, warning, unmatched, overflows, verdict, suspicious, bug] = list;
  return {
    name,
    label: lastParts(name, labelParts),
    type,
    children,
    order,
    precision,
    overflow,
    verdict,
    matched: matched === true ? name : matched,
    micro_step,
    counts: { error, warning, unmatched, overflow: overflows, suspicious, bug },
  };
}
