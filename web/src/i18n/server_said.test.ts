import { describe, expect, it } from 'vitest';
import { translateServerLine } from './server_said';

// What the server says is written in these rooms. Questions that only a program asks wrongly stay in English.
const SOURCES = import.meta.glob<string>(['../../../src/view/**/*.cc', '../../../src/view/**/*.h', '../../../src/serve/*.cc', '!../../../src/serve/token.cc', '!**/*_test.cc'], { query: '?raw', import: 'default', eager: true }); // a token is read before there is a page
const FOR_PROGRAMS = [
  /page_api\.md/,
  /^x x(: browse the served directory and choose again)?$/, // put together from others
  /^(side|direction|dimension|order|level|sort|fold|cell|labels|name or item|name|npu|npu or bench|item|id|descendants|the request|the body) (is|are) /,
  /^\S+ is (negative|not text|missing: (give|send))/,
  /^a line follows/,
  /^there is no such query/,
  /must be (something else|%s)/,
  /too many for a page without|choose fewer with|takes more than|has no (values|graph) of the chosen/, // msprobe export
  /give the directory with the \.vis\.db files|cannot be used \(.*another --port/, // when it starts
  /^x is no graph file|^x holds (several ranks|no nodes)|gives no random numbers/, // graph_visualize -i, and when it starts
  /^the request is not for a path|is given twice|is not an integer|is malformed|\bescape\b/,
];

/** Texts of Status values, with a word for each value in them. */
function sentences(source: string): string[] {
  const found: string[] = [];
  for (const [, call] of source.matchAll(/(?:BadInput|UsageError|InternalError)\(\s*((?:(?:fmt::format|Msg)\()?\s*(?:"(?:[^"\\]|\\.)*"\s*)+)/g)) {
    const text = [...call!.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, part]) => part).join('').replaceAll('\\"', '"');
    found.push(text.replaceAll('{{', '<').replaceAll('}}', '>').replace(/\{[^}]*\}/g, 'x'));
  }
  return found;
}

const ALL = Object.values(SOURCES).flatMap(sentences);

describe('lines of the server', () => {
  it('are found in its sources', () => {
    expect(ALL.length).toBeGreaterThan(60);
  });
  it('name no address of a query', () => {
    expect(ALL.filter((line) => line.includes('/api/') && !FOR_PROGRAMS.some((kind) => kind.test(line)))).toEqual([]);
  });
  it('are known in Chinese, as far as a reader of the page can meet them', () => {
    // What a tree or a list of names refuses has the file before it.
    const whole = ALL.map((line) => (/^(has|holds) more than|^holds a/.test(line) ? `x ${line}` : line.replace(/has no x (side|node)/, 'has no target $1')));
    const unknown = whole.filter((line) => !FOR_PROGRAMS.some((kind) => kind.test(line)) && translateServerLine('zh', line).lang === 'en');
    expect(unknown).toEqual([]);
  });
  it('keep what they name, and say the reason of the system too', () => {
    expect(translateServerLine('zh', 'runs/a cannot be opened (No such file or directory): browse the served directory and choose again')).toEqual({ text: 'runs/a 无法打开（文件或目录不存在）：请浏览服务目录并重新选择', lang: 'zh' });
    expect(translateServerLine('zh', 'rank 2 sends 3 times to rank 0 (tag 1), which receives 2 times: Distributed.send.2.forward of rank 2 has no partner').text).toBe('rank 2 向 rank 0 发送 3 次（tag 1），而后者接收 2 次：rank 2 的 Distributed.send.2.forward 没有对端');
  });
  it('stay as they are in English, and where they are not known', () => {
    expect(translateServerLine('en', 'a does not exist: choose from the list of files')).toEqual({ text: 'a does not exist: choose from the list of files', lang: 'en' });
    expect(translateServerLine('zh', 'something new')).toEqual({ text: 'something new', lang: 'en' });
  });
});
