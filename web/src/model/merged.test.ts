import { describe, expect, it } from 'vitest';
import { readMerged } from './merged';

describe('merged data', () => {
  it('is a table of figures, with where they come from', () => {
    const lines = [
      'This data is the merged data after tensor parallelism(TP), and the data is merged from rank [0, 1].',
      'The output of this data is merged from Distributed.all_reduce.3.forward.output.0',
      'The Max value merging method for output.0 is: max(1.5, 2.5) = 2.5',
      'The Norm value merging method for output.0 is: sqrt(3^2 + 4^2) = 5.0',
      'input.0 is a sum of parts of rank [0, 1]: statistics of summands cannot be merged',
      'finding: output.0 should be the same on rank [0, 1] (TP), but rank 0 has a and rank 1 has b',
    ];
    expect(readMerged(lines)).toEqual({
      notes: [
        { kind: 'axis', axis: 'TP', ranks: '0, 1' },
        { kind: 'source', name: 'Distributed.all_reduce.3.forward.output.0' },
        { kind: 'parts', item: 'input.0', ranks: '0, 1' },
        { kind: 'line', text: 'output.0 should be the same on rank [0, 1] (TP), but rank 0 has a and rank 1 has b' },
      ],
      values: [
        { item: 'output.0', stat: 'Max', formula: 'max(1.5, 2.5)', result: '2.5' },
        { item: 'output.0', stat: 'Norm', formula: 'sqrt(3^2 + 4^2)', result: '5.0' },
      ],
    });
    expect(readMerged([])).toEqual({ notes: [], values: [] });
  });
});
