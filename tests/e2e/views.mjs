// The main views of the page, one after the other, on data that is the same everywhere.
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BROKEN, msprobe, RENAMED, TENSOR_NODE, writeDecoder, writeTensors, writeTrends } from './data.mjs';
import { listed, until as waitUntil } from './support.mjs';

/** Graphs, trends, a report and an exported page below `directory`. */
export function writeViews(directory) {
  const served = join(directory, 'served');
  mkdirSync(served);
  const graph = (name, ...args) => {
    const out = join(directory, name);
    msprobe('graph_visualize', ...args, '-o', out);
    renameSync(join(out, readdirSync(out).find((file) => file.endsWith('.vis.db'))), join(served, `${name}.vis.db`));
  };
  writeDecoder(join(served, 'dumps'));
  graph('compare', '-tp', join(served, 'dumps/target'), '-gp', join(served, 'dumps/golden'), '-oc');
  writeTensors(join(served, 'tensors'));
  graph('tensor', '-tp', join(served, 'tensors/target'), '-gp', join(served, 'tensors/golden'));
  writeTrends(join(directory, 'trends'), served);
  writeFileSync(join(served, 'text.vis.db'), 'this is not a database');
  msprobe('export', join(served, 'compare.vis.db'), '-o', join(directory, 'exported.html'));
  msprobe('compare', '-tp', join(served, 'dumps/target/step0'), '-gp', join(served, 'dumps/golden/step0'), '-o', join(directory, 'report'), '--html');
  return { served, exported: join(directory, 'exported.html'), report: join(directory, 'report', readdirSync(join(directory, 'report')).find((file) => file.endsWith('.html'))) };
}

/** Goes from view to view; `at(name, page)` is told each when it stands. */
export async function walkViews(page, url, files, at) {
  let visits = 0;
  const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
  const until = (check, what) => waitUntil(check, what, state);
  const go = (params) => page.goto(`${url}&visit=${visits++}#${new URLSearchParams(params)}`);
  const openGraph = async (params) => {
    await go(params);
    await until(async () => (await state()).graph === 'ready' && (await state()).findings === 'ready', 'the graph is ready');
    if (params.node) await until(async () => (await state()).details === 'ready' && (await state()).links === 'ready', 'the node is selected');
  };
  const test = (name) => page.locator(`[data-test="${name}"]`);

  await go({});
  await page.locator('.file-table').first().waitFor();
  await page.locator('.skipped summary').click();
  await at('files', page);

  await test('convert-open').click();
  await page.locator('#field-golden').fill('dumps/golden');
  await page.locator('#field-mapping').selectOption('template');
  await test('check-merge').check();
  await test('convert-start').click();
  await page.locator('.field-fault').first().waitFor();
  await at('convert', page);
  await test('browse-target').click();
  await test('dir-dumps').click();
  await test('choose-target').waitFor();
  await at('picker', page);
  await page.keyboard.press('Escape');

  await openGraph({ file: 'compare.vis.db' });
  await test('verdict-card').waitFor();
  await test('finding-unmatched').waitFor();
  await at('overview', page);
  await test('count-inherited').click();
  await until(async () => (await state()).search === 'ready' && (await page.locator('#search-hits li').count()) > 0, 'nodes are listed');
  await at('filter', page);

  await openGraph({ file: 'compare.vis.db', side: 'NPU', node: BROKEN });
  await page.locator('.items tbody').first().waitFor();
  await at('details', page);
  await test('tab-flow').click();
  await test('flow').waitFor();
  await at('flow', page);
  await test('tab-stack').click();
  await page.locator('.stack li').first().waitFor();
  await at('stack', page);
  await page.locator('canvas[data-side=NPU]').focus();
  await page.keyboard.press('Shift+F10');
  const { x, y, height } = await page.evaluate((name) => window.__msprobe.rect('NPU', name), BROKEN);
  if (!(await page.locator('.node-menu').isVisible())) await page.mouse.click(x + 60, y + height / 2, { button: 'right' });
  await page.locator('.node-menu').waitFor();
  await at('menu', page);
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.locator('dialog.help').waitFor();
  await at('help', page);
  await page.keyboard.press('Escape');

  await openGraph({ file: 'compare.vis.db', side: 'NPU', node: RENAMED });
  await page.keyboard.press('c');
  await until(async () => (await page.evaluate(() => window.__msprobe.matching())).state.at === 'ready', 'matches are known');
  await test('match-Bench').click();
  await page.locator('#search').fill('up_proj_new');
  await listed(page);
  await page.locator('#search-hits li', { hasText: 'forward' }).click();
  await until(async () => (await state()).selection?.side === 'Bench' && (await state()).details === 'ready', 'the other side is picked');
  await at('matching', page);

  await openGraph({ file: 'compare.vis.db', rank: '1' });
  await test('colors-overflow').click();
  await test('count-critical').waitFor();
  await at('overflow', page);

  await go({ file: 'text.vis.db' });
  await page.getByRole('alert').waitFor();
  await at('error', page);

  await openGraph({ file: 'tensor.vis.db', side: 'NPU', node: TENSOR_NODE });
  await test('tab-tensor').click();
  await test('tensor-item').selectOption({ label: 'output.0' });
  await test('worst').waitFor();
  await at('tensor', page);

  await go({ trend: 'broken/dump_data.trend.db' });
  await test('trend-map').waitFor();
  await test('trend-second').selectOption({ label: 'golden/dump_data.trend.db' });
  await test('trend-value').selectOption('1');
  await test('trend-search').fill('output');
  await until(async () => /\b13\b/.test(await page.locator('.trend-bar').nth(1).innerText()), 'outputs only');
  await test('trend-map').focus();
  for (const key of ['ArrowDown', ...Array(9).fill('ArrowDown'), ...Array(4).fill('ArrowRight'), 'Enter']) await page.keyboard.press(key);
  await page.locator('.trend-chart svg').waitFor();
  await at('trends', page);

  await page.goto(pathToFileURL(files.exported).href);
  await until(async () => (await state()).graph === 'ready', 'the exported graph is ready');
  await test('first-finding').click();
  await until(async () => (await state()).details === 'ready', 'its first finding is selected');
  await at('exported', page);

  await page.goto(pathToFileURL(files.report).href);
  await page.locator('#story').waitFor();
  await at('report', page);
}
