// Ways to the bug: the overview, the flow of values, the order of execution, ranks and steps; with a server and, from
// an exported page, without one.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { browser, counts, DEMO, findCommand, holds, listed, openPage, OUT, ROOT, serve, tickLevels, until } from './support.mjs';

const LAYER = process.env.MSPROBE_DEMO_LAYER ?? 'Module.model.layers.2.LlamaDecoderLayer.forward.0';
const COLUMN = LAYER.replace(/^Module\./, '').replace(/\.[A-Za-z]+\.forward\.\d+$/, ''); // model.layers.2
const RANKS = join(ROOT, 'tests/golden/graph/ranks');
const CHINESE = { locale: 'zh-CN', colorScheme: 'dark' };

let directory;
let chrome;
let server;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  copyFileSync(join(DEMO, readdirSync(DEMO).find((file) => file.endsWith('.vis.db'))), join(directory, 'demo.vis.db'));
  mkdirSync(join(directory, 'ranks'));
  execFileSync(findCommand(), ['graph_visualize', '-tp', join(RANKS, 'target'), '-gp', join(RANKS, 'golden'), '-o', join(directory, 'ranks')], { stdio: 'ignore' });
  server = await serve(directory);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function visit(url, options) {
  const opened = await openPage(chrome, options);
  const { page } = opened;
  await page.goto(url);
  const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
  await until(async () => (await state()).graph === 'ready' && (await state()).findings === 'ready', 'the graph is ready');
  const selected = () => until(async () => (await state()).details === 'ready' && (await state()).links === 'ready', 'a node is selected');
  const shoot = (name) => page.screenshot({ path: join(OUT, `${name}.png`) });
  const leave = async () => {
    await page.context().close();
    assert.deepEqual(opened.faults, []);
  };
  return { page, state, selected, shoot, leave };
}

const demo = () => `${server.answer.url}#file=demo.vis.db`;
const inLayer = (name) => new RegExp(`${COLUMN.replaceAll('.', '\\.')}\\.|^Functional|^Torch|^Tensor`).test(name);

/** From the origin to the sabotaged layer, over the strip, along the flow. */
async function walk({ page, state, selected, shoot }, name) {
  await page.locator('[data-test=verdict-card]').waitFor();
  await shoot(`${name}_landing`);
  await page.locator('[data-test=verdict-go]').click();
  await selected();
  const first = (await state()).selection.name;
  await holds(async () => assert.match(`${first} ${await page.locator('[data-test=node-name]').innerText()}`, /layers\.2\./, 'the origin is in the sabotaged layer'));

  await page.locator('[data-test=tab-flow]').click();
  const ends = page.locator('[data-test=producer]');
  await until(async () => (await ends.count()) > 0, 'what it takes comes from somewhere');
  await until(async () => (await page.evaluate(() => window.__msprobe.edges('NPU'))).length > 0, 'edges are drawn');
  await shoot(`${name}_flow`);
  const wanted = await ends.first().getAttribute('title');
  await ends.first().click();
  await until(async () => (await state()).selection.name === wanted, 'the producer is selected');
  await selected();
  await until(async () => (await page.locator('[data-test=consumer]').evaluateAll((all) => all.map((end) => end.title))).includes(first), 'and leads back');

  await page.locator('[data-test=next-op]').click();
  await until(async () => (await state()).selection.name !== wanted, 'the next op is selected');
  await selected();
  await page.locator('body').press('[');
  await until(async () => (await state()).selection.name === wanted, 'and the way back leads to it');

  await page.locator('[data-test=tab-overview]').click();
  const bar = page.locator(`[data-test="layer-forward-${COLUMN}"]`);
  const tall = (locator) => locator.locator('.bar-fill').evaluate((fill) => fill.getBoundingClientRect().height);
  await holds(async () => assert.ok((await tall(bar)) > (await tall(page.locator(`[data-test="layer-forward-${COLUMN.replace(/\d+$/, '1')}"]`))), 'the error grows there'));
  await bar.click();
  await selected();
  await holds(async () => assert.ok(inLayer((await state()).selection.name), `the bar leads into the layer, not to ${(await state()).selection.name}`));
}

test('the overview leads to the sabotaged layer, the flow along it', async () => {
  const visitor = await visit(demo());
  await walk(visitor, 'overview');
  await visitor.leave();
});

test('the keys walk the nodes that a filter keeps', async () => {
  const { page, state, selected, leave } = await visit(demo());
  await page.keyboard.press('/');
  const numbers = await Promise.all(['inherited', 'round-off', 'bit-equal'].map((level) => page.locator(`[data-test=count-${level}] b`).innerText()));
  await tickLevels(page, 'inherited', 'round-off', 'bit-equal');
  await page.keyboard.press('Escape');
  await page.evaluate(() => document.activeElement.blur());
  const seen = [];
  for (const key of ['n', 'n', 'p']) {
    const before = (await state()).selection?.name;
    await page.keyboard.press(key);
    await until(async () => (await state()).selection !== null && (await state()).selection.name !== before, `${key} moves on`);
    await selected();
    seen.push((await state()).selection.name);
    const all = numbers.reduce((sum, count) => sum + Number(count.replaceAll(',', '')), 0);
    await holds(async () => assert.match(await page.locator('.notice').innerText(), new RegExp(`^[12] / ${all}$`)));
  }
  assert.equal(seen[0], seen[2]);
  await leave();
});

test('the list goes on to its last node, scrolled or walked', async () => {
  const { page, leave } = await visit(demo());
  await page.keyboard.press('/');
  await page.keyboard.type('forward');
  const hits = page.locator('#search-hits li');
  const count = () => page.locator('.search-count').innerText();
  await listed(page);
  await until(async () => (await hits.count()) === 200 && /^\d/.test(await count()), 'the first of them');
  const total = Number((await count()).match(/[\d,]+/)[0].replaceAll(',', ''));
  assert.ok(total > 400, `${total}`);
  await page.locator('#search-hits').evaluate((list) => list.scrollTo(0, list.scrollHeight));
  await until(async () => (await hits.count()) >= 400, 'more of them');
  await page.keyboard.press('ArrowUp');
  const at = (index) => async () => (await page.locator('#search-hits li.active').getAttribute('aria-posinset').catch(() => null)) === String(index) && (await count()).startsWith(`${index.toLocaleString('en')} /`);
  await until(at(total), 'the last one is marked');
  await holds(async () => assert.ok(await page.locator('#search-hits li.active').evaluate((hit) => hit.getBoundingClientRect().bottom <= hit.parentElement.getBoundingClientRect().bottom + 1), 'and in sight'));
  await page.locator('#search-hits').evaluate((list) => list.scrollTo(0, 0));
  await until(async () => (await hits.count()) >= 400, 'those before it');
  await page.keyboard.press('ArrowDown');
  await until(at(1), 'then comes the first');
  await leave();
});

test('a node is shown over all ranks and steps, and each leads to it', async () => {
  const file = `ranks/${readdirSync(join(directory, 'ranks'))[0]}`;
  for (const [name, options] of [['history', {}], ['history_dark_zh', CHINESE]]) {
    const { page, state, selected, shoot, leave } = await visit(`${server.answer.url}#file=${encodeURIComponent(file)}`, options);
    await page.keyboard.press('/');
    await page.keyboard.type('all_reduce.0');
    await listed(page);
    await page.locator('#search-hits li', { hasText: 'all_reduce.0' }).first().click();
    await selected();
    const { name: node } = (await state()).selection;
    await page.locator('[data-test=tab-history]').click();
    const cells = page.locator('.history-cell:not(:disabled)');
    await until(async () => (await cells.count()) > 1, 'a cell for each graph');
    await counts(page.locator('.history-cell[aria-current=true]'), 1);
    await shoot(name);
    const [step, rank] = (await cells.last().getAttribute('data-test')).split('-').slice(1).map(Number);
    await cells.last().click();
    await until(async () => (await state()).rank === rank && (await state()).step === step && (await state()).selection?.name === node && (await state()).details === 'ready', 'the node of the other graph');
    await counts(page.locator('[data-test=tab-history][aria-selected=true]'), 1, 'in the same tab');
    assert.ok(await page.locator('[data-test=search-dock]').isVisible(), 'what was looked for stays');
    await leave();
  }
});

test('the matrix of ranks and steps leads to each of them', async () => {
  const file = `ranks/${readdirSync(join(directory, 'ranks'))[0]}`;
  for (const [name, options] of [['matrix', {}], ['matrix_dark_zh', CHINESE]]) {
    const { page, state, shoot, leave } = await visit(`${server.answer.url}#file=${encodeURIComponent(file)}`, options);
    const cells = page.locator('[data-test^=cell-]');
    await until(async () => (await cells.count()) > 1, 'a cell for each rank');
    await counts(page.locator('.cell[aria-current=true]'), 1);
    const [step, rank] = (await cells.last().getAttribute('data-test')).split('-').slice(1).map(Number);
    await cells.last().click();
    await until(async () => (await state()).rank === rank && (await state()).step === step && (await state()).graph === 'ready', 'the other graph is shown');
    await until(async () => (await cells.last().getAttribute('aria-current')) === 'true', 'and marked');
    await shoot(name);
    await leave();
  }
});

test('an exported page opens from disk and shows the same, in both languages and themes', async () => {
  const page = join(directory, 'page with spaces.html');
  const said = JSON.parse(execFileSync(findCommand(), ['export', join(directory, 'demo.vis.db'), '-o', page, '--json'], { encoding: 'utf8' }));
  assert.equal(said.details, said.nodes);
  assert.equal(said.bytes, statSync(page).size);
  assert.equal(statSync(page).mode & 0o777, 0o640);
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(readFileSync(page, 'utf8'))[1];
  assert.match(policy, /default-src 'none'.*connect-src 'none'/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  for (const [name, options] of [['exported', {}], ['exported_dark_zh', CHINESE]]) {
    const visitor = await visit(pathToFileURL(page).href, options);
    if (name === 'exported') await walk(visitor, name);
    else {
      await visitor.page.locator('[data-test=first-finding]').click();
      await visitor.selected();
      await holds(async () => assert.ok((await visitor.page.locator('.items tbody').count()) > 0));
      await visitor.shoot(name);
    }
    await visitor.leave();
  }
});

test('a part of the graphs can be exported, and what is not there is an error', async () => {
  const page = join(directory, 'small.html');
  const args = ['export', join(directory, 'demo.vis.db'), '-o', page];
  assert.match(execFileSync(findCommand(), [...args, '--step', '0', '--rank', '0'], { encoding: 'utf8' }), /^page: .*small\.html \([\d.]+ MB, 1 graph, \d+ nodes\)/);
  assert.throws(() => execFileSync(findCommand(), [...args, '--rank', '77'], { stdio: 'pipe' }), /no graph of the chosen/);
});

test('a run that was killed is told on the first screen, in both languages', async () => {
  const cut = join(directory, 'cut');
  cpSync(join(RANKS, 'target'), cut, { recursive: true });
  const counts = { ops: 1, ops_not_written: 0, bytes: 0, tensor_files: 0, tensor_bytes: 0, tensors_not_written: 0 };
  writeFileSync(join(cut, 'step0/rank0/dump_summary.json'), JSON.stringify({ state: 'recovered', ...counts }));
  const { status } = spawnSync(findCommand(), ['graph_visualize', '-tp', cut, '-gp', join(RANKS, 'golden'), '-o', join(directory, 'killed')]);
  assert.equal(status, 3);
  const [file] = readdirSync(join(directory, 'killed'));
  for (const [options, words] of [[{}, /^Step 0, rank 0 of the target was cut: the run was killed after \d+ of its ops/], [CHINESE, /^调试侧 step 0, rank 0 被截断：运行在写出 \d+ 个算子后被终止/]]) {
    const { page, leave } = await visit(`${server.answer.url}#file=killed/${file}`, options);
    await holds(async () => assert.match(await page.locator('[data-test=verdict-headline]').innerText(), words));
    await leave();
  }
});
