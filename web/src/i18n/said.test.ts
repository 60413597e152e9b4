import { describe, expect, it } from 'vitest';
import { translator } from './index';
import { translateSaid } from './said';

const [en, zh] = [translator('en'), translator('zh')];

describe('what a file says of an item', () => {
  it('is told in the language of the page, with its numbers', () => {
    const relative = 'error: The NormRelativeErr of output is greater than 0.5.';
    expect(translateSaid(en, relative)).toBe('Error: the relative error of the norm of the output is above 0.5.');
    expect(translateSaid(zh, relative)).toBe('错误：输出的 Norm 相对误差大于 0.5。');
    expect(translateSaid(zh, 'warning: The norm relative error of output is 10 times that of input.')).toBe('告警：输出的 Norm 相对误差是输入的 10 倍。');
    expect(translateSaid(zh, 'Bench does not have data file.')).toBe('标杆侧没有数据文件。');
    expect(translateSaid(zh, 'warning: The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1')).toMatch(/0\.9.*0\.1/);
  });
  it('stays as it is where it is not known', () => {
    expect(translateSaid(zh, 'error: Something else.')).toBe('error: Something else.');
  });
});
