// Graphs as release 8.1.1 writes them, JSON texts ".vis": ours, and its own where the larger golden set is.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BROKEN, msprobe, writeDecoder } from './data.mjs';
import { browser, holds, openPage, OUT, ROOT, serve, shows, until } from './support.mjs';

const GOLDEN = [process.env.MSPROBE_GOLDEN ?? '', join(ROOT, '../shared/golden'), join(ROOT, '../../shared/golden')].map((place) => join(place, 'mindspore.tar.xz')).find(existsSync);
const CASE = 'public/expected/ms8_graph_m2_cmp/out/compare_20250101000000.vis';

let directory;
let chrome;
let server;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  const dumps = join(directory, 'dumps');
  const served = join(directory, 'served');
  mkdirSync(join(served, 'ours'), { recursive: true });
  writeDecoder(dumps);
  const input = join(directory, 'compare.json');
  writeFileSync(input, JSON.stringify({ npu_path: join(dumps, 'target/step0'), bench_path: join(dumps, 'golden/step0'), is_print_compare_log: false }));
  msprobe('-f', 'pytorch', 'graph', '-i', input, '-o', join(served, 'ours'), '-oc');
  if (GOLDEN) execFileSync('tar', ['-xJf', GOLDEN, '-C', served, '--transform', 's,.*/,theirs_,', CASE]);
  server = await serve(served);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** The page at a file, with its graph in memory. */
async function visit(file) {
  const { page, faults } = await openPage(chrome);
  await page.goto(`${server.answer.url}#file=${encodeURIComponent(file)}`);
  const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
  await until(async () => (await state()).graph === 'ready', 'the graph is ready', state);
  const leave = async (name) => {
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    await page.context().close();
    assert.deepEqual(faults, []);
  };
  return { page, state, leave };
}

/** The node by the search, and its details. */
async function select({ page, state }, name) {
  await page.locator('body').press('/');
  await page.locator('#search').fill(name);
  const hit = page.locator('#search-hits li', { hasText: name.split('.').slice(-4).join('.') }).first();
  await hit.click();
  await until(async () => (await state()).selection?.name === name && (await state()).details === 'ready', `${name} is selected`, state);
}

test('a .vis file opens with its colours, its ranks and the details of its nodes', async () => {
  const files = readdirSync(join(directory, 'served/ours')).sort();
  assert.equal(files.length, 2, files.join());
  assert.match(files[1], /^compare_rank1_\d+\.vis$/);
  const view = await visit(`ours/${files[0]}`);
  const { page, state, leave } = view;
  await holds(async () => assert.equal((await state()).rank, 0));
  await shows(page.locator('.summary-bar'), /[\d,]+ nodes[\s\S]*Error/);
  await select(view, BROKEN);
  await shows(page.locator('.details'), /output\.0[\s\S]*300%/);
  await page.locator('.details').getByText('Stack', { exact: true }).click();
  await shows(page.locator('.details'), /model\.py/);
  await leave('earlier_ours');
});

test('the second rank is told by the name of its file', async () => {
  const file = readdirSync(join(directory, 'served/ours')).find((name) => name.includes('rank1'));
  const view = await visit(`ours/${file}`);
  await holds(async () => assert.equal((await view.state()).rank, 1));
  await shows(view.page.locator('.summary-bar'), /overflow|critical/i);
  await view.leave('earlier_rank1');
});

test('a graph that 8.1.1 wrote', { skip: GOLDEN || process.env.CI === 'true' ? false : 'the larger golden set is absent' }, async () => {
  const view = await visit(`theirs_${CASE.split('/').at(-1)}`);
  const { page, leave } = view;
  await shows(page.locator('.summary-bar'), /55 nodes/);
  await select(view, 'Cell.conv1.Conv2d.forward.0');
  await shows(page.locator('.details'), /Float32[\s\S]*MaxRelativeErr|MaxRelativeErr[\s\S]*Float32/);
  await leave('earlier_theirs');
});
