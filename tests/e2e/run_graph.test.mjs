// From a place of a monitored run into the graph of the dump of that step and rank, in a real browser.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { msprobe, writeRank } from './data.mjs';
import { writeRun } from './run_data.mjs';
import { browser, openPage, serve, until } from './support.mjs';

const DATA = mkdtempSync(join(tmpdir(), 'msprobe_run_graph_'));
const SERVED = join(DATA, 'served');
const STEP = 20;
let chrome;
let server;
let page;
let faults;

/** A dump of the run's model: a rank of a step. */
function writeDump(directory) {
  const value = { type: 'torch.Tensor', dtype: 'torch.float32', shape: [4], Max: 1, Min: -1, Mean: 0, Norm: 2, requires_grad: true };
  const root = 'Module.model.Net.forward.0';
  const construct = { [root]: null };
  const data = {};
  for (const path of [0, 1, 2, 3].flatMap((layer) => [`layers.${layer}.attn`, `layers.${layer}.fc`])) {
    construct[`Module.${path}.Linear.forward.0`] = root;
    data[`Module.${path}.Linear.forward.0`] = { input_args: [value], input_kwargs: {}, output: [value] };
  }
  data[root] = { input_args: [value], input_kwargs: {}, output: [value] };
  writeRank(directory, { data, construct });
}

before(async () => {
  mkdirSync(SERVED);
  writeRun(join(SERVED, 'trained'), { ranks: 2, steps: 40 });
  writeDump(join(DATA, `dump/step${STEP}/rank1`));
  msprobe('graph_visualize', '-tp', join(DATA, 'dump'), '-o', SERVED);
  server = await serve(SERVED);
  chrome = await browser();
  ({ page, faults } = await openPage(chrome));
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(DATA, { recursive: true, force: true });
});

const button = () => page.locator('[data-test=run-graph]');
const readout = () => page.locator('[data-test=run-readout]').innerText();

/** Opens the map of a rank with a row for each series, and goes to layers.1.fc at a step. */
async function goTo(rank, step) {
  await page.goto('about:blank');
  await page.goto(`${server.answer.url}#run=trained&rank=${rank}`);
  await page.waitForFunction(() => document.body.dataset.runPainted);
  await page.locator('[data-test=run-fold-none]').click();
  await until(async () => (await page.locator('.runs').innerText()).includes('10 rows'), 'a row for each series');
  const map = page.locator('[data-test=run-map]');
  await map.focus();
  for (let i = 0; i < 60 && !/layers\.1\.fc/.test(await readout()); i++) await page.keyboard.press('ArrowDown');
  for (let i = 0; i < 60 && !new RegExp(`\\b${step}\\b`).test(await readout()); i++) await page.keyboard.press('ArrowRight');
  assert.match(await readout(), new RegExp(`layers\\.1\\.fc.*\\b${step}\\b`));
}

test('a step that has a dump leads to the module in its graph', async () => {
  await goTo(1, STEP);
  await button().waitFor();
  assert.match(await button().innerText(), new RegExp(`${STEP}`));
  await button().click();
  await until(async () => (await page.locator('#search-hits li').count()) > 0, 'the module is found in the graph');
  assert.equal(await page.locator('#search').inputValue(), 'layers.1.fc');
  const hits = await page.locator('#search-hits li').allInnerTexts();
  assert.equal(hits.length, 1);
  assert.match(hits[0], /layers\.1\.fc/);
  assert.match(page.url(), new RegExp(`file=[^&]+.*rank=1`));
});

test('another step and another rank have none', async () => {
  await goTo(1, STEP);
  await button().waitFor();
  await page.keyboard.press('ArrowLeft');
  await until(async () => (await button().count()) === 0, 'no button one step before');
  await page.keyboard.press('ArrowRight');
  await button().waitFor();
  await goTo(0, STEP);
  await page.waitForLoadState('networkidle');
  assert.equal(await button().count(), 0);
  assert.deepEqual(faults, []);
});
