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
export function translateDetail(t: Translate, text: string): string {
  let match = /^(\S+) differs by (.+)$/.exec(text);
  if (match) return t('detail.differs', { what: match[1]!, value: match[2]! });
  match = /^(shape|checksum) (.+) against (.+)$/.exec(text);
  if (match) return t(match[1] === 'shape' ? 'detail.shape' : 'detail.checksum', { a: match[2]!, b: match[3]! });
  match = /^(.+) against (.+)$/.exec(text);
  if (match) return t('detail.against', { a: match[1]!, b: match[2]! });
  match = /^agree to (.+)$/.exec(text);
  if (match) return t('detail.agree', { value: match[1]! });
  return text === 'are equal' ? t('detail.equal') : text;
}
