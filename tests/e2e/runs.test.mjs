// A monitored run in a real browser: two ranks of a small model, of which the second becomes NaN in a layer; it grows while one looks.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { violations } from './accessible.mjs';
import { appendSteps, cutCsvRun, writeCsvRun, writeRun } from './run_data.mjs';
import { browser, holds, openPage, OUT, serve, shows, until } from './support.mjs';

const DATA = mkdtempSync(join(tmpdir(), 'msprobe_runs_'));
let chrome;
let server;
let page;
let faults;

before(async () => {
  writeRun(join(DATA, 'broken'), { ranks: 2, steps: 300, nan: true });
  writeRun(join(DATA, 'good'), { ranks: 2, steps: 300 });
  writeCsvRun(join(DATA, 'earlier'));
  cutCsvRun(join(DATA, 'cut'));
  mkdirSync(join(DATA, 'broken/anomaly_detected/rank1'), { recursive: true });
  const anomaly = { rank: 1, step: 240, micro_step: 0, pp_stage: 0, vpp_stage: 0, call_id: 7, tag_name: '0:layers.2.fc.weight/1/post_grad', message: 'Rule AnomalyTurbulence reports', group_mates: [] };
  writeFileSync(join(DATA, 'broken/anomaly_detected/rank1/anomaly.json'), JSON.stringify({ a: anomaly }));
  server = await serve(DATA);
  chrome = await browser();
  ({ page, faults } = await openPage(chrome));
  await page.goto(server.answer.url);
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(DATA, { recursive: true, force: true });
});

const map = () => page.locator('[data-test=run-map]');
const readout = () => page.locator('[data-test=run-readout]').innerText();
const painted = () => page.waitForFunction(() => document.body.dataset.runPainted);
const colors = () =>
  map().evaluate((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });

test('a run opens from the list as a map of layers over steps', async () => {
  await page.locator('.file-link', { hasText: 'broken' }).click();
  await map().waitFor();
  await painted();
  await holds(async () => assert.ok((await colors()) > 20, 'the map has colours'));
  await map().focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight']) await page.keyboard.press(key);
  await holds(async () => assert.match(await readout(), /layers\.1 · 2 series · .* · /));
  await page.screenshot({ path: join(OUT, 'run_map.png') });
});

test('another rank shows NaN, and what was found there', async () => {
  await page.locator('[data-test=run-rank]').fill('1');
  await until(async () => /NaN or infinite in [1-9]/.test(await page.locator('.runs').innerText()), 'NaN is counted');
  await page.locator('[data-test=run-events] .text-button').first().click();
  await shows(page.locator('[data-test=run-events]'), /Step 240.*rank 1.*layers\.2\.fc\.weight.*AnomalyTurbulence/s);
  await until(async () => /from=\d+&to=\d+/.test(page.url()), 'the address has the steps');
  await page.locator('[data-test=run-whole]').click();
});

test('a click draws the line of a row, all series stand by themselves', async () => {
  await page.locator('[data-test=run-fold-none]').click();
  await until(async () => (await page.locator('.runs').innerText()).includes('10 rows'), 'a row for each series');
  const box = await map().boundingBox();
  await page.mouse.click(box.x + box.width * 0.6, box.y + 75);
  await page.locator('.trend-names code').waitFor();
  await until(async () => (await page.locator('.trend-chart path').count()) >= 2, 'a band and a line');
  await shows(page.locator('.trend-names'), /layers\.0\.attn\.weight/);
});

test('keys zoom and pan, the address keeps it', async () => {
  await map().focus();
  for (let i = 0; i < 6; i++) await page.keyboard.press('w');
  await until(async () => /from=\d+&to=\d+/.test(page.url()), 'the address has the steps');
  const before = page.url();
  await page.keyboard.press('a');
  await until(async () => page.url() !== before, 'it moved');
  await page.keyboard.press('Home');
  await until(async () => !/from=/.test(page.url()), 'the whole run');
});

test('two runs are laid over', async () => {
  await page.locator('[data-test=run-second]').selectOption('good');
  await page.locator('[data-test=run-difference]').click();
  await until(async () => (await page.locator('[data-test=run-legend]').innerText()).includes('+100 %'), 'a scale of differences');
  await until(async () => (await colors()) > 5, 'the difference is drawn');
  await page.locator('[data-test=run-second]').selectOption('');
});

test('the page follows a run that grows', async () => {
  appendSteps(join(DATA, 'broken'), 1, 300, 20);
  await until(async () => (await page.locator('[data-test=run-state]').getAttribute('data-step')) === '319', 'the new steps');
});

test('csv files of the earlier tool are read', async () => {
  await page.goto(`${server.answer.url.split('#')[0]}#run=earlier`);
  await until(async () => (await page.locator('[data-test=run-state]').getAttribute('data-step').catch(() => '')) === '9', 'its steps');
  assert.equal(await page.locator('[data-test=run-cut]').count(), 0);
});

test('a row of a csv file that was cut is named', async () => {
  await page.goto(`${server.answer.url.split('#')[0]}#run=cut`);
  const said = page.locator('[data-test=run-cut]');
  await said.waitFor();
  assert.match(await said.textContent(), /rows left out because they were cut: 1, in grad_reduced_5-9\.csv/);
});

test('both themes and languages are accessible', async () => {
  for (const [theme, locale] of [['light', 'en-US'], ['dark', 'zh-CN']]) {
    const other = await openPage(chrome, { colorScheme: theme, locale });
    await other.page.goto(`${server.answer.url}#run=broken&rank=1`);
    await other.page.waitForFunction(() => document.body.dataset.runPainted);
    const box = await other.page.locator('[data-test=run-map]').boundingBox();
    await other.page.mouse.click(box.x + box.width * 0.6, box.y + 100);
    await other.page.locator('.trend-names code').first().waitFor();
    assert.deepEqual(await violations(other.page), []);
    await other.page.screenshot({ path: join(OUT, `run_${theme}_${locale}.png`) });
    assert.deepEqual(other.faults, []);
    await other.page.context().close();
  }
  assert.deepEqual(faults, []);
});
