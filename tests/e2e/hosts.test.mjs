// Every function of the page where it is a guest: as a tab of TensorBoard below a path prefix, and as one exported file.
// The other files here walk the same functions with a server of its own.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { msprobe, TENSOR_NODE, TREND_LAYERS, writeTensors, writeTrends } from './data.mjs';
import { hugeDump, makeGraph, MODULE, MODULE_GOLDEN, overflow, RANKS, renamedGraph } from './large_data.mjs';
import { browser, counts, DEMO, freePort, holds, listed, openPage, OUT, ROOT, start, tickLevels, until } from './support.mjs';

const TENSORBOARD = process.env.MSPROBE_BOARD ?? join(ROOT, '.venv-board/bin/tensorboard');
const BROKEN = process.env.MSPROBE_DEMO_NODE ?? 'Module.model.layers.2.mlp.down_proj.Linear.forward.0';
const skip = existsSync(TENSORBOARD) || process.env.CI === 'true' ? false : 'TensorBoard with msprobe is not installed';
const WORK = mkdtempSync(join(tmpdir(), 'msprobe_hosts_'));
const LOGS = join(WORK, 'logs');
const PREFIX = '/boards/one';
const CHINESE = { locale: 'zh-CN', colorScheme: 'dark' };
const EXPECTED_FAULT = /status of 4\d\d/; // the browser repeats each answer that is an error

let address;
let server;
let chrome;

before(async () => {
  for (const name of ['first run', '第二']) cpSync(DEMO, join(LOGS, name), { recursive: true });
  for (const side of ['target', 'golden']) cpSync(join(RANKS, side), join(LOGS, 'dumps', side), { recursive: true });
  put('ranks.vis.db', (out) => makeGraph(out, join(RANKS, 'target'), join(RANKS, 'golden')));
  put('renamed.vis.db', (out) => renamedGraph(join(WORK, 'renamed'), out));
  writeTensors(join(LOGS, 'values'));
  overflow(join(LOGS, 'values/target'));
  put('values.vis.db', (out) => makeGraph(out, join(LOGS, 'values/target'), join(LOGS, 'values/golden'), '--overflow_check'));
  writeTrends(join(WORK, 'runs'), join(LOGS, 'trends'));
  chrome = await browser();
  if (skip) return;
  const port = String(await freePort());
  const args = ['--logdir', LOGS, '--host', '127.0.0.1', '--port', port, '--path_prefix', PREFIX];
  server = await start(TENSORBOARD, args, (text) => (/TensorBoard .* at http/.test(text) ? true : undefined), { seconds: 120 });
  address = `http://127.0.0.1:${port}${PREFIX}/#graph_ascend`;
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(WORK, { recursive: true, force: true });
});

/** A graph under a name of its own below the log directory. */
function put(name, make) {
  const out = join(WORK, `made ${name}`);
  renameSync(join(out, make(out)), join(LOGS, name));
}

/** The frame that TensorBoard shows the tab in, once our page is in it. */
async function tabOf(page) {
  const element = await page.locator('iframe').first().elementHandle();
  const frame = await element.contentFrame();
  await frame.waitForURL(/\/data\/plugin\/graph_ascend\/index\.html/);
  await frame.waitForFunction(() => window.__msprobe !== undefined);
  return frame;
}

function reaches(frame, check, what) {
  const state = () => frame.evaluate(() => window.__msprobe?.state() ?? {});
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
  await counts(frame.locator('.file-link'), 5);
  await frame.locator('[data-test=files-trends]').click();
  await counts(frame.locator('.file-link'), 2);
  await frame.locator('[data-test=files-graphs]').click();
  await toNode(frame, '第二', BROKEN);
  const weight = frame.locator('.items tbody', { hasText: 'parameters.weight' });
  await counts(weight.locator('tr.NPU'), 1);
  await counts(weight.locator('tr.Bench'), 1);
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
  // What the menu copies is that address, not the one of the frame.
  const inside = await tabOf(page);
  await inside.locator('canvas[data-side=NPU]').press('Shift+F10');
  await inside.evaluate(() => {
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
    document.addEventListener('copy', () => (window.copied = document.activeElement.value));
  });
  await inside.locator('[data-test=menu-link]').click();
  await until(() => inside.evaluate(() => window.copied !== undefined), 'the link is copied');
  assert.equal(await inside.evaluate(() => window.copied), link);
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

/** The page in a host, with what a walk needs of it. */
async function inTensorBoard(hash, options) {
  const { page, faults } = await openPage(chrome, options);
  await page.goto(`${address}&p.graph_ascend.at=${encodeURIComponent(hash)}`);
  const ours = () => faults.filter((text) => /msprobe|graph_ascend\/|frame|Content.Security/i.test(text) && !EXPECTED_FAULT.test(text));
  return visitor(page, await tabOf(page), ours);
}

async function inFile(file, hash, options) {
  const { page, faults } = await openPage(chrome, options);
  await page.goto(`${pathToFileURL(file).href}#${hash}`);
  return visitor(page, page, () => faults);
}

function visitor(page, frame, faults) {
  const state = () => frame.evaluate(() => window.__msprobe?.state() ?? {});
  const wait = (check, what) => reaches(frame, check, what);
  const press = (key) => frame.locator('body').press(key);
  const pressIn = (selector, key) => frame.locator(selector).first().press(key);
  const click = (test) => frame.locator(`[data-test=${test}]`).first().click();
  const leave = async () => {
    await page.context().close();
    assert.deepEqual(faults(), []);
  };
  return { page, frame, state, wait, press, pressIn, click, leave, shoot: (name) => page.screenshot({ path: join(OUT, `${name}.png`) }) };
}

/** What only looks: search, filters, small pictures, keys, tables, flow, overview, ranks, theme, language. */
async function look({ page, frame, state, wait, press, pressIn, click, shoot }, name) {
  await wait((now) => now.graph === 'ready' && now.findings === 'ready', 'the graph is ready');
  // The overview leads to the finding, the flow on from it.
  await frame.locator('[data-test=verdict-go], [data-test^=finding-]').first().click();
  await wait((now) => now.details === 'ready' && now.links === 'ready', 'a finding is selected');
  const first = (await state()).selection.name;
  await click('tab-flow');
  await frame.locator('[data-test=producer], [data-test=consumer]').first().click();
  await wait((now) => now.selection?.name !== first && now.details === 'ready', 'the flow leads on');
  await pressIn('canvas[data-side=NPU]', 'Escape');
  await wait((now) => now.selection === null, 'nothing is selected');
  await frame.locator('[data-test^=layer-forward-]').first().click();
  await wait((now) => now.selection !== null && now.details === 'ready' && now.links === 'ready', 'a layer leads to a node');

  // By name, through the hits, along a filter.
  await pressIn('canvas[data-side=NPU]', '/');
  await frame.locator('#search').fill('MLP.down');
  await frame.locator('#search-hits li', { hasText: BROKEN }).first().click();
  await wait((now) => now.selection?.name === BROKEN && now.details === 'ready', 'the hit is selected');
  await click('colors-precision');
  await frame.locator('[data-test=count-error]:enabled, [data-test=count-warning]:enabled').first().waitFor();
  const level = (await frame.locator('[data-test=count-error]').isEnabled()) ? 'error' : 'warning';
  await click(`count-${level}`);
  await frame.locator('#search-hits li').first().waitFor();
  const total = async () => Math.max(...((await frame.locator('.search-count').innerText()).replaceAll(',', '').match(/\d+/g) ?? ['0']).map(Number));
  await tickLevels(frame, 'pass');
  await frame.locator('#search-hits .dot.pass').first().waitFor();
  await reaches(frame, async () => (await total()) > 0 && (await frame.locator(`#search-hits .dot.${level}`).count()) === 0, 'what passes is listed');
  const all = await total();
  await frame.locator('[data-test=search-leaves]').check();
  await reaches(frame, async () => (await total()) > 0 && (await total()) < all, 'leaves only');
  await tickLevels(frame, level);
  await frame.locator('#search').press('Escape');
  const before = (await state()).selection.name;
  await pressIn('canvas[data-side=NPU]', 'n');
  await wait((now) => now.selection.name !== before && now.details === 'ready', 'n leads to the next finding');

  // Tables: sorted, saved, with the stack.
  await click('tab-items');
  await frame.locator('.items tbody').first().waitFor();
  await frame.locator('[data-test^=sort-]').first().click();
  await frame.locator('.items tbody').first().waitFor();
  const [saved] = await Promise.all([page.waitForEvent('download'), click('download')]);
  const [head, ...lines] = readFileSync(await saved.path(), 'utf8').trim().split('\r\n');
  assert.match(head, /^item,side,name,Result,/);
  assert.equal(lines.length, await frame.locator('.items tbody tr:not(.message)').count());
  await click('tab-stack');
  await frame.locator('.stacks').waitFor();

  // Both pictures, fitting, zooming, the partner, the menu of a node.
  for (const side of ['NPU', 'Bench']) {
    await click(`map-${side}`);
    await frame.locator(`canvas[data-map=${side}]`).waitFor({ state: 'detached' });
    await click(`map-${side}`);
    await frame.locator(`canvas[data-map=${side}]`).waitFor();
  }
  await pressIn('canvas[data-side=NPU]', 'w');
  await wait(() => frame.evaluate(() => window.__msprobe.zoom('NPU') > 1.1 && window.__msprobe.zoom('Bench') > 1.1), 'both sides zoom');
  await click('fit');
  await wait(() => frame.evaluate(() => window.__msprobe.zoom('NPU') < 1), 'the graph is fitted');
  await pressIn('canvas[data-side=NPU]', '0');
  // Small pictures lead up and down, and the other side goes along.
  const tops = () => frame.evaluate(() => ['NPU', 'Bench'].map((side) => window.__msprobe.map(side).top));
  for (const side of ['NPU', 'Bench']) {
    const picture = frame.locator(`canvas[data-map=${side}]`);
    const { width, height } = await picture.boundingBox();
    await picture.click({ position: { x: width / 2, y: 3 } });
    await until(async () => (await tops()).every((top) => top === 0), `both sides are at the top by ${side}`, tops);
    await picture.click({ position: { x: width / 2, y: height - 14 } });
    await until(async () => (await tops()).every((top) => top > 0), `both sides go down by ${side}`, tops);
  }
  const { selection } = await state();
  await pressIn('canvas[data-side=NPU]', 'm');
  await wait((now) => now.selection.side === 'Bench', 'm goes to the partner');
  await pressIn('canvas[data-side=Bench]', 'm');
  await wait((now) => now.selection.name === selection.name && now.details === 'ready', 'and back');
  await pressIn('canvas[data-side=NPU]', 'Shift+F10');
  await frame.locator('.node-menu').waitFor();
  await press('Escape');
  await frame.locator('.node-menu').waitFor({ state: 'detached' });
  await press('?');
  await frame.locator('dialog.help').waitFor();
  await shoot(`${name}_help`);
  await pressIn('dialog.help', 'Escape');

  const [{ theme, language }, ground] = [await state(), () => frame.evaluate(() => getComputedStyle(document.body).backgroundColor)];
  const color = await ground();
  await click('theme');
  await wait(async (now) => now.theme !== theme && (await ground()) !== color, 'the other theme');
  await click('language');
  await wait((now) => now.language !== language, 'the other language');
  await frame.locator('.summary-bar', { hasText: language === 'zh' ? 'Sync expand' : '同步展开' }).waitFor();
  await shoot(name);
}

/** The other rank, over the matrix and over the list. */
async function chooseRank({ frame, wait }) {
  await wait((now) => now.graph === 'ready' && now.findings === 'ready', 'the graph is ready');
  const cell = frame.locator('[data-test^=cell-]').last();
  const rank = Number((await cell.getAttribute('data-test')).split('-')[2]);
  await cell.click();
  await wait((now) => now.rank === rank && now.graph === 'ready', 'the matrix leads to the rank');
  await frame.locator('.selectors select').nth(1).selectOption('0');
  await wait((now) => now.rank === 0 && now.graph === 'ready', 'and the list back');
}

/** Overflow levels as colours and as a filter. */
async function lookAtOverflows({ frame, wait }) {
  await wait((now) => now.graph === 'ready', 'the graph is ready');
  await frame.locator('[data-test=colors-overflow]').click();
  await frame.locator('.count.critical:enabled, .count.high:enabled, .count.medium:enabled').first().click();
  await frame.locator('#search-hits li', { hasText: TENSOR_NODE }).first().click();
  await wait((now) => now.selection?.name === TENSOR_NODE && now.details === 'ready', 'the overflow is selected');
}

/** The map of a run, a line, the second run; the numbers are compared with those of another host. */
async function lookAtTrends({ frame }, shoot) {
  const map = frame.locator('[data-test=trend-map]');
  const readout = () => frame.locator('[data-test=trend-readout]').innerText();
  await map.waitFor();
  await frame.locator('[data-test=trend-value]').selectOption('1');
  await frame.locator('[data-test=trend-search]').fill('output');
  await frame.locator('.trends', { hasText: `${TREND_LAYERS + 1} ` }).waitFor();
  const read = [];
  const move = async (key) => {
    const before = await readout();
    await map.press(key);
    await until(async () => (await readout()) !== before, `${key} leads to another cell`, readout);
  };
  for (const keys of [['ArrowDown', 'ArrowDown', 'ArrowDown'], ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight']]) {
    for (const key of keys) await move(key);
    read.push(await readout());
  }
  await frame.locator('[data-test=trend-second]').selectOption({ index: 1 });
  await frame.locator('[data-test=trend-difference]').click();
  // Nothing is chosen on a new map: a key that comes before it is lost.
  await until(async () => /^(A click|点击)/.test(await readout()), 'the map of both runs is there', readout);
  await move('ArrowDown');
  assert.match(await readout(), /second run|第二次运行/);
  read.push(await readout());
  await map.press('Enter');
  await frame.locator('.trend-chart svg path.dashed').waitFor();
  await shoot();
  return read;
}

const first = (...parts) => join(LOGS, ...parts, readdirSync(join(LOGS, ...parts))[0]);
const link = (file, more = {}) => new URLSearchParams({ file, ...more }).toString();
let inTab; // what the tab reads off the trends, to be found in the exported file as well

test('TensorBoard: everything that only looks, in light English', { skip }, async () => {
  const visit = await inTensorBoard(link(`第二/${readdirSync(join(LOGS, '第二'))[0]}`));
  await look(visit, 'tensorboard_look');
  await visit.leave();
  for (const [file, walk] of [['ranks.vis.db', chooseRank], ['values.vis.db', lookAtOverflows]]) {
    const other = await inTensorBoard(link(file));
    await walk(other);
    await other.leave();
  }
});

test('TensorBoard: trends, in dark Chinese', { skip }, async () => {
  const visit = await inTensorBoard('trend=trends/broken/dump_data.trend.db', CHINESE);
  inTab = await lookAtTrends(visit, () => visit.shoot('tensorboard_trends_zh'));
  await visit.leave();
});

/** The values of a tensor, of both sides. */
async function lookAtTensor(visit, name) {
  const { frame } = visit;
  await visit.click('tab-tensor');
  await frame.locator('[data-test=tensor-item]').selectOption({ label: 'output.0' });
  await frame.locator('[data-test=worst]').waitFor();
  await holds(async () => assert.match((await frame.locator('[data-test=worst] tbody tr').allInnerTexts())[1], /^\[1, 2, 5\]\s.*\s9$/));
  await counts(frame.locator('[data-test=heat]'), 3);
  await counts(frame.locator('[data-test=histogram]'), 2);
  await frame.locator('[data-test=tensor-slice]').fill('1');
  await frame.locator('[data-test=tensor-slice]').press('Enter');
  await frame.locator('.tensor-head code', { hasText: '[1, :, :]' }).waitFor();
  await visit.shoot(name);
  await visit.leave();
}

test('TensorBoard: the values of a tensor', { skip }, async () => {
  await lookAtTensor(await inTensorBoard(link('values.vis.db', { side: 'NPU', node: TENSOR_NODE }), CHINESE), 'tensorboard_tensor_zh');
});

test('an exported file: the values of a tensor', async () => {
  const page = join(WORK, 'tensors.html');
  assert.match(msprobe('export', join(LOGS, 'values.vis.db'), '-o', page), /^tensors: of 2, 2 can be looked at$/m);
  await lookAtTensor(await inFile(page, link('values.vis.db', { side: 'NPU', node: TENSOR_NODE }), CHINESE), 'exported_tensor_zh');
});

test('TensorBoard: nodes are matched, saved, parted, and matched again from the file', { skip }, async () => {
  const visit = await inTensorBoard(link('renamed.vis.db'));
  const { frame, wait, pressIn, click } = visit;
  const said = (kind) => wait(() => frame.evaluate((k) => !window.__msprobe.matching().busy && window.__msprobe.matching().message?.kind === k, kind), `it says ${kind}`);
  const count = async () => Number((await frame.locator('[data-test=count-unmatched] b').allInnerTexts())[0] ?? 0);
  const free = (wanted) => until(async () => (await count()) === wanted, `${wanted} without a partner`, count);
  const goTo = async (side, name) => {
    await pressIn('canvas[data-side=NPU]', '/');
    await frame.locator('.search-bar [role=radio]').nth(side === 'Bench' ? 1 : 0).click();
    await frame.locator('#search').fill(name);
    await listed(frame);
    await frame.locator(`.search-list li[title="${name}"]`).click();
    await wait((now) => now.selection?.name === name && now.details === 'ready', `${name} is selected`);
  };
  await wait((now) => now.graph === 'ready' && now.findings === 'ready', 'the graph is ready');
  await frame.locator('[data-test=count-unmatched]').waitFor();
  const database = readFileSync(join(LOGS, 'renamed.vis.db'));
  const unmatched = await count();
  assert.ok(unmatched > 0);
  await pressIn('canvas[data-side=NPU]', 'c');
  await goTo('NPU', MODULE);
  await goTo('Bench', MODULE_GOLDEN);
  await frame.locator('[data-test=match-descendants]').check();
  await click('match-act');
  await said('made');
  const pairs = await frame.evaluate(() => window.__msprobe.matching().message.values.count);
  await free(unmatched - pairs);
  assert.equal(JSON.parse(readFileSync(join(LOGS, 'renamed.vis.match.json'), 'utf8')).graphs[0].made[MODULE], MODULE_GOLDEN);
  await visit.shoot('tensorboard_matched');
  await click('match-save');
  await said('saved');
  assert.equal(JSON.parse(readFileSync(join(LOGS, 'renamed_0_0.vis.config'), 'utf8'))[MODULE], MODULE_GOLDEN);
  await click('match-act'); // is "cancel" now
  await said('removed');
  await free(unmatched);
  await click('match-apply');
  await said('applied');
  await free(unmatched - pairs);
  assert.ok(readFileSync(join(LOGS, 'renamed.vis.db')).equals(database), 'the database is as it was');
  await visit.leave();
});

test('TensorBoard: a dump below the log directory becomes a graph, and a conversion is cancelled', { skip }, async () => {
  hugeDump(join(LOGS, 'huge'));
  const { frame, click, wait, leave, shoot } = await inTensorBoard('convert', CHINESE);
  const comesTo = (state) => frame.locator(`[data-test=convert-state][data-state=${state}]`).waitFor({ timeout: 60_000 });
  await click('browse-target');
  await click('dir-dumps');
  await click('choose-target');
  await holds(async () => assert.equal(await frame.locator('#field-target').inputValue(), 'dumps/target'));
  await frame.locator('#field-golden').fill('dumps/golden');
  await frame.locator('#field-output').fill('new');
  await click('convert-start');
  await comesTo('done');
  await shoot('tensorboard_converted_zh');
  await click('convert-load');
  await wait((now) => now.graph === 'ready' && /^new\/compare_\d+\.vis\.db$/.test(now.file), 'the new graph is shown');

  await click('convert-icon');
  await frame.locator('#field-target').fill('../logs');
  await click('convert-start');
  await frame.locator('#note-target.field-fault', { hasText: '..' }).waitFor();
  await frame.locator('#field-target').fill('huge');
  await frame.locator('#field-golden').fill('');
  await frame.locator('#field-output').fill('cancelled');
  await click('convert-start');
  await comesTo('running');
  const other = await inTensorBoard('convert');
  await other.frame.locator('[data-test=convert-state][data-state=running]').waitFor();
  await click('convert-cancel');
  await comesTo('cancelled');
  await other.frame.locator('[data-test=convert-state][data-state=cancelled]').waitFor();
  assert.deepEqual(existsSync(join(LOGS, 'cancelled')) ? readdirSync(join(LOGS, 'cancelled')) : [], [], 'nothing is left');
  await other.leave();
  await leave();
});

test('an exported file: everything that only looks, in dark Chinese', async () => {
  const page = join(WORK, 'demo.html');
  msprobe('export', first('first run'), '-o', page);
  const visit = await inFile(page, '', CHINESE);
  await look(visit, 'exported_look_zh');
  await visit.leave();
  for (const [file, walk] of [['ranks', chooseRank], ['values', lookAtOverflows]]) {
    msprobe('export', join(LOGS, `${file}.vis.db`), '-o', join(WORK, `${file}.html`));
    const other = await inFile(join(WORK, `${file}.html`), '');
    await walk(other);
    await other.leave();
  }
});

test('an exported file holds the trends of two runs, with the numbers that the tab shows', async () => {
  const page = join(WORK, 'trends.html');
  const said = msprobe('export', join(LOGS, 'trends/broken/dump_data.trend.db'), join(LOGS, 'trends/golden/dump_data.trend.db'), '-o', page);
  assert.match(said, /^page: .*trends\.html \(\d+\.\d MB, 2 trend files of \d+ names\)$/m);
  assert.match(/http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(readFileSync(page, 'utf8'))[1], /connect-src 'none'/);
  const visit = await inFile(page, '', CHINESE);
  await visit.frame.locator('.file-link', { hasText: 'broken' }).click();
  const read = await lookAtTrends(visit, () => visit.shoot('exported_trends_zh'));
  assert.match(read[0], /layers\.\d+\.mlp\.Linear\.output\.0/);
  if (inTab) assert.deepEqual(read, inTab);
  await visit.frame.locator('.brand').click();
  await visit.frame.locator('.file-link', { hasText: 'golden' }).click();
  await visit.frame.locator('[data-test=trend-map]').waitFor();
  await visit.leave();
});

test('an exported file of a directory holds its graph and its trends; one trend opens by itself', async () => {
  const directory = join(WORK, 'both');
  mkdirSync(directory);
  cpSync(join(LOGS, 'ranks.vis.db'), join(directory, 'ranks.vis.db'));
  cpSync(join(LOGS, 'trends/golden/dump_data.trend.db'), join(directory, 'golden.trend.db'));
  const page = join(WORK, 'both.html');
  const said = JSON.parse(msprobe('export', directory, '-o', page, '--json', '--rank', '0'));
  assert.deepEqual([said.graphs, said.trends], [1, 1]);
  const visit = await inFile(page, '');
  const files = async () => (await visit.frame.locator('.file-link').allInnerTexts()).map((text) => text.trim());
  await holds(async () => assert.deepEqual(await files(), ['ranks.vis.db']));
  await visit.frame.locator('[data-test=files-trends]').click();
  await holds(async () => assert.deepEqual(await files(), ['golden.trend.db']));
  await visit.frame.locator('.file-link').click();
  await visit.frame.locator('[data-test=trend-map]').waitFor();
  await holds(async () => assert.deepEqual(await visit.frame.locator('[data-test=trend-value] option').allInnerTexts(), ['0'], 'the chosen rank'));
  await visit.leave();
  msprobe('export', join(directory, 'golden.trend.db'), '-o', join(WORK, 'alone.html'));
  const alone = await inFile(join(WORK, 'alone.html'), '');
  await alone.frame.locator('[data-test=trend-map]').waitFor();
  await alone.leave();
  assert.throws(() => msprobe('export', LOGS, '-o', page), 'several graphs are not one page');
});

test('an exported file says what it cannot do, in both languages', async () => {
  const page = join(WORK, 'limits.html');
  msprobe('export', join(LOGS, 'values.vis.db'), '-o', page, '--max_tensors', '0');
  for (const [options, words] of [[{}, [/without a server/, /does not hold the values of this tensor/, /as they were when it was written/]], [CHINESE, [/没有服务/, /不含该张量的数值/, /不能修改/]]]) {
    const { frame, wait, press, click, leave, shoot } = await inFile(page, link('values.vis.db', { side: 'NPU', node: TENSOR_NODE }), options);
    await wait((now) => now.details === 'ready', 'the node is selected');
    await holds(async () => assert.match(await frame.locator('[data-test=exported]').getAttribute('title'), words[0]));
    await click('tab-tensor');
    await frame.locator('#tab-panel', { hasText: words[1] }).waitFor();
    await press('c');
    await frame.locator('[data-test=matching-bar]', { hasText: words[2] }).waitFor();
    assert.equal(await frame.locator('[data-test=match-act], [data-test=convert-icon]').count(), 0);
    await shoot(`exported_limits${options.locale ? '_zh' : ''}`);
    await click('exported');
    await holds(async () => assert.match(await frame.locator('[data-test=exported-limits]').innerText(), words[0]));
    await leave();
  }
});
