// Ways to move: the small pictures of both sides, fitting, the keys of the earlier page.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, counts, DEMO, holds, listed, openPage, OUT, serve, until } from './support.mjs';

let chrome;
let server;
let page;
let faults;

before(async () => {
  server = await serve(DEMO);
  chrome = await browser();
  ({ page, faults } = await openPage(chrome));
  await page.goto(server.answer.url);
  await until(async () => (await page.evaluate(() => window.__msprobe.state().graph)) === 'ready', 'the graph is ready');
  // Long enough to move in: the branch and everything in it.
  for (let opened = 0; opened < 3; opened++) {
    await page.keyboard.press('/');
    await page.locator('#search').fill(['LlamaModel.forward', 'layers.0.LlamaDecoderLayer.forward', 'layers.1.LlamaDecoderLayer.forward'][opened]);
    await listed(page);
    const hit = page.locator('.search-list li').first();
    const wanted = await hit.getAttribute('title');
    await hit.click();
    await until(() => page.evaluate((n) => window.__msprobe.state().selection?.name === n && window.__msprobe.state().details === 'ready', wanted), 'it is selected');
    await page.locator('canvas[data-side=NPU]').focus();
    const { name } = await page.evaluate(() => window.__msprobe.state().selection);
    if (!(await page.evaluate((n) => window.__msprobe.open('NPU').includes(n), name))) await page.keyboard.press('Enter');
    await until(() => page.evaluate((n) => window.__msprobe.open('NPU').includes(n), name), `${name} opens`);
  }
});
after(async () => {
  await chrome?.close();
  server?.stop();
});

const map = (side) => page.evaluate((s) => window.__msprobe.map(s), side);
const zoom = (side) => page.evaluate((s) => window.__msprobe.zoom(s), side);
/** A place in a small picture, from its corner: above its edge, over which the splitter below reaches. */
const nearBottom = (small) => small.evaluate((canvas) => ({ x: canvas.clientWidth / 2, y: canvas.clientHeight - 12 }));
const shoot = (name) => page.screenshot({ path: join(OUT, `${name}.png`) });

test('a click in the small picture goes there, dragging moves, the other side follows', async () => {
  // Both sides are open: one that still loads would have nothing to line up with.
  await until(async () => {
    const [npu, bench] = [await map('NPU'), await map('Bench')];
    return npu.whole > 1.5 * npu.height && bench.whole === npu.whole;
  }, 'there is something to move in');
  const { whole, height } = await map('NPU');
  const small = page.locator('canvas[data-map=NPU]');
  const { x } = await nearBottom(small);
  // What was opened last is in view, which is far down already.
  await small.click({ position: { x, y: 2 } });
  await until(async () => (await map('NPU')).top === 0 && (await map('Bench')).top === 0, 'both start at the top');
  await small.click({ position: await nearBottom(small) });
  await until(async () => (await map('NPU')).top > 0.5 * (whole - height), 'it goes far down');
  await until(async () => (await map('Bench')).top > 0, 'the golden side follows');
  await shoot('map_bottom');
  const { top } = await map('NPU');
  await small.hover({ position: { x, y: 2 } }); // outside of the window: it comes here, and is held in its middle
  await page.mouse.down();
  await small.hover({ position: { x, y: 30 } });
  await page.mouse.up();
  await until(async () => (await map('NPU')).top < top, 'and up again');
});

test('the other side follows also when what it shows is still on its way', async () => {
  const slow = await openPage(chrome, { viewport: { width: 1280, height: 640 } });
  let release;
  const held = new Promise((done) => (release = done));
  await slow.page.goto(server.answer.url);
  const probe = (ask, ...args) => slow.page.evaluate(([a, list]) => window.__msprobe?.[a](...list), [ask, args]);
  await until(async () => (await probe('state'))?.graph === 'ready', 'the graph is ready');
  await slow.page.route(/api\/children.*side=Bench/, async (route) => {
    await held;
    await route.continue();
  });
  await slow.page.getByRole('button', { name: 'Collapse all' }).click();
  await slow.page.locator('canvas[data-side=NPU]').focus();
  await slow.page.keyboard.press('ArrowDown');
  await until(async () => (await probe('state')).selection !== null, 'the keys select');
  const root = (await probe('state')).selection.name;
  await slow.page.keyboard.press('ArrowDown');
  await until(async () => (await probe('state')).selection.name !== root, 'and the next');
  const name = await slow.page.evaluate(() => window.__msprobe.state().selection.name);
  await slow.page.keyboard.press('Enter');
  await until(async () => (await probe('open', 'NPU')).includes(name), `${name} opens`);
  const room = async () => {
    const { whole, height } = await probe('map', 'NPU');
    return whole - height;
  };
  await until(async () => (await room()) > 60, 'there is something to move in', room);
  const small = slow.page.locator('canvas[data-map=NPU]');
  await small.click({ position: await nearBottom(small) });
  await until(async () => (await probe('map', 'NPU')).top > 0, 'it goes down');
  const { top } = await probe('map', 'Bench');
  release();
  await until(async () => (await probe('map', 'Bench')).top > top, 'the golden side lines up once it is there');
  assert.deepEqual(slow.faults, []);
  await slow.page.context().close();
});

test('the small pictures show something, and can be put away on either side', async () => {
  for (const side of ['NPU', 'Bench']) {
    const colours = () =>
      page.evaluate((s) => {
        const canvas = document.querySelector(`canvas[data-map=${s}]`);
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
      }, side);
    await until(async () => (await colours()) > 5, `${side} has colours`, colours);
    const button = page.locator(`[data-test=map-${side}]`);
    await button.focus();
    await page.keyboard.press('Enter');
    await counts(page.locator(`canvas[data-map=${side}]`), 0);
    await holds(async () => assert.equal(await button.getAttribute('aria-pressed'), 'false'));
    await page.keyboard.press('Enter');
    await page.locator(`canvas[data-map=${side}]`).waitFor();
  }
});

test('fitting, by button and key, and the keys that zoom and move', async () => {
  await page.locator('canvas[data-side=NPU]').focus();
  await page.keyboard.press('w');
  await until(async () => (await zoom('NPU')) > 1.1 && (await zoom('Bench')) > 1.1, 'w zooms both sides in');
  await page.keyboard.press('s');
  await until(async () => Math.abs((await zoom('NPU')) - 1) < 0.01, 's zooms out');
  await page.locator('[data-test=fit]').click();
  await until(async () => (await zoom('NPU')) < 0.99 && (await zoom('NPU')) === (await zoom('Bench')), 'both are fitted');
  await shoot('fit');
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('0');
  await until(async () => (await zoom('NPU')) === 1, 'keys work without a click into a graph first');
  await page.keyboard.press('f');
  await until(async () => (await zoom('NPU')) < 0.99, 'f fits');
  await page.keyboard.press('0');
  await until(async () => (await zoom('NPU')) === 1, '0 is the full size again');
  const before = (await map('NPU')).top;
  await page.keyboard.press('PageDown');
  await until(async () => (await map('NPU')).top > before, 'a page down');
  await page.keyboard.press('?');
  await page.locator('dialog.help').waitFor();
  const keys = await page.locator('dialog.help kbd').allInnerTexts();
  for (const key of ['w', 's', 'a', 'd', 'f', 'c']) assert.ok(keys.includes(key), `the help names ${key} among ${keys}`);
  await shoot('help');
  await page.keyboard.press('Escape');
  assert.deepEqual(faults, []);
});
