// Our graph files, of both layouts, in the earlier tool's page: TensorBoard with tb-graph-ascend (8.3.2), or with the
// plugin of mindstudio-probe 26.2, reads them through its own routes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, counts, DEMO, findCommand, freePort, openPage, OUT, ROOT, serve, start } from './support.mjs';

const TENSORBOARD = process.env.MSPROBE_TENSORBOARD ?? join(ROOT, '.venv-tb/bin/tensorboard');
const TENSORBOARD_26 = join(ROOT, '.venv-old/bin/tensorboard'); // with the plugin of mindstudio-probe 26.2
const NODE = process.env.MSPROBE_DEMO_NODE ?? 'Module.model.layers.2.mlp.down_proj.Linear.forward.0';
const missing = existsSync(TENSORBOARD) || process.env.CI === 'true' ? false : 'TensorBoard with the earlier plugin is not installed';
const missing26 = existsSync(TENSORBOARD_26) || process.env.CI === 'true' ? false : 'mindstudio-probe 26.2 is not installed';
const LAYOUTS = ['compact', 'plain'];
const LOGS = mkdtempSync(join(tmpdir(), 'msprobe_logs_'));

let base;
let server;
let chrome;

before(async () => {
  if (missing) return;
  cpSync(DEMO, join(LOGS, 'compact'), { recursive: true });
  const dumps = dirname(DEMO);
  const paths = ['-tp', join(dumps, 'problem'), '-gp', join(dumps, 'golden'), '-o', join(LOGS, 'plain')];
  execFileSync(findCommand(), ['graph_visualize', ...paths, '--plain'], { stdio: 'ignore' });
  const port = String(await freePort());
  const ready = (text) => (/TensorBoard .* at http/.test(text) ? true : undefined);
  server = await start(TENSORBOARD, ['--logdir', LOGS, '--host', '127.0.0.1', '--port', port], ready, { seconds: 120 });
  base = `http://127.0.0.1:${port}`;
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(LOGS, { recursive: true, force: true });
});

const plugin = (route) => `${base}/data/plugin/graph_ascend/${route}`;
const tag = (run) => readdirSync(join(LOGS, run)).find((file) => file.endsWith('.vis.db')).replace(/\.vis\.db$/, '');

async function ask(run, route, more = {}) {
  const metaData = { run, tag: tag(run), type: 'db', lang: 'en', microStep: -1, step: 0, rank: 0 };
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

for (const run of LAYOUTS) test(`the plugin finds the ${run} file and opens it`, { skip: missing }, async () => {
  const { data } = await (await fetch(plugin('load_meta_dir'))).json();
  assert.ok(data[run]?.tags.includes(tag(run)), JSON.stringify(data));
  const query = new URLSearchParams({ run, tag: tag(run), type: 'db', lang: 'en' });
  assert.equal((await fetch(plugin(`loadGraphData?${query}`))).status, 200);
  const config = await ask(run, 'loadGraphConfigInfo');
  assert.equal(config.isSingleGraph, false);
  assert.equal(config.task, 'summary');
  assert.ok(config.ranks.includes(0) && config.steps.includes(0));
});

for (const run of LAYOUTS) test(`it returns our nodes, their partners and their differences from the ${run} file`, { skip: missing }, async () => {
  const nodes = await ask(run, 'loadGraphAllNodeList');
  assert.equal(nodes.npuMatchNodes[NODE], NODE);
  const tree = await ask(run, 'changeNodeExpandState', { nodeInfo: { nodeName: 'root', nodeType: 'NPU' } });
  assert.ok(tree.DefaultModel.expand);
  assert.ok(tree['Module.model.LlamaModel.forward.0'], Object.keys(tree).join(' '));
  const { npu, bench } = await ask(run, 'getNodeInfo', { nodeInfo: { nodeName: NODE, nodeType: 'NPU' } });
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
  await counts(blocks, 2, 'both sides are drawn');
});

test('the page of 26.2 draws the graph and shows the differences of a node', { skip: missing || missing26 }, async () => {
  const port = String(await freePort());
  const board = await start(TENSORBOARD_26, ['--logdir', LOGS, '--host', '127.0.0.1', '--port', port], (text) => (/TensorBoard .* at http/.test(text) ? true : undefined), { seconds: 120 });
  try {
    chrome ??= await browser();
    const { page } = await openPage(chrome);
    await page.goto(`http://127.0.0.1:${port}/#graph_ascend`);
    const frame = page.frameLocator('iframe').first();
    const [target, golden] = ['N', 'B'].map((side) => frame.locator(`rect.outer-rect[name="${side}___Module.model.LlamaModel.forward.0"]`));
    await target.waitFor({ timeout: 60_000 });
    await golden.waitFor();
    await target.dispatchEvent('click'); // its opening animation would make a real click wait
    await frame.getByText('MaxRelativeErr').first().waitFor();
    await frame.getByText('output.0.last_hidden_state').first().waitFor();
    await page.screenshot({ path: join(OUT, 'old_plugin_26.png') });
    await page.context().close();
  } finally {
    board.stop();
  }
});

test('a configuration of matches made in one page is applied in the other', { skip: missing }, async () => {
  const mine = mkdtempSync(join(tmpdir(), 'msprobe_mine_'));
  cpSync(join(LOGS, 'compact'), mine, { recursive: true });
  const ours = await serve(mine);
  const { port, token } = ours.answer;
  const file = `${tag('compact')}.vis.db`;
  const api = async (what, body, more = {}) => {
    const query = new URLSearchParams({ file, step: 0, rank: 0, ...more });
    const headers = { 'X-Msprobe-Token': token, 'Content-Type': 'application/json' };
    const reply = await fetch(`http://127.0.0.1:${port}/api/${what}?${query}`, body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers });
    const answer = await reply.json();
    assert.equal(reply.status, 200, JSON.stringify(answer));
    return answer;
  };
  try {
    const { hits } = await api('search', null, { q: 'Functional.linear', leaf: 1, limit: 2 });
    const [a, b] = hits.map((hit) => hit.name);
    for (const npu of [a, b]) await api('match/remove', { npu });
    await api('match/add', { npu: a, bench: b });
    const { config } = await api('match/save', {});
    copyFileSync(join(mine, config), join(LOGS, 'plain', config));
    await fetch(plugin(`loadGraphData?${new URLSearchParams({ run: 'plain', tag: tag('plain'), type: 'db', lang: 'en' })}`));
    assert.ok((await ask('plain', 'loadGraphConfigInfo')).matchedConfigFiles.includes(config));
    const applied = await ask('plain', 'addMatchNodesByConfig', { configFile: config });
    assert.ok(applied.matchResult.length > 0 && applied.matchResult.every(Boolean), JSON.stringify({ ...applied, npuMatchNodes: 0, benchMatchNodes: 0 }));
    const { npu } = await ask('plain', 'getNodeInfo', { nodeInfo: { nodeName: a, nodeType: 'NPU' } });
    assert.equal(npu.matched_node_link.at(-1), b);

    const theirs = await ask('plain', 'saveMatchedRelations');
    copyFileSync(join(LOGS, 'plain', theirs), join(mine, 'theirs.vis.config'));
    await api('match/remove', { npu: a });
    assert.equal((await api('node', null, { name: a })).node.matched, null);
    const { changed } = await api('match/apply', { config: 'theirs.vis.config' });
    assert.ok(changed > 0);
    assert.equal((await api('node', null, { name: a })).node.matched, b);
  } finally {
    ours.stop();
    rmSync(mine, { recursive: true, force: true });
  }
});
