import { expect, it } from 'vitest';
import { hasMark, traceMark } from './marks';
import { splitLabel } from './painter';

it.each([
  ['fc2.Linear.forward.0', 'fc2.Linear', '.forward.0'],
  ['__add__.14.forward', '__add__.14', '.forward'],
  ['Module.a.Linear.parameters_grad.1', 'Module.a.Linear', '.parameters_grad.1'],
  ['optimizer', 'optimizer', ''],
  ['.forward.0', '.forward.0', ''],
])('parts %s', (label, head, tail) => expect(splitLabel(label)).toEqual({ head, tail }));

it('gives each verdict a shape of its own', () => {
  const shape = (status: Parameters<typeof traceMark>[4]) => {
    const path: string[] = [];
    const note = (what: string) => (...at: unknown[]) => void path.push([what, ...at].join(' '));
    const pen = { beginPath: () => {}, moveTo: note('M'), lineTo: note('L'), closePath: note('Z'), arc: note('A') };
    path.push(traceMark(pen, 0, 0, 5, status));
    return path.join(',');
  };
  const rulings = ['bug', 'suspicious', 'inherited', 'rewritten', 'round-off', 'bit-equal'] as const;
  expect(new Set(rulings.map(shape)).size).toBe(rulings.length);
  expect([hasMark('bug'), hasMark('error'), hasMark('none')]).toEqual([true, false, false]);
});
