import { expect, it } from 'vitest';
import { splitLabel } from './painter';

it.each([
  ['fc2.Linear.forward.0', 'fc2.Linear', '.forward.0'],
  ['__add__.14.forward', '__add__.14', '.forward'],
  ['Module.a.Linear.parameters_grad.1', 'Module.a.Linear', '.parameters_grad.1'],
  ['optimizer', 'optimizer', ''],
  ['.forward.0', '.forward.0', ''],
])('parts %s', (label, head, tail) => expect(splitLabel(label)).toEqual({ head, tail }));
