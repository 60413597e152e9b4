import { ApiError } from './client';
import { opNameOf } from './node_name';
import type { Level, Side } from './types';

// The syntax of searches for a page without a server. The server's own reader is src/view/search/search_terms.cc; both are
// held to search_cases.json beside it.

/** What a search asks of a node. */
export interface Searched {
  name: string;
  type: number;
  error: number; // largest relative error, NaN where there is none
  dtypes: readonly string[]; // of its tensors
  has(level: Level): boolean;
}

export interface SearchTerms {
  side: Side | null; // null: the one that is shown
  rank: number | null; // likewise
  words: string[]; // what to mark in the names, in lower case
  asksErrors: boolean;
  asksDtypes: boolean;
  keeps(node: Searched): boolean;
}

type Test = (node: Searched) => boolean;

const MOST_TERMS = 32;
const MOST_BYTES = 4096;

const LEVEL_FIELDS: Record<string, [word: string, level: Level, again?: true][]> = {
  verdict: [['bug', 'bug'], ['suspicious', 'suspicious'], ['inherited', 'inherited'], ['rounding', 'round-off'], ['round-off', 'round-off', true], ['rewritten', 'rewritten'], ['bit-equal', 'bit-equal'], ['missing', 'unmatched'], ['unmatched', 'unmatched', true], ['unjudged', 'unjudged']],
  result: [['error', 'error'], ['warning', 'warning'], ['pass', 'pass'], ['unmatched', 'unmatched'], ['none', 'none']],
  overflow: [['any', 'overflow'], ['critical', 'critical'], ['high', 'high'], ['medium', 'medium']],
};
const TYPES: [word: string, type: number, again?: true][] = [['module', 0], ['op', 1], ['api', 1, true], ['collection', 9]];
const SIDES: [word: string, side: Side, again?: true][] = [['target', 'NPU'], ['golden', 'Bench'], ['npu', 'NPU', true], ['bench', 'Bench', true]];

const FLOAT8 = ['float8_e4m3fn', 'float8_e5m2', 'float8_e4m3fnuz', 'float8_e5m2fnuz', 'float8_e8m0fnu'];
const itself = (word: string): [string, string[]] => [word, [word]];
const again = (word: string, dtypes: string[]): [string, string[], true] => [word, dtypes, true];
const DTYPES: [word: string, dtypes: string[], again?: true][] = [
  ...['float32', 'float64', 'float16', 'bfloat16'].map(itself),
  ['float8', FLOAT8],
  ...['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool', 'complex64', 'complex128'].map(itself),
  ...[...FLOAT8, 'complex32'].map((word) => again(word, [word])),
  again('fp32', ['float32']),
  again('fp64', ['float64']),
  again('fp16', ['float16']),
  again('bf16', ['bfloat16']),
  again('fp8', FLOAT8),
];

const refuse = (text: string) => new ApiError(text, 400);
const lowerCase = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** The meanings of "bug,suspicious". */
function meanings<T>(field: string, text: string, values: [word: string, meaning: T, again?: true][]): T[] {
  const known = () => values.filter(([, , again]) => !again).map(([word]) => word).join(', ');
  return text.split(',').map((part) => {
    const wanted = field === 'dtype' ? lowerCase(part).replace(/^(torch|mindspore)\./, '') : lowerCase(part);
    const found = values.find(([word]) => word === wanted);
    if (found) return found[1];
    throw refuse(part === '' ? `${field}: needs a value: ${known()}` : `${part} is not a value of ${field}: ${known()}`);
  });
}

const quoted = (text: string) => text.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');

/** Words with wildcards, anywhere in the name. */
function patternOf(word: string): { fits: RegExp; words: string[] } {
  const parts = lowerCase(word).split('*').filter(Boolean);
  const source = parts.map((part) => [...part].map((c) => (c === '?' ? '[^]' : quoted(c))).join('')).join('[^]*?');
  return { fits: new RegExp(source, 'u'), words: parts.flatMap((part) => part.split('?')).filter(Boolean) };
}

/** The names of ops that "linear,*norm*" stands for, as a whole. */
function opsOf(text: string): Test {
  const fits = lowerCase(text)
    .split(',')
    .map((part) => {
      if (part === '') throw refuse('op: needs the name of an op or a class: op:linear or op:*norm*');
      const source = part.split('*').map((piece) => [...piece].map((c) => (c === '?' ? '[^]' : quoted(c))).join(''));
      return new RegExp(`^${source.join('[^]*?')}$`, 'u');
    });
  return ({ name }) => {
    const op = lowerCase(opNameOf(name));
    return op !== '' && fits.some((one) => one.test(op));
  };
}

/** What stands behind "error", as ">10%"; NaN has none of these. */
function boundOf(text: string): Test {
  const [, relation, number, exponent = '', percent] = /^([<>]=?)([0-9]+(?:\.[0-9]+)?)([eE][+-]?[0-9]{1,2})?(%?)$/s.exec(text) ?? [];
  const limit = number === undefined ? NaN : Number(number + exponent) / (percent ? 100 : 1);
  if (Number.isNaN(limit) || number!.length > 32) throw refuse('error: needs a comparison with a number: error>0.1, error>=10% or error<1e-3');
  if (relation === '>') return ({ error }) => error > limit;
  if (relation === '>=') return ({ error }) => error >= limit;
  return relation === '<' ? ({ error }) => error < limit : ({ error }) => error <= limit;
}

class Reader {
  private readonly tests: Test[] = [];
  private readonly words: string[] = [];
  private side: Side | null = null;
  private rank: number | null = null;
  private asksErrors = false;
  private asksDtypes = false;
  private at = 0;

  constructor(private readonly text: string) {}

  read(): SearchTerms {
    const tooMuch = refuse(`the search has more than ${MOST_TERMS} words: use fewer`);
    if (new TextEncoder().encode(this.text).length > MOST_BYTES) throw tooMuch;
    for (this.skipSpaces(); this.at < this.text.length; this.skipSpaces()) {
      const excluded = /^-[^\0- ]/.test(this.text.slice(this.at));
      if (excluded) this.at++;
      const test = this.text[this.at] === '"' ? this.readQuoted(excluded) : this.readWord(excluded);
      if (!test) continue;
      if (this.tests.length === MOST_TERMS) throw tooMuch;
      this.tests.push(excluded ? (node) => !test(node) : test);
    }
    const { tests, words, side, rank, asksErrors, asksDtypes } = this;
    return { side, rank, asksErrors, asksDtypes, words: [...new Set(words)], keeps: (node) => tests.every((test) => test(node)) };
  }

  private skipSpaces(): void {
    while (this.at < this.text.length && this.text[this.at]! <= ' ') this.at++;
  }

  private readQuoted(excluded: boolean): Test | null {
    const end = this.text.indexOf('"', this.at + 1);
    if (end < 0) throw refuse('a quotation mark is not closed: add another one');
    const wanted = lowerCase(this.text.slice(this.at + 1, end));
    this.at = end + 1;
    if (wanted === '') return null;
    if (!excluded) this.words.push(wanted);
    return ({ name }) => lowerCase(name).includes(wanted);
  }

  private readWord(excluded: boolean): Test | null {
    const word = /^[^\0- ]+/.exec(this.text.slice(this.at))![0];
    this.at += word.length;
    const [, behind] = /^error([<>=].*|:(?!:).*)$/is.exec(word) ?? [];
    if (behind !== undefined) {
      this.asksErrors = true;
      return boundOf(behind);
    }
    const [, named, value] = /^([A-Za-z]+):(?!:)(.*)$/s.exec(word) ?? [];
    if (named === undefined || value === undefined) {
      const { fits, words } = patternOf(word);
      if (!excluded) this.words.push(...words);
      return ({ name }) => fits.test(lowerCase(name));
    }
    const field = lowerCase(named);
    if (field === 'side') return this.setSide(meanings(field, value, SIDES), excluded);
    if (field === 'type') {
      const types = meanings(field, value, TYPES);
      return ({ type }) => types.includes(type);
    }
    if (field === 'op') return opsOf(value);
    if (field === 'rank') return this.setRank(value, excluded);
    if (field === 'dtype') {
      const wanted = meanings(field, value, DTYPES).flat();
      this.asksDtypes = true;
      return ({ dtypes }) => dtypes.some((dtype) => wanted.includes(dtype));
    }
    const known = LEVEL_FIELDS[field];
    if (!known) throw refuse(`${named}: is not a field: use verdict, result, overflow, type, op, dtype, error, side or rank, or put the word in quotation marks`);
    const levels = meanings(field, value, known);
    return (node) => levels.some((level) => node.has(level));
  }

  private setRank(text: string, excluded: boolean): null {
    if (excluded || !/^[0-9]{1,9}$/.test(text)) throw refuse('rank: needs the number of one rank: rank:2');
    const rank = Number(text);
    if ((this.rank ?? rank) !== rank) throw refuse('a search is of one rank: use one rank:');
    this.rank = rank;
    return null;
  }

  private setSide(sides: Side[], excluded: boolean): null {
    const chosen = (['NPU', 'Bench'] as const).filter((side) => sides.includes(side) !== excluded);
    const [only] = chosen;
    if (chosen.length !== 1 || only === undefined || (this.side !== null && this.side !== only)) throw refuse('a search is of one side: use side:target or side:golden');
    this.side = only;
    return null;
  }
}

/** Throws an ApiError that says what is wrong. */
export function parseSearch(text: string): SearchTerms {
  return new Reader(text).read();
}
