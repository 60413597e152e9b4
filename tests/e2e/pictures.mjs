// Pictures of the page held against those in golden/: other smoothing of letters passes, anything one would see does not.
// UPDATE_PICTURES=1 writes them anew.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { OUT, ROOT } from './support.mjs';

const require = createRequire(join(ROOT, 'web/package.json'));
const { PNG } = require('pngjs');
const pixelmatch = require('pixelmatch').default;

const GOLDEN = join(ROOT, 'tests/e2e/golden');
const SHRINK = 2; // each way: what smoothing changes at the edge of a letter evens out
const TILE = 10; // of shrunk pixels
const THRESHOLD = 0.2; // of a pixel's colour
// Letters that stand a pixel beside their place reach 1.9 % and 25 %, a small label that has gone 60 % of its tile.
const MOST = 0.03;
const MOST_OF_TILE = 0.4;

/** A picture at half its size. */
function readShrunk(bytes) {
  const { width, height, data } = PNG.sync.read(bytes);
  const small = new PNG({ width: Math.floor(width / SHRINK), height: Math.floor(height / SHRINK) });
  for (let y = 0; y < small.height; y++) {
    for (let x = 0; x < small.width; x++) {
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0;
        for (let dy = 0; dy < SHRINK; dy++) for (let dx = 0; dx < SHRINK; dx++) sum += data[((y * SHRINK + dy) * width + x * SHRINK + dx) * 4 + channel];
        small.data[(y * small.width + x) * 4 + channel] = sum / SHRINK ** 2;
      }
    }
  }
  return small;
}

/** How far two shrunk pictures are apart: the share of pixels that differ, in all and in the worst tile; null when they pass. */
export function difference(small, wanted) {
  const { width, height } = small;
  if (width !== wanted.width || height !== wanted.height) return `${width} x ${height} instead of ${wanted.width} x ${wanted.height}`;
  const marks = new PNG({ width, height });
  const count = pixelmatch(small.data, wanted.data, marks.data, width, height, { threshold: THRESHOLD, includeAA: true, diffMask: true });
  const tiles = new Map();
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (marks.data[(y * width + x) * 4 + 3] === 0) continue;
      const tile = `${Math.floor(x / TILE)} ${Math.floor(y / TILE)}`;
      tiles.set(tile, (tiles.get(tile) ?? 0) + 1);
    }
  }
  const [place, most] = [...tiles].sort((one, other) => other[1] - one[1])[0] ?? ['', 0];
  const [whole, worst] = [count / (width * height), most / TILE ** 2];
  if (whole <= MOST && worst <= MOST_OF_TILE) return null;
  const [x, y] = place.split(' ').map((at) => Number(at) * TILE * SHRINK);
  return `${(100 * whole).toFixed(2)} % of the pixels differ, ${Math.round(100 * worst)} % of those around ${x}, ${y}`;
}

/** A PNG as small as this library makes one: areas of one colour need no filter. */
export const packed = (picture) => PNG.sync.write(picture, { colorType: 2, deflateLevel: 9, deflateStrategy: 0, filterType: 0 });

/** A picture for a document: 6 bits for each colour, which nobody sees and which halves the file. */
export function forDocument(bytes) {
  const picture = PNG.sync.read(bytes);
  for (let at = 0; at < picture.data.length; at++) picture.data[at] = (Math.round((picture.data[at] / 255) * 63) / 63) * 255;
  return packed(picture);
}

/** What the page looked like, at half its size. */
export const readGolden = (name) => PNG.sync.read(readFileSync(join(GOLDEN, `${name}.png`)));

/** A picture once nothing moves any more. */
async function stillPicture(page) {
  let last = null;
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    const now = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    if (last?.equals(now)) return now;
    last = now;
    await page.waitForTimeout(60);
  }
  throw new Error('the page does not come to rest');
}

/** Holds the page against `golden/NAME.png`: null, or what is wrong and where the new picture lies. */
export async function checkPicture(page, name) {
  const bytes = await stillPicture(page);
  writeFileSync(join(OUT, `${name}.png`), bytes);
  const small = readShrunk(bytes);
  const path = join(GOLDEN, `${name}.png`);
  const wrong = existsSync(path) ? difference(small, readGolden(name)) : 'no such golden picture';
  if (process.env.UPDATE_PICTURES) {
    // What passes stays as it is, so that a small change shows as one file.
    mkdirSync(GOLDEN, { recursive: true });
    if (wrong) writeFileSync(path, packed(small));
    return null;
  }
  return wrong && `${name}: ${wrong}; look at ${join(OUT, `${name}.png`)}, and if it is right run with UPDATE_PICTURES=1`;
}
