import { expect, it } from 'vitest';
import { fitText } from './text';

const letters = (text: string) => text.length;

it('leaves what fits alone', () => {
  expect(fitText('fc2.Linear', 10, letters)).toBe('fc2.Linear');
});
it('keeps both ends of what does not', () => {
  expect(fitText('Module.blocks.1.fc2.Linear', 9, letters)).toBe('Modu…near');
});
it('never exceeds the room', () => {
  for (let room = 1; room < 30; room++) expect(fitText('Module.blocks.1.fc2.Linear', room, letters).length).toBeLessThanOrEqual(room);
  expect(fitText('name', 0, letters)).toBe('');
});
