// Ranks of MindSpore against those of PyTorch on the page: partners, the other end of a communication, overflows.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { msprobe } from './data.mjs';
import { browser, holds, listed, openPage, OUT, ROOT, serve, until } from './support.mjs';

const RANKS = join(ROOT, 'tests/golden/graph/ranks');
const FILE = 'frameworks.vis.db';
const NODE = 'MintDistributed.all_reduce.0.forward';

/** The ranks of a run of PyTorch as MindSpore writes them: the group of ranks has a name only, first outputs are infinite. */
function writeMindSpore(source, out) {
  for (const name of readdirSync(source, { recursive: true }).filter((path) => path.endsWith('.json'))) {
    const text = readFileSync(join(source, name), 'utf8')
      .replaceAll('Distributed.', 'MintDistributed.').replaceAll('torch.Tensor', 'mindspore.Tensor').replaceAll('torch.float32', 'Float32')
      .replace(/"framework":\s*"pytorch"/, '"framework": "mindspore"')
      .replace(/\{[^{}]*"torch.ProcessGroup"[^{}]*\}/g, '{"type": "str", "value": "tp-0-1"}')
      .replace(/("output":\s*\[\s*\{[^}]*"Max":\s*)[-\d.e]+/, '$1Infinity');
    mkdirSync(dirname(join(out, name)), { recursive: true });
    writeFileSync(join(out, name), text);
  }
}

test('ranks of MindSpore against PyTorch', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'msprobe-frameworks-'));
  writeMindSpore(join(RANKS, 'target'), join(directory, 'runs/mindspore'));
  const made = join(directory, 'made');
  msprobe('graph_visualize', '-tp', join(directory, 'runs/mindspore'), '-gp', join(RANKS, 'golden'), '-o', made, '-oc');
  renameSync(join(made, readdirSync(made)[0]), join(directory, FILE));
  const server = await serve(directory);
  const chrome = await browser();
  try {
    const { page, faults } = await openPage(chrome);
    const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
    await page.goto(`${server.answer.url}#file=${FILE}`);
    await until(async () => (await state()).graph === 'ready' && (await state()).findings === 'ready', 'the graph is ready');
    await until(async () => (await page.locator('[data-test^=cell-]').count()) === 2, 'a cell for each rank');
    await page.keyboard.press('/');
    await page.keyboard.type('all_reduce.0');
    await listed(page);
    await page.locator('#search-hits li', { hasText: NODE }).first().click();
    await until(async () => (await state()).details === 'ready' && (await state()).links === 'ready', 'a node is selected');
    await holds(async () => assert.equal((await state()).selection.name, NODE));
    const answer = await page.evaluate(async ([path, token]) => (await fetch(path, { headers: { 'X-Msprobe-Token': token } })).json(), [`api/node?file=${FILE}&step=0&rank=0&side=NPU&name=${NODE}`, server.answer.token]);
    assert.equal(answer.node.matched, 'Distributed.all_reduce.0.forward');
    assert.equal(answer.communication.nodes_info[1][1], NODE, 'the call of the other rank, found by the name of the group');
    await page.locator('[data-test=colors-overflow]').click();
    await page.locator('.count.critical:enabled, .count.high:enabled, .count.medium:enabled').first().click();
    await page.locator('#search-hits li').first().waitFor();
    await page.screenshot({ path: join(OUT, 'frameworks_overflow.png') });
    assert.deepEqual(faults, []);
  } finally {
    await chrome.close();
    server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});
