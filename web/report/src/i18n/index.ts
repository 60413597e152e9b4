import { shortDigits } from '../format';
import { en, type Catalogue, type MessageKey } from './en';
import { zh } from './zh';

export type { MessageKey } from './en';
export type Language = 'en' | 'zh';
export const CATALOGUES: Record<Language, Catalogue> = { en, zh };
export type Translate = (key: MessageKey, values?: Record<string, string | number>) => string;

export function translator(language: Language): Translate {
  const texts = CATALOGUES[language];
  return (key, values = {}) => texts[key].replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** The short phrases that the command writes in English: "Norm differs by 3 %", "agree to 1e-07". */
export function translateDetail(t: Translate, whole: string): string {
  const text = shortDigits(whole);
  let match = /^values differ by (.+)$/.exec(text);
  if (match) return t('detail.values', { value: match[1]! });
  match = /^is (?:of )?(.+) against (.+)$/.exec(text);
  if (match) return t('detail.is', { a: match[1]!, b: match[2]! });
  if (text === 'is missing in the target') return t('detail.missing');
  if (text === 'is not in the golden run') return t('detail.extra');
  if (text === 'is there in the golden run only') return t('detail.goldenOnly');
  match = /^(\S+) differs by (.+)$/.exec(text);
  if (match) return t('detail.differs', { what: match[1]!, value: match[2]! });
  match = /^(shape|checksum) (.+) against (.+)$/.exec(text);
  if (match) return t(match[1] === 'shape' ? 'detail.shape' : 'detail.checksum', { a: match[2]!, b: match[3]! });
  match = /^(.+) against (.+)$/.exec(text);
  if (match) return t('detail.against', { a: match[1]!, b: match[2]! });
  match = /^agree to (.+)$/.exec(text);
  if (match) return t('detail.agree', { value: match[1]! });
  return text === 'are equal' ? t('detail.equal') : text;
}

/** Why an op cannot be called again, as the command says it; other texts stay. */
const REASONS: [RegExp, MessageKey, ...string[]][] = [
  [/^(\S+) is taken to be (.+)$/, 'why.taken', 'name', 'value'],
  [/^it draws random numbers$/, 'why.random'],
  [/^it gives memory that is not set$/, 'why.unset'],
  [/^torch has no function (\S+) that may be called again$/, 'why.noFunction', 'name'],
  [/^a communication needs its ranks$/, 'why.ranks'],
  [/^it works in place, and the dump has its input as it was afterwards$/, 'why.inPlace'],
  [/^the dump holds no values of (.+)$/, 'why.values', 'name'],
  [/^torch refuses the call \((.+)\)$/s, 'why.refused', 'error'],
  [/^called again it gives (.+), the dump has (.+) as (\S+)$/, 'why.other', 'shape', 'recorded', 'name'],
  [/^it has no partner in the golden run$/, 'why.partner'],
  [/^the two sides have no result in common$/, 'why.common'],
  [/^its weight is not in the dump: dump at level mix or L1$/, 'why.weight'],
  [/^a module of class (\S+) .+$/, 'why.module', 'name'],
  [/^an argument of type (.+) cannot be rebuilt$/, 'why.argument', 'name'],
  [/^the dump has no (\S+), whose arguments it needs$/, 'why.forward', 'name'],
];

export function translateWhy(t: Translate, text: string): string {
  for (const [pattern, key, ...names] of REASONS) {
    const match = pattern.exec(text);
    if (match) return t(key, Object.fromEntries(names.map((name, i) => [name, match[i + 1]!])));
  }
  return text;
}

/** Where a value of a configuration comes from, as the command says it; lines of files stay. */
export function translateOrigin(t: Translate, text: string): string {
  const match = /^default of (.+)$/.exec(text);
  return match ? t('origin.default', { framework: match[1]! }) : text;
}
