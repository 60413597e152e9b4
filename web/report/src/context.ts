import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Palette } from '../../src/theme/palette';
import type { Language, Translate } from './i18n';

export interface Look {
  t: Translate;
  language: Language;
  palette: Palette;
}
export const LookContext = createContext<Look | null>(null);
export function useLook(): Look {
  const look = useContext(LookContext);
  if (!look) throw new Error('no look');
  return look;
}
