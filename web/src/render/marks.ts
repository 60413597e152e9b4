import type { Status } from '../model/status';

const MARKED: readonly Status[] = ['bug', 'suspicious', 'inherited', 'rewritten', 'round-off', 'bit-equal'];

/** Verdicts have a shape of their own; theme/rulings.css draws the same ones. */
export function hasMark(status: Status): boolean {
  return MARKED.includes(status);
}

type Pen = Pick<CanvasRenderingContext2D, 'beginPath' | 'moveTo' | 'lineTo' | 'closePath' | 'arc'>;

/** A path around (x, y), to be filled or drawn as a line: diamond, triangle, chevron, wave, ring, equals sign. */
export function traceMark(pen: Pen, x: number, y: number, half: number, status: Status): 'area' | 'line' {
  pen.beginPath();
  const to = (...places: [number, number][]) => places.forEach(([dx, dy], index) => (index === 0 ? pen.moveTo(x + dx * half, y + dy * half) : pen.lineTo(x + dx * half, y + dy * half)));
  switch (status) {
    case 'bug':
      to([0, -1], [1, 0], [0, 1], [-1, 0]);
      pen.closePath();
      return 'area';
    case 'suspicious':
      to([0, -0.9], [1, 0.8], [-1, 0.8]);
      pen.closePath();
      return 'area';
    case 'inherited':
      to([-0.8, -0.4], [0, 0.5], [0.8, -0.4]);
      return 'line';
    case 'rewritten':
      to([-0.9, 0.3], [-0.3, -0.4], [0.3, 0.3], [0.9, -0.4]);
      return 'line';
    case 'bit-equal':
      to([-0.8, -0.4], [0.8, -0.4]);
      to([-0.8, 0.4], [0.8, 0.4]);
      return 'line';
    default:
      pen.arc(x, y, half * 0.6, 0, Math.PI * 2);
      return 'line';
  }
}
