import type { MessageKey, Translate } from './index';

/** What graph files say of items, in English; the words are those of the earlier tool. */
const SENTENCES: [RegExp, MessageKey][] = [
  [/^There is nan\/inf\/-inf in the maximum or minimum value of NPU\.?$/, 'said.notFinite'],
  [/^The Required_Grad of NPU and Bench are inconsistent\.?$/, 'said.requiresGrad'],
  [/^The scalar parameters of NPU and Bench are inconsistent\.?$/, 'said.scalars'],
  [/^The dtype of NPU and Bench are inconsistent\.?$/, 'said.dtype'],
  [/^The shape of NPU and Bench are inconsistent\.?$/, 'said.shape'],
  [/^The CRC-32 value of NPU differs from that of the bench\.?$/, 'said.checksum'],
  [/^The parameter of NPU does not match the bench\.?$/, 'said.noChecksum'],
  [/^The NormRelativeErr of output is greater than (?<limit>[\d.e+-]+?)\.?$/, 'said.relative'],
  [/^The norm relative error of output is (?<times>[\d.e+-]+) times that of input\.?$/, 'said.growth'],
  [/^The input\/parameters of One Thousandth Err Ratio > (?<before>[\d.e+-]+) while the output < (?<after>[\d.e+-]+?)\.?$/, 'said.thousandth'],
  [/^The input\/parameters of Cosine > (?<before>[\d.e+-]+), and input\/parameters - output > (?<drop>[\d.e+-]+?)\.?$/, 'said.cosine'],
  [/^The position of inf or nan in NPU and bench Tensor do not match\.?$/, 'said.positions'],
  [/^The sign of inf in NPU and bench Tensor do not match\.?$/, 'said.signs'],
  [/^Shape of NPU and bench tensor do not match\. Skipped\.?$/, 'said.shapes'],
  [/^Dtype of NPU and bench tensor do not match\.?$/, 'said.dtypes'],
  [/^This is empty data, can not compare\.?$/, 'said.empty'],
  [/^(?<side>NPU|Bench) does not have data file\.?$/, 'said.noFile'],
  [/^Cannot compare by Cosine Similarity, All the data is Zero in (?<side>npu|Bench) dump data\.?$/, 'said.zeros'],
  [/^Cannot compare by Cosine Similarity, the dump data has NaN\.?$/, 'said.cosineNan'],
  [/^This is type of 0-d tensor, can not calculate /, 'said.scalarTensor'],
  [/^Dump file not found or read failed: (?<file>.+)$/, 'said.unread'],
];

/** In the reader's language; a sentence that is not known stays as it is. */
export function translateSaid(t: Translate, message: string): string {
  const [, level, rest] = /^(?:(error|warning):\s*)?(.*)$/s.exec(message.trim())!;
  for (const [pattern, key] of SENTENCES) {
    const found = pattern.exec(rest!.trim());
    if (!found) continue;
    const { side, ...values } = found.groups ?? {};
    const text = t(key, { ...values, ...(side ? { side: t(side === 'Bench' ? 'side.Bench' : 'side.NPU') } : {}) });
    return level ? t('said.level', { level: t(level === 'error' ? 'status.error' : 'status.warning'), text }) : text;
  }
  return message;
}
