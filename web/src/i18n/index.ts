import { en, type Catalogue, type MessageKey } from './en';
import { zh } from './zh';

export type { MessageKey } from './en';
export const CATALOGUES: Record<'en' | 'zh', Catalogue> = { en, zh };

export type Translate = (key: MessageKey, values?: Record<string, string | number>) => string;

export function translator(language: 'en' | 'zh'): Translate {
  const texts = CATALOGUES[language];
  return (key, values = {}) => texts[key].replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
