// Cells of the sheets of config_check, as text.
import type { SheetCell } from './data';

/** As the workbook shows it; nothing where it is empty. */
export function cellText(cell: SheetCell): string {
  if (cell === null) return '';
  if (typeof cell === 'boolean') return cell ? 'True' : 'False';
  if (typeof cell === 'number' && !Number.isInteger(cell)) return String(Number(cell.toPrecision(6)));
  return String(cell);
}

/** Rows that hold all words of a search, in any of their cells. */
export function matchingRows(rows: SheetCell[][], search: string): SheetCell[][] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const text = row.map(cellText).join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Whether both values are known and not the same: "0" is 0.0. */
export function differ(a: SheetCell, b: SheetCell): boolean {
  const [x, y] = [cellText(a).trim(), cellText(b).trim()];
  if (x === '' || y === '' || x === y) return false;
  return !(Number(x) === Number(y));
}
