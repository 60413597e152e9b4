import type { Conversion, ConvertRequest } from '../api/convert';
import type { Failed } from './load';

export const MERGE_NUMBERS = ['rank_size', 'tp', 'pp', 'vpp', 'cp', 'ep'] as const;
export type MergeNumber = (typeof MERGE_NUMBERS)[number];
export type Two = [target: string, golden: string];

/** The form as it is filled in: texts, so that a half-typed number stays what it is. */
export interface ConvertForm {
  target: string;
  golden: string;
  output: string;
  mapping: 'none' | 'bare' | 'file' | 'template';
  mappingFile: string;
  template: string;
  fuzzy: boolean;
  overflow: boolean;
  log: boolean;
  plain: boolean;
  structure: boolean;
  suggest: string;
  thresholds: string;
  ray: boolean;
  merge: boolean;
  numbers: Record<MergeNumber, Two>;
  order: Two;
  layout: Two;
  plan: boolean;
  json: boolean;
}

export const EMPTY_FORM: ConvertForm = {
  target: '',
  golden: '',
  output: 'graphs',
  mapping: 'none',
  mappingFile: '',
  template: '',
  fuzzy: false,
  overflow: false,
  log: false,
  plain: false,
  structure: false,
  suggest: '',
  thresholds: '',
  ray: false,
  merge: false,
  numbers: { rank_size: ['', ''], tp: ['', ''], pp: ['', ''], vpp: ['', ''], cp: ['', ''], ep: ['', ''] },
  order: ['', ''],
  layout: ['', ''],
  plan: false,
  json: false,
};

/** Fields that keep a conversion from being started, and why. */
export type FormFault = { field: string; why: 'needed' | 'number' };

export interface ConvertState {
  enabled: boolean;
  open: boolean;
  templates: string[];
  form: ConvertForm;
  shown: number | null; // id of the conversion whose progress or result is looked at instead of the form
  last: Conversion | null;
  faults: FormFault[];
  failed: Failed | null; // of the last request
}

export const CONVERT: ConvertState = { enabled: false, open: false, templates: [], form: EMPTY_FORM, shown: null, last: null, faults: [], failed: null };

export function isRunning(conversion: Conversion | null): boolean {
  return conversion?.state === 'running' || conversion?.state === 'cancelling';
}

/** Members of a request and their fields; of those for both sides the target's. */
const FIELDS: Record<string, string> = {
  target_path: 'target',
  golden_path: 'golden',
  output_path: 'output',
  layer_mapping: 'mappingFile',
  template: 'template',
  thresholds: 'thresholds',
  suggest_mapping: 'suggest',
  layout: 'layout0',
  order: 'order0',
};

/** The field that an error is about: it names an option, or a path as it was filled in. Null: it is not about one. */
export function fieldOf(error: string, form: ConvertForm): string | null {
  const member = /^(\w+) (?:must be|is missing)/.exec(error)?.[1];
  if (member) return FIELDS[member] ?? (member in form.numbers ? `${member}0` : null);
  if (error.startsWith('there is no layer mapping template')) return 'template';
  const { target, golden, output, mappingFile, thresholds, suggest, layout } = form;
  const filled = Object.entries({ target, golden, output, mappingFile, thresholds, suggest, layout0: layout[0], layout1: layout[1] });
  const paths = filled.map(([field, text]) => ({ field, path: text.trim().replace(/^(\.\/)+|\/+$/g, '') })).filter(({ path }) => path !== '');
  const named = paths.filter(({ path }) => new RegExp(`(^|[\\s"'/(])${path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}($|[\\s:;,"'/)])`).test(error));
  return named.sort((a, b) => b.path.length - a.path.length)[0]?.field ?? null;
}

const compared = (form: ConvertForm) => form.golden.trim() !== '';

/** What is sent, or what is missing. Fields of options that are off, or of a side that is not there, do not count. */
export function requestOf(form: ConvertForm): { request: ConvertRequest; faults: FormFault[] } {
  const faults: FormFault[] = [];
  const need = (field: string, text: string) => {
    if (text.trim() === '') faults.push({ field, why: 'needed' });
    return text.trim();
  };
  const request: ConvertRequest = { target_path: need('target', form.target), output_path: need('output', form.output) };
  const both = compared(form);
  const text = (key: 'suggest_mapping' | 'thresholds', value: string) => {
    if (value.trim() !== '') request[key] = value.trim();
  };
  if (both) {
    request.golden_path = form.golden.trim();
    if (form.mapping === 'bare') request.layer_mapping = true;
    if (form.mapping === 'file') request.layer_mapping = need('mappingFile', form.mappingFile);
    if (form.mapping === 'template') request.template = need('template', form.template);
    if (form.fuzzy) request.fuzzy_match = true;
    text('thresholds', form.thresholds);
    if (!form.merge) {
      if (form.structure) request.structure = true;
      text('suggest_mapping', form.suggest);
    }
  }
  if (form.overflow) request.overflow_check = true;
  if (form.log) request.is_print_compare_log = true;
  if (form.plain) request.plain = true;
  if (form.ray && !form.merge) request.engine = 'ray';
  if (form.merge) Object.assign(request, mergeOf(form, both, faults));
  return { request, faults };
}

function mergeOf(form: ConvertForm, both: boolean, faults: FormFault[]): Partial<ConvertRequest> {
  const sides = both ? [0, 1] : [0];
  const out: Partial<ConvertRequest> = {};
  for (const key of MERGE_NUMBERS) {
    const texts = sides.map((side) => form.numbers[key][side]!.trim());
    const must = key === 'rank_size' || key === 'tp' || key === 'pp';
    if (!must && texts.every((value) => value === '')) continue;
    texts.forEach((value, side) => {
      if (value === '' && must) faults.push({ field: `${key}${side}`, why: 'needed' });
      else if (value !== '' && !/^[1-9]\d{0,5}$/.test(value)) faults.push({ field: `${key}${side}`, why: 'number' });
    });
    out[key] = texts.map((value) => Number(value || '1'));
  }
  const order = sides.map((side) => form.order[side]!.trim());
  if (order.some((value) => value !== '')) out.order = order.map((value) => value || 'tp-cp-ep-dp-pp');
  const layout = sides.map((side) => form.layout[side]!.trim());
  if (layout[0] !== '') out.layout = layout.filter((value) => value !== '');
  else if (layout.some((value) => value !== '')) faults.push({ field: 'layout0', why: 'needed' });
  if (form.plan) out.plan = true;
  if (form.json && !both) out.file_type = 'json';
  return out;
}
