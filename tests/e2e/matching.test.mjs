// Nodes matched by hand: a layer of another name on each side, with the pointer and with keys; the database stays as it is.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MODULE, MODULE_GOLDEN as OTHER, renamedGraph } from './large_data.mjs';
import { browser, findCommand, holds, listed, openPage, OUT, serve, shows, until } from './support.mjs';

let directory;
let chrome;
let server;
let stem;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  stem = renamedGraph(directory, join(directory, 'out')).replace(/\.vis\.db$/, '');
  server = await serve(join(directory, 'out'));
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function visit(options) {
  const opened = await openPage(chrome, options);
  const { page } = opened;
  await page.goto(server.answer.url);
  const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
  const matching = () => page.evaluate(() => window.__msprobe.matching());
  await until(async () => (await state()).graph === 'ready' && (await state()).findings === 'ready', 'the graph is ready');
  await page.locator('.summary-bar .count').first().waitFor();
  const goTo = async (side, name) => {
    await page.keyboard.press('/');
    if (side === 'Bench') await page.locator('.search-bar [role=radio]').nth(1).click();
    else await page.locator('.search-bar [role=radio]').first().click();
    await page.locator('#search').fill(name);
    await listed(page);
    const hit = page.locator(`.search-list li[title="${name}"]`);
    await hit.click();
    await until(async () => (await state()).selection?.name === name && (await state()).details === 'ready', `${name} is selected`);
  };
  // What there is none of has no button.
  const count = async (level) => Number((await page.locator(`[data-test=count-${level}] b`).allInnerTexts())[0] ?? 0);
  const said = (kind) => until(async () => (await matching()).message?.kind === kind && !(await matching()).busy, `it says ${kind}`, matching);
  return { page, state, matching, goTo, count, said, shoot: (name) => page.screenshot({ path: join(OUT, `${name}.png`) }), faults: opened.faults };
}

test('a renamed layer is matched, compared, saved, parted and matched again from the file', async () => {
  const { page, matching, goTo, count, said, shoot, faults } = await visit();
  const db = join(directory, 'out', `${stem}.vis.db`);
  const before = readFileSync(db);
  const unmatched = await count('unmatched');
  assert.ok(unmatched > 0);
  await page.keyboard.press('c');
  await page.locator('[data-test=matching-bar]').waitFor();
  await goTo('NPU', MODULE);
  assert.ok(await page.locator('[data-test=match-act]').isDisabled(), 'one node alone cannot be matched');
  await goTo('Bench', OTHER);
  await page.locator('[data-test=match-descendants]').check();
  await shoot('matching_picked');
  await page.locator('[data-test=match-act]').click();
  await said('made');
  const { count: pairs } = (await matching()).message.values;
  await until(async () => (await count('unmatched')) === unmatched - pairs, 'the counts follow');
  await until(async () => (await page.locator('.items tbody').count()) > 0, 'the figures are there');
  await shows(page.locator('.items thead'), /Norm/);
  await holds(async () => assert.deepEqual(await page.evaluate((name) => window.__msprobe.drawn('NPU').includes(name), MODULE), true));
  await shoot('matching_made');

  await page.locator('[data-test=match-save]').click();
  await said('saved');
  const config = JSON.parse(readFileSync(join(directory, 'out', `${stem}_0_0.vis.config`), 'utf8'));
  assert.equal(config[MODULE], OTHER);
  assert.equal(Object.keys(config).length, pairs);

  await page.locator('[data-test=match-act]').click(); // is "cancel" now
  await said('removed');
  await until(async () => (await count('unmatched')) === unmatched, 'the counts follow');
  await page.locator('[data-test=match-apply]').click();
  await said('applied');
  await until(async () => (await count('unmatched')) === unmatched - pairs, 'the counts follow');
  assert.ok(readFileSync(db).equals(before), 'the database is as it was');
  assert.deepEqual(faults, []);
  await page.context().close();
});

test('with keys alone, in Chinese and dark; another visitor sees it', async () => {
  const other = await visit();
  const { page, state, goTo, count, said, shoot, matching, faults } = await visit({ locale: 'zh-CN', colorScheme: 'dark' });
  await goTo('NPU', MODULE); // matched since the test before
  const unmatched = await count('unmatched');
  await page.keyboard.press('c');
  await until(async () => (await matching()).state.at === 'ready', 'the bar knows the matches');
  await page.keyboard.press('Shift+C');
  await said('removed');
  await until(async () => (await count('unmatched')) > unmatched, 'the counts follow');
  await shows(page.locator('[data-test=match-said]'), /已取消/);

  // The other page was opened before and does not know: it is told, and shows how it is.
  await other.page.keyboard.press('c');
  await until(async () => (await other.matching()).state.at === 'ready', 'its bar is ready');
  await goTo('NPU', MODULE);
  await goTo('Bench', OTHER);
  await page.keyboard.press('Shift+C');
  await said('made');
  await shoot('matching_dark_zh');
  await other.goTo('NPU', MODULE);
  await other.page.keyboard.press('Shift+C');
  await other.said('stale');
  await until(async () => (await other.count('unmatched')) === (await count('unmatched')), 'it shows the matches of the other');
  assert.equal((await state()).graph, 'ready');
  for (const list of [faults, other.faults]) assert.deepEqual(list.filter((text) => !/409/.test(text)), []);
  await page.context().close();
  await other.page.context().close();
});

test('a partner is suggested, changes are undone and made again, a matched node does not push out the one that waits', async () => {
  const { page, state, matching, goTo, count, said, shoot, faults } = await visit();
  await goTo('NPU', MODULE);
  await page.keyboard.press('c');
  await until(async () => (await matching()).state.at === 'ready', 'the bar knows the matches');
  if ((await matching()).picked.Bench) {
    await page.keyboard.press('Shift+C'); // matched since the tests before
    await said('removed');
    await page.locator('[data-test=match-drop-NPU]').click();
    await page.locator('[data-test=match-drop-Bench]').click();
    await goTo('NPU', MODULE);
  }
  const unmatched = await count('unmatched');
  const bar = page.locator('[data-test=matching-bar]');
  const { height } = await bar.boundingBox();
  const first = page.locator('[data-test=match-suggestion]').first();
  await first.waitFor();
  assert.ok((await first.getAttribute('title')).startsWith(`${OTHER} – names `), await first.getAttribute('title'));
  await shoot('matching_suggested');
  // A look at a golden node that has a partner.
  await goTo('Bench', MODULE.replace('down_proj', 'up_proj'));
  await holds(async () => assert.equal((await matching()).message?.kind, 'pending'));
  assert.deepEqual((await matching()).picked, { NPU: MODULE, Bench: null });
  await first.click();
  await until(async () => (await matching()).picked.Bench === OTHER, 'the suggestion is taken');
  await page.locator('[data-test=match-act]').click();
  await said('made');
  await until(async () => (await count('unmatched')) < unmatched, 'the counts follow');
  const pairs = unmatched - (await count('unmatched'));
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('Control+z');
  await said('undone');
  await until(async () => (await count('unmatched')) === unmatched, 'the pairs are taken back');
  await page.keyboard.press('Control+Shift+z');
  await said('redone');
  await until(async () => (await count('unmatched')) === unmatched - pairs, 'and made again');
  await page.locator('[data-test=match-undo]').click();
  await said('undone');
  await page.locator('[data-test=match-redo]').click();
  await said('redone');
  assert.equal((await bar.boundingBox()).height, height, 'the bar keeps its height');
  assert.equal((await state()).graph, 'ready');
  assert.deepEqual(faults, []);
  await page.context().close();
});

test('an exported page shows the matches and offers no others', async () => {
  const file = join(directory, 'page.html');
  execFileSync(findCommand(), ['export', join(directory, 'out', `${stem}.vis.db`), '-o', file], { stdio: 'ignore' });
  assert.ok(existsSync(file));
  const { page, faults } = await openPage(chrome);
  await page.goto(`file://${file}`);
  await page.locator('.summary-bar').waitFor();
  await page.keyboard.press('c');
  await page.locator('[data-test=matching-bar]', { hasText: 'An exported file shows the matches' }).waitFor();
  assert.equal(await page.locator('[data-test=match-act]').count(), 0);
  assert.deepEqual(faults, []);
  await page.context().close();
});
