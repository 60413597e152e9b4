import { describe, expect, it } from 'vitest';
import { parseFrame } from './stack';

describe('parseFrame', () => {
  it('takes a frame apart and drops the environment from the path', () => {
    const line = 'File /a b/lib/python3.11/site-packages/transformers/modeling_llama.py, line 311, in forward, \n hidden = self.mlp(x, y)';
    expect(parseFrame(line)).toEqual({ place: 'transformers/modeling_llama.py:311', name: 'forward', code: 'hidden = self.mlp(x, y)' });
  });
  it('keeps paths of the user, knows quotes and frames without code', () => {
    expect(parseFrame('File "/home/u/train.py", line 7, in <module>')).toEqual({ place: '/home/u/train.py:7', name: '<module>', code: '' });
  });
  it('leaves other lines alone', () => {
    expect(parseFrame('no stack')).toBeNull();
    expect(parseFrame('')).toBeNull();
  });
});
