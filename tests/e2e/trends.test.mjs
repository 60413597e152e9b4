// Trends in a real browser: two runs of six steps on two ranks, of which the second goes wrong at step 3 of rank 1.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { TREND_LAYERS, writeOddTrends, writeTrends } from './data.mjs';
import { browser, counts, holds, openPage, OUT, serve, shows, until } from './support.mjs';

const DATA = mkdtempSync(join(tmpdir(), 'msprobe_trends_'));

let chrome;
let server;
let page;
let faults;

before(async () => {
  writeTrends(join(DATA, 'dumps'), join(DATA, 'served'));
  writeOddTrends(join(DATA, 'dumps'), join(DATA, 'served'));
  server = await serve(join(DATA, 'served'));
  chrome = await browser();
  ({ page, faults } = await openPage(chrome));
  await page.goto(server.answer.url);
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(DATA, { recursive: true, force: true });
});

const map = () => page.locator('[data-test=trend-map]');
const readout = () => page.locator('[data-test=trend-readout]').innerText();

/** To a cell by keys alone: `row` down and `column` to the right of the first. */
async function toCell(row, column) {
  await map().focus();
  await page.keyboard.press('ArrowDown');
  for (let i = 0; i < 40; i++) await page.keyboard.press('ArrowUp');
  for (let i = 0; i < 10; i++) await page.keyboard.press('ArrowLeft');
  for (let i = 0; i < row; i++) await page.keyboard.press('ArrowDown');
  for (let i = 0; i < column; i++) await page.keyboard.press('ArrowRight');
}

test('a trend file opens from the list as a map with names', async () => {
  await page.locator('.file-link', { hasText: 'broken' }).click();
  await map().waitFor();
  await page.locator('[data-test=trend-value]').selectOption('1');
  await page.locator('[data-test=trend-search]').fill('output');
  await until(async () => (await page.locator('.trends').innerText()).includes(`${TREND_LAYERS + 1} rows`), 'outputs only');
  await toCell(1, 0);
  await holds(async () => assert.match(await readout(), /^Module\.model\.layers\.0\.mlp\.Linear\.output\.0 · Step 0 · 0\.01/));
  await page.screenshot({ path: join(OUT, 'trend_map.png') });
  // Keys that come faster than the page is drawn all count.
  await map().evaluate((canvas) => {
    for (let i = 0; i < 3; i++) canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true, cancelable: true }));
  });
  await until(async () => /layers\.3\.mlp/.test(await readout()), 'three rows further');
});

test('limits count and mark what is outside', async () => {
  await page.locator('.trend-limit').nth(1).fill('1000');
  await until(async () => (await page.locator('.trend-outside').count()) === 1, 'the count is shown');
  await shows(page.locator('.trend-outside'), /^1\d? outside/);
});

test('a second run is laid over, as a difference and as dashed lines', async () => {
  await page.locator('[data-test=trend-second]').selectOption({ label: 'golden/dump_data.trend.db' });
  await page.locator('[data-test=trend-difference]').click();
  await toCell(9, 4);
  await until(async () => /second run/.test(await readout()), 'both values are said');
  await page.keyboard.press('Enter');
  const chart = page.locator('.trend-chart svg');
  await chart.waitFor();
  await counts(chart.locator('path.dashed'), 1);
  await shows(page.locator('.trend-names code'), /layers\.8\.mlp\.Linear\.output\.0 · forward norm · rank 1/);
  await page.screenshot({ path: join(OUT, 'trend_difference.png') });
});

test('a name leads to its ranks and steps', async () => {
  await page.locator('[data-test=trend-second]').selectOption('');
  await until(async () => /^A click on a cell/.test(await readout()), 'the map of one run is there');
  await toCell(9, 0);
  await page.keyboard.press('Shift+Enter');
  await until(async () => (await page.locator('.trend-target').count()) === 1, 'the map of one name');
  await shows(page.locator('.trend-target'), /layers\.8/);
  await toCell(1, 5);
  await holds(async () => assert.match(await readout(), /^1 · Step 5/));
});

test('NaN and infinities are told from no value, as is their difference', async () => {
  const other = await page.context().newPage();
  await other.goto(`${server.answer.url}#trend=odd%2Fdump_data.trend.db&metric=forward&stat=norm&by=rank&value=1&q=output&with=even%2Fdump_data.trend.db`);
  const legend = (kind) => other.locator(`[data-test=legend-${kind}]`);
  await legend('nan').waitFor();
  await holds(async () => assert.equal(await legend('nan').innerText(), '3 NaN'));
  await holds(async () => assert.equal(await legend('infinite').innerText(), '6 infinite'));
  assert.equal(await legend('none').count(), 0);
  await other.locator('[data-test=trend-difference]').click();
  await until(async () => (await legend('nan').count()) === 1 && (await legend('nan').innerText()) === '3 NaN', 'a NaN run minus a good one is NaN');
  await holds(async () => assert.equal(await legend('infinite').innerText(), '6 infinite'));
  await other.screenshot({ path: join(OUT, 'trend_nan.png') });
  await other.close();
});

test('the name of which one rank is 1 % off stands first among the outliers', async () => {
  const other = await page.context().newPage();
  await other.goto(`${server.answer.url}#trend=odd%2Fdump_data.trend.db&metric=forward&stat=norm&by=step&value=0&q=output`);
  const canvas = other.locator('[data-test=trend-map]');
  await canvas.waitFor();
  await other.locator('[data-test=trend-sigma]').click();
  await other.locator('[data-test=trend-order-outlier]').click();
  await until(async () => other.url().includes('order=outliers'), 'the address keeps the order');
  const first = async (row) => {
    await canvas.focus();
    for (let i = 0; i < 20; i++) await other.keyboard.press('ArrowUp');
    for (let i = 0; i <= row; i++) await other.keyboard.press(i === 0 ? 'ArrowUp' : 'ArrowDown');
    return other.locator('[data-test=trend-readout]').innerText();
  };
  await until(async () => /layers\.5\./.test(await first(0)), 'an infinite rank beside finite ones comes before all');
  await holds(async () => assert.match(await first(1), /layers\.9\./));
  await shows(other.locator('[data-test=legend-sigma]'), /-3 σ[\s\S]*\+3 σ from the median of the ranks/);
  await other.screenshot({ path: join(OUT, 'trend_outliers.png') });
  await other.close();
});

test('a link to what a trend file lacks says so', async () => {
  const other = await page.context().newPage();
  await other.goto(`${server.answer.url}#trend=odd%2Fdump_data.trend.db&metric=forward&stat=norm&by=step&value=77`);
  const note = other.locator('[data-test=strayed]');
  await note.waitFor();
  await shows(note, /step 77[\s\S]*step 0/);
  await other.close();
});

test('the address names what is shown; Chinese and dark as well', async () => {
  await page.locator('[data-test=trend-rank]').first().click();
  await page.locator('[data-test=trend-stat]').selectOption('mean');
  await until(async () => page.url().includes('stat=mean'), 'the address follows');
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.locator('[data-test=trend-map]').waitFor();
  await holds(async () => assert.equal(await other.locator('[data-test=trend-stat]').inputValue(), 'mean'));
  await holds(async () => assert.equal(await other.locator('[data-test=trend-search]').inputValue(), 'output'));
  await other.locator('[data-test=theme]').click();
  await other.locator('[data-test=language]').click();
  await other.locator('text=第二次运行').waitFor();
  await other.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await other.screenshot({ path: join(OUT, 'trend_dark_zh.png') });
  await other.close();
});

test('back leads to the list of files', async () => {
  await page.locator('.brand').click();
  await page.locator('.file-link').first().waitFor();
  assert.deepEqual(faults, []);
});
