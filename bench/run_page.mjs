// Measures the page on a monitored run in Chromium: node bench/run_page.mjs DIR [PAGES]. bench/monitor_scale.py makes such a
// directory. Prints one JSON object, in milliseconds: `paint`, from the address to the frame in which all of the first screen
// is drawn; `pan` and `zoom`, between two frames while the map moves; `rank`, from another rank to its map.
import { browser, findCommand, start } from '../tests/e2e/support.mjs';

const [directory, pages = '5'] = process.argv.slice(2);
const FRAMES = 150;
const spread = (times) => {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] * 10) / 10;
  return { median: at(0.5), p95: at(0.95), most: at(1), count: sorted.length };
};

const server = await start(findCommand(), ['serve', directory, '--port', '0', '--json'], (text) => (text.includes('\n') ? JSON.parse(text.split('\n')[0]) : undefined));
const chrome = await browser();
const out = { paint: [], pan: [], zoom: [], rank: [], faults: [] };
const address = (rank, more = '') => `${server.answer.url}#run=.&metric=grad_reduced&stat=norm&rank=${rank}${more}`;

for (let i = 0; i < Number(pages); i++) {
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.on('pageerror', (error) => out.faults.push(error.message));
  await page.goto(address(i * 3 + 2, i % 2 ? '&fold=none' : ''));
  await page.waitForFunction(() => document.body.dataset.runPainted, null, { timeout: 60_000 });
  out.paint.push(Number(await page.evaluate(() => document.body.dataset.runPainted)));
  if (i === 0 || i === 1) {
    const map = page.locator('[data-test=run-map]');
    const box = await map.boundingBox();
    const [x, y] = [box.x + box.width * 0.7, box.y + box.height / 2];
    await page.mouse.move(x, y);
    for (let k = 0; k < 12; k++) await page.keyboard.press('w').catch(() => undefined);
    await map.focus();
    for (let k = 0; k < 12; k++) await page.keyboard.press('w');
    await page.waitForTimeout(1000);
    // A frame counts with the move that it shows: a pointer event before each.
    const moves = (kind) =>
      page.evaluate(
        async ([kind, frames]) => {
          const canvas = document.querySelector('[data-test=run-map]');
          const { left, top, width, height } = canvas.getBoundingClientRect();
          const send = (type, clientX, more = {}) => canvas.dispatchEvent(new PointerEvent(type, { clientX, clientY: top + height / 2, bubbles: true, pointerId: 1, button: 0, ...more }));
          canvas.setPointerCapture = () => undefined; // the pointer is not a real one
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          const times = [];
          let x = left + width * 0.8;
          if (kind === 'pan') send('pointerdown', x);
          let before = await frame();
          for (let i = 0; i < frames; i++) {
            if (kind === 'pan') send('pointermove', (x -= 12));
            else canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: i < frames / 2 ? 60 : -60, ctrlKey: true, clientX: left + width * 0.6, clientY: top + height / 2, bubbles: true, cancelable: true }));
            const now = await frame();
            times.push(now - before);
            before = now;
          }
          if (kind === 'pan') send('pointerup', x);
          return times;
        },
        [kind, FRAMES],
      );
    out.pan.push(...(await moves('pan')));
    out.zoom.push(...(await moves('zoom')));
    await page.screenshot({ path: `out/run_page_${i}.png` });
    const began = await page.evaluate(() => (delete document.body.dataset.runPainted, performance.now()));
    await page.locator('[data-test=run-rank]').fill(String(900 + i));
    await page.waitForFunction(() => document.body.dataset.runPainted, null, { timeout: 60_000 });
    out.rank.push((await page.evaluate(() => Number(document.body.dataset.runPainted))) - began);
  }
  await context.close();
}
await chrome.close();
server.stop();
for (const key of ['paint', 'pan', 'zoom', 'rank']) out[key] = spread(out[key]);
console.log(JSON.stringify(out, null, 1));
