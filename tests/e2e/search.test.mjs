// The list of nodes beside the graphs, and what can be typed to find them; the list of files.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { BROKEN, msprobe, RENAMED, writeDecoder, writeTrends } from './data.mjs';
import { browser, findCommand, holds, listed, openPage, OUT, serve, shows, tickLevels, until } from './support.mjs';

const CHINESE = { locale: 'zh-CN', colorScheme: 'dark' };
const EXPECTED_FAULT = /status of 4\d\d/;

let directory;
let graph;
let chrome;
let server;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  const served = join(directory, 'served');
  mkdirSync(served);
  writeDecoder(join(directory, 'dumps'));
  const dump = join(directory, 'dumps/target/step0/rank0/dump.json');
  writeFileSync(dump, readFileSync(dump, 'utf8').replace(/("Torch\.clone\.0\.forward":.*?)torch\.float32/, '$1torch.bfloat16'));
  msprobe('graph_visualize', '-tp', join(directory, 'dumps/target'), '-gp', join(directory, 'dumps/golden'), '-o', join(served, 'bad'), '-oc');
  msprobe('graph_visualize', '-tp', join(directory, 'dumps/golden'), '-gp', join(directory, 'dumps/golden'), '-o', join(served, 'good'));
  const fileOf = (run) => join(served, run, readdirSync(join(served, run)).find((name) => name.endsWith('.vis.db')));
  for (let i = 0; i < 8; i++) copyFileSync(fileOf('good'), join(served, `run${i}.vis.db`));
  utimesSync(join(served, 'run5.vis.db'), 2e9, 2e9);
  writeTrends(join(directory, 'trend_dumps'), join(served, 'trends'));
  graph = fileOf('bad');
  server = await serve(served);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function visit(hash = '', options = {}, url = server.answer.url + hash) {
  const { page, faults } = await openPage(chrome, options);
  await page.goto(url);
  const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
  const ready = () => until(async () => (await state()).graph === 'ready', 'the graph is ready');
  const shoot = (name) => page.screenshot({ path: join(OUT, `${name}.png`) });
  const leave = async () => {
    await page.context().close();
    assert.deepEqual(faults.filter((fault) => !EXPECTED_FAULT.test(fault)), []);
  };
  return { page, state, ready, shoot, leave };
}

const toGraph = () => `#file=${encodeURIComponent(graph.slice(join(directory, 'served/').length))}`;

/** What a search finds, as names; a refusal is thrown. */
async function find(page, text) {
  await page.locator('#search').fill(text);
  await listed(page);
  const hits = page.locator('#search-hits li');
  return hits.evaluateAll((all) => all.map((hit) => hit.title));
}

async function tryTheSyntax(page) {
  const { length: all } = await find(page, 'mlp');
  assert.ok(all > 8);
  const both = await find(page, 'layers.2 down');
  assert.ok(both.length > 0 && both.every((name) => name.includes('layers.2') && name.includes('down')), both.join());
  assert.deepEqual((await find(page, 'down layers.2')).sort(), [...both].sort());
  assert.ok((await find(page, 'layers.*down')).length > both.length);
  assert.deepEqual(await find(page, 'layers.?.mlp.DOWN*forward -layers.0 -layers.1 -layers.3'), [BROKEN]);
  assert.ok((await find(page, 'verdict:bug,suspicious')).length > 0);
  assert.ok((await find(page, 'type:op')).every((name) => !name.startsWith('Module.')));
  assert.ok((await find(page, 'verdict:missing up_proj')).includes(RENAMED));
  const linear = await find(page, 'op:linear');
  assert.ok(linear.includes(BROKEN) && linear.every((name) => /\blinear\b/i.test(name)), linear.join());
  assert.deepEqual(await find(page, 'op:linea'), []);
  assert.ok((await find(page, '-op:linear')).every((name) => !linear.includes(name)));
  const far = await find(page, 'error>10%');
  assert.ok(far.includes(BROKEN), far.join());
  assert.deepEqual(await find(page, 'error>0.1'), far);
  assert.ok((await find(page, 'error<=10%')).every((name) => !far.includes(name)));
  assert.ok((await find(page, 'side:golden up_proj_new')).length > 0);
  assert.deepEqual(await find(page, 'dtype:bf16'), ['Torch.clone.0.forward']);
  assert.ok((await find(page, 'dtype:float32 type:op -dtype:torch.bfloat16')).length === 0);
  assert.ok((await find(page, 'dtype:fp32')).includes(BROKEN));
  assert.deepEqual(await find(page, 'overflow:any op:linear rank:0'), []);
  assert.ok((await find(page, 'overflow:any op:linear rank:1')).includes(BROKEN), 'of the other rank');
}

/** A hit of the graph of another rank is gone to there, and the list stays. */
async function tryTheOtherRank(page) {
  const state = () => page.evaluate(() => window.__msprobe.state());
  assert.equal((await state()).rank, 0);
  const found = await find(page, 'overflow:any op:linear rank:1');
  assert.ok(found.includes(BROKEN), found.join());
  await page.locator('#search-hits li').nth(found.indexOf(BROKEN)).click();
  await until(async () => (await state()).rank === 1 && (await state()).selection?.name === BROKEN, 'rank 1 is shown with the hit', state);
  await holds(() => assert.match(page.url(), /rank=1/));
  await until(async () => (await page.locator('#search-hits li').count()) === found.length, 'the list is still there');
  assert.equal(await page.locator('#search').inputValue(), 'overflow:any op:linear rank:1');
}

/** Sorted by pointer and by keys: what the order of modules lists. */
async function trySorting(page) {
  const modules = () => find(page, 'error>=0 type:module');
  const executed = await modules();
  const far = await find(page, 'error>10% type:module');
  assert.ok(far.length > 1 && far.length < executed.length);
  await page.locator('[data-test=search-sort-error]').click();
  await until(async () => (await modules()).slice(0, far.length).sort().join() === [...far].sort().join(), 'the largest stand first');
  assert.deepEqual((await modules()).sort(), [...executed].sort());
  await page.locator('[data-test=search-sort-error]').focus();
  await page.keyboard.press('ArrowRight');
  await holds(async () => assert.equal(await page.locator('[data-test=search-sort-module]').getAttribute('aria-checked'), 'true'));
  const together = async () => {
    const paths = (await modules()).map((name) => name.replace(/\.[^.]+\.(forward|backward).*/, ''));
    return paths.filter((path, i) => path !== paths[i - 1]).length === new Set(paths).size;
  };
  await until(together, 'forward and backward of a module stand together');
  return modules();
}

test('words, wildcards and fields find nodes, with a server and without', async () => {
  const { page, ready, shoot, leave } = await visit(toGraph());
  await ready();
  await page.keyboard.press('/');
  await shows(page.locator('[data-test=search-help]'), /layers\.\*down[\s\S]*verdict:bug/);
  await shoot('search_help');
  await tryTheSyntax(page);
  const sorted = await trySorting(page);
  await holds(() => assert.match(page.url(), /sort=module/));
  await shoot('search_sorted');
  await page.reload();
  await ready();
  await page.keyboard.press('/');
  await until(async () => (await page.locator('#search-hits li').count()) > 0, 'the list is back');
  await holds(async () => assert.equal(await page.locator('[data-test=search-sort-module]').getAttribute('aria-checked'), 'true'));
  // n goes through the list as it stands.
  const selected = (name) => until(async () => (await page.evaluate(() => window.__msprobe.state().selection))?.name === name, `${name} is selected`);
  await page.locator('#search-hits li').first().click();
  await selected(sorted[0]);
  await page.keyboard.press('n');
  await selected(sorted[1]);
  await find(page, 'side:golden up_proj_new');
  // A hit of the other side is gone to there.
  await page.locator('#search-hits li').first().click();
  await until(async () => (await page.evaluate(() => window.__msprobe.state().selection))?.side === 'Bench', 'the golden node is selected');
  await tryTheOtherRank(page);
  await leave();

  const file = join(directory, 'page.html');
  execFileSync(findCommand(), ['export', graph, '-o', file], { stdio: 'ignore' });
  const exported = await visit('', {}, pathToFileURL(file).href);
  await exported.ready();
  await exported.page.keyboard.press('/');
  await tryTheSyntax(exported.page);
  assert.deepEqual(await trySorting(exported.page), sorted, 'as with a server');
  await tryTheOtherRank(exported.page);
  await exported.page.locator('#search').fill('verdict:bag');
  await exported.page.locator('[data-test=search-refused]', { hasText: 'bag is not a value of verdict: bug,' }).waitFor();
  await exported.leave();
});

test('what is no search is told in the language of the page', async () => {
  for (const [name, options, words, dtype, rank] of [['refused', {}, /^colour: is not a field: use verdict, result, overflow, type, op, dtype, error, side or rank/, /^bf17 is not a value of dtype: float32, /, /^rank: there is no rank 9 in this file: it has 0-1$/], ['refused_zh', CHINESE, /^colour: 不是搜索字段：可用 verdict/, /^bf17 不是 dtype 的取值，可用：float32, /, /^rank: 此文件中没有 rank 9：已有 0-1$/]]) {
    const { page, ready, shoot, leave } = await visit(toGraph(), options);
    await ready();
    await page.keyboard.press('/');
    await page.keyboard.type('colour:red');
    const note = page.locator('[data-test=search-refused]');
    await note.waitFor();
    await holds(async () => assert.match(await note.innerText(), words));
    await shoot(`search_${name}`);
    for (const [typed, told] of [['dtype:bf17', dtype], ['rank:9', rank]]) {
      await page.locator('#search').fill(typed);
      await until(async () => told.test(await note.innerText()), `${typed} is refused in the language of the page`, () => note.innerText());
    }
    await leave();
  }
});

test('the list stays beside both graphs while ten hits are walked by pointer and by keys, and keeps its width', async () => {
  const { page, state, ready, shoot, leave } = await visit(toGraph(), { viewport: { width: 1024, height: 768 } });
  await ready();
  await page.locator('[data-test=count-inherited]').click();
  const hits = page.locator('#search-hits li');
  await until(async () => (await hits.count()) > 10, 'hits are there');
  for (let i = 0; i < 5; i++) {
    const name = await hits.nth(i).getAttribute('title');
    await hits.nth(i).click();
    await until(async () => (await state()).selection?.name === name, `${name} is selected`);
  }
  for (let i = 5; i < 10; i++) {
    const name = await hits.nth(i).getAttribute('title');
    await page.keyboard.press('n');
    await until(async () => (await state()).selection?.name === name, `n goes to ${name}`);
    await until(async () => (await hits.nth(i).getAttribute('class')).includes('active'), 'and marks it in the list');
  }
  const dock = page.locator('[data-test=search-dock]');
  const golden = await page.locator('canvas[data-side=Bench]').boundingBox();
  const list = await dock.boundingBox();
  assert.ok(golden.x + golden.width <= list.x, 'the golden graph is not covered');
  assert.ok(golden.width > 200);
  await shoot('search_dock_1024');
  const splitter = page.getByRole('separator', { name: 'Width of the list of nodes' });
  await splitter.focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowLeft');
  await until(async () => (await dock.boundingBox()).width > list.width + 40, 'the list is wider', () => dock.boundingBox());
  const { width } = await dock.boundingBox();
  await page.reload();
  await ready();
  await page.keyboard.press('/');
  await until(async () => Math.abs((await dock.boundingBox()).width - width) < 2, 'as wide as it was');
  // A call says which module it stands in.
  await tickLevels(page);
  assert.deepEqual(await find(page, 'type:op clone'), ['Torch.clone.0.forward']);
  await holds(async () => assert.equal(await page.locator('.hit-module').innerText(), 'in model'));
  await leave();
});

test('the list of files has a filter, orders and verdicts; trends have a tab of their own', async () => {
  for (const [name, options] of [['files_list', {}], ['files_list_zh', CHINESE]]) {
    const { page, shoot, leave } = await visit('', options);
    await page.locator('.file-link').first().waitFor();
    const names = () => page.locator('.file-link').allInnerTexts().then((all) => all.map((text) => text.trim()));
    await holds(async () => assert.equal((await names()).length, 10));
    const verdicts = page.locator('[data-test=file-verdict]');
    await until(async () => (await verdicts.count()) === 10, 'what came out is there');
    await holds(async () => assert.match(await page.locator('tr', { hasText: 'bad/' }).innerText(), options.locale ? /误差源头：[\s\S]* 对比 [\s\S]* · rank 数：2/ : /Origin: [\s\S]* against [\s\S]* · ranks: 2/));
    await page.locator('[data-test=files-by-verdict]').click();
    await holds(async () => assert.match((await names())[0], /^bad\//));
    await shoot(name);
    await page.locator('[data-test=files-by-changed]').click();
    await holds(async () => assert.equal((await names())[0], 'run5.vis.db'));
    await page.locator('[data-test=file-filter]').fill('down_proj');
    await until(async () => (await names()).length === 1, 'by what is said of it');
    await page.locator('[data-test=file-filter]').fill('RUN vis');
    await holds(async () => assert.equal((await names()).length, 8));
    await page.locator('[data-test=files-trends]').click();
    await holds(async () => assert.equal((await names()).length, 2));
    await leave();
  }
});
