// The page as a tab of TensorBoard, below a path prefix: an environment that holds TensorBoard and msprobe.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, DEMO, freePort, openPage, OUT, ROOT, start, until } from './support.mjs';

const TENSORBOARD = process.env.MSPROBE_BOARD ?? join(ROOT, '.venv-board/bin/tensorboard');
const BROKEN = process.env.MSPROBE_DEMO_NODE ?? 'Module.model.layers.2.mlp.down_proj.Linear.forward.0';
const skip = existsSync(TENSORBOARD) || process.env.CI === 'true' ? false : 'TensorBoard with msprobe is not installed';
const LOGS = mkdtempSync(join(tmpdir(), 'msprobe_board_'));
const PREFIX = '/boards/one';

let address;
let server;
let chrome;

before(async () => {
  if (skip) return;
  for (const run of ['first run', '第二']) cpSync(DEMO, join(LOGS, run), { recursive: true });
  const port = String(await freePort());
  const args = ['--logdir', LOGS, '--host', '127.0.0.1', '--port', port, '--path_prefix', PREFIX];
  server = await start(TENSORBOARD, args, (text) => (/TensorBoard .* at http/.test(text) ? true : undefined), { seconds: 120 });
  address = `http://127.0.0.1:${port}${PREFIX}/#graph_ascend`;
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(LOGS, { recursive: true, force: true });
});

/** The frame that TensorBoard shows the tab in, once our page is in it. */
async function tabOf(page) {
  const element = await page.locator('iframe').first().elementHandle();
  const frame = await element.contentFrame();
  await frame.waitForURL(/\/data\/plugin\/graph_ascend\/index\.html/);
  await frame.waitForFunction(() => window.__msprobe !== undefined);
  return frame;
}

function reaches(frame, check, what) {
  const state = () => frame.evaluate(() => window.__msprobe.state());
  return until(async () => check(await state()), what, state);
}

/** From the list of files to the node whose weight was changed. */
async function toNode(frame, run, name) {
  await frame.locator('.file-link', { hasText: run }).click();
  await reaches(frame, (state) => state.graph === 'ready', 'the graph is ready');
  await frame.locator('body').press('/');
  await frame.locator('#search').fill(name);
  const hit = frame.locator('#search-hits li', { hasText: name }).first();
  await hit.waitFor();
  await hit.click();
  await reaches(frame, (state) => state.selection?.name === name && state.details === 'ready', `${name} is selected`);
}

test('the tab lists files, opens a graph and shows the items of a node', { skip }, async () => {
  const { page, faults } = await openPage(chrome);
  await page.goto(address);
  const frame = await tabOf(page);
  await frame.locator('.file-link').first().waitFor();
  assert.equal(await frame.locator('.file-link').count(), 2);
  await toNode(frame, '第二', BROKEN);
  const weight = frame.locator('.items tbody', { hasText: 'parameters.weight' });
  assert.equal(await weight.locator('tr.NPU').count(), 1);
  assert.equal(await weight.locator('tr.Bench').count(), 1);
  await page.screenshot({ path: join(OUT, 'tensorboard.png') });
  const ours = faults.filter((text) => /msprobe|graph_ascend\/|frame|Content.Security/i.test(text));
  assert.deepEqual(ours, []);
});

test('the address names the node, for a reload and for a colleague; tabs keep apart', { skip }, async () => {
  const { page } = await openPage(chrome);
  await page.goto(address);
  await toNode(await tabOf(page), 'first run', BROKEN);
  const link = page.url();
  assert.ok(link.includes('#graph_ascend&p.graph_ascend.at='), link);
  const other = await page.context().newPage();
  await other.goto(link);
  const there = await tabOf(other);
  await reaches(there, (state) => state.selection?.name === BROKEN && state.details === 'ready', 'the link leads to the node');
  await there.locator('[data-test=theme]').click();
  await there.locator('body').press('Escape');
  await reaches(there, (state) => state.selection === null && state.theme === 'dark', 'the other tab is elsewhere');
  const here = await tabOf(page);
  assert.equal((await here.evaluate(() => window.__msprobe.state())).selection.name, BROKEN);
  await page.reload();
  await reaches(await tabOf(page), (state) => state.selection?.name === BROKEN && state.details === 'ready', 'a reload keeps the node');
});

test('it follows the theme of TensorBoard', { skip }, async () => {
  const { page } = await openPage(chrome, { colorScheme: 'dark' });
  await page.goto(address);
  const frame = await tabOf(page);
  const board = await page.evaluate(() => document.body.classList.contains('dark-mode'));
  await reaches(frame, (state) => (state.theme === 'dark') === board, 'the theme of TensorBoard');
  await page.evaluate(() => document.body.classList.toggle('dark-mode'));
  await reaches(frame, (state) => (state.theme === 'dark') !== board, 'and its change');
});

test('no other site may hold the page in a frame', { skip }, async () => {
  const reply = await fetch(address.replace('#graph_ascend', 'data/plugin/graph_ascend/index.html'));
  assert.equal(reply.headers.get('x-frame-options'), 'SAMEORIGIN');
  assert.match(reply.headers.get('content-security-policy'), /frame-ancestors 'self'/);
});
