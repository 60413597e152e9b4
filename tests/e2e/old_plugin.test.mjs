// Our graph file in the earlier tool's page: TensorBoard with tb-graph-ascend reads it through its own routes.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, DEMO, openPage, OUT, ROOT, start } from './support.mjs';

const TENSORBOARD = process.env.MSPROBE_TENSORBOARD ?? join(ROOT, '.venv-tb/bin/tensorboard');
const NODE = process.env.MSPROBE_DEMO_NODE ?? 'Module.model.layers.2.mlp.down_proj.Linear.forward.0';
const missing = existsSync(TENSORBOARD) || process.env.CI === 'true' ? false : 'TensorBoard with the earlier plugin is not installed';
const RUN = basename(DEMO);

let base;
let server;
let chrome;

async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

before(async () => {
  if (missing) return;
  const port = String(await freePort());
  const ready = (text) => (/TensorBoard .* at http/.test(text) ? true : undefined);
  server = await start(TENSORBOARD, ['--logdir', DEMO, '--host', '127.0.0.1', '--port', port], ready, { seconds: 120 });
  base = `http://127.0.0.1:${port}`;
});
after(async () => {
  await chrome?.close();
  server?.stop();
});

const plugin = (route) => `${base}/data/plugin/graph_ascend/${route}`;
const tag = () => readdirSync(DEMO).find((file) => file.endsWith('.vis.db')).replace(/\.vis\.db$/, '');

async function ask(route, more = {}) {
  const metaData = { run: RUN, tag: tag(), type: 'db', lang: 'en', microStep: -1, step: 0, rank: 0 };
  const reply = await fetch(plugin(route), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ metaData, ...more }),
  });
  assert.equal(reply.status, 200, route);
  const { success, data, error } = await reply.json();
  assert.equal(success, true, `${route}: ${error}`);
  return data;
}

test('the plugin finds the file and opens it', { skip: missing }, async () => {
  const { data } = await (await fetch(plugin('load_meta_dir'))).json();
  assert.ok(data[RUN]?.tags.includes(tag()), JSON.stringify(data));
  const query = new URLSearchParams({ run: RUN, tag: tag(), type: 'db', lang: 'en' });
  assert.equal((await fetch(plugin(`loadGraphData?${query}`))).status, 200);
  const config = await ask('loadGraphConfigInfo');
  assert.equal(config.isSingleGraph, false);
  assert.equal(config.task, 'summary');
  assert.ok(config.ranks.includes(0) && config.steps.includes(0));
});

test('it returns our nodes, their partners and their differences', { skip: missing }, async () => {
  const nodes = await ask('loadGraphAllNodeList');
  assert.equal(nodes.npuMatchNodes[NODE], NODE);
  const tree = await ask('changeNodeExpandState', { nodeInfo: { nodeName: 'root', nodeType: 'NPU' } });
  assert.ok(tree.DefaultModel.expand);
  assert.ok(tree['Module.model.LlamaModel.forward.0'], Object.keys(tree).join(' '));
  const { npu, bench } = await ask('getNodeInfo', { nodeInfo: { nodeName: NODE, nodeType: 'NPU' } });
  const weight = `${NODE}.parameters.weight`;
  const ratio = Number(npu.input_data[weight].Norm) / Number(bench.input_data[weight].Norm);
  assert.ok(Math.abs(ratio - 1.25) < 1e-3, `the weight was scaled by 1.25, the plugin says ${ratio}`);
  assert.ok(npu.stack_info.length > 0);
});

test('its page draws the graph', { skip: missing }, async () => {
  chrome = await browser();
  const { page } = await openPage(chrome);
  await page.goto(`${base}/#graph_ascend`);
  const frame = page.frameLocator('iframe').first();
  const blocks = frame.locator('svg title').filter({ hasText: /^Module\.model\.LlamaModel\.forward\.0$/ }).locator('..');
  await blocks.first().waitFor({ timeout: 60_000 });
  await page.waitForTimeout(500); // its opening animation, for the picture
  await page.screenshot({ path: join(OUT, 'old_plugin.png') });
  assert.equal(await blocks.count(), 2, 'both sides are drawn');
});
