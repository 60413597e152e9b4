import { describe, expect, it } from 'vitest';
import { valueBars } from './value_bars';

describe('the two values of an origin', () => {
  it('are held against the larger one', () => {
    expect(valueBars({ what: 'Norm', target: '5.3013371339162605', golden: '4.24106972196014' })).toEqual({ what: 'Norm', target: { text: '5.30134', share: 1 }, golden: { text: '4.24107', share: expect.closeTo(0.8, 6) } });
  });
  it('are no bars where they have no size in common', () => {
    for (const [target, golden] of [['nan', '1'], ['inf', '3'], ['-1', '2'], ['0', '0'], ['[2, 3]', '[3, 2]'], ['1.0000000001', '1'], [null, '1']]) expect(valueBars({ what: 'Max', target: target!, golden: golden! })).toBeNull();
    expect(valueBars({ what: 'checksum', target: '1', golden: '2' })).toBeNull();
    expect(valueBars(undefined)).toBeNull();
  });
});
