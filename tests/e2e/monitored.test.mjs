// A training under `msprobe monitor` in a real browser: its loss, what the server finds in it, and how it is doing by its heartbeats.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { violations } from './accessible.mjs';
import { msprobe } from './data.mjs';
import { englishSentences } from './language.mjs';
import { browser, counts, findCommand, holds, openPage, OUT, ROOT, serve, until } from './support.mjs';

const DATA = mkdtempSync(join(tmpdir(), 'msprobe-monitored-'));
const PYTHON = join(ROOT, '.venv/bin/python');
const FAULT = 140;
const TRAIN = `
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(4))
        self.head = torch.nn.Linear(16, 1)
    def forward(self, x, y):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return {"loss": ((self.head(x).squeeze(-1) - y) ** 2).mean()}
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
for step in range(200):
    x = torch.randn(32, 16)
    loss = net(x, x.sum(-1))["loss"]
    optimizer.zero_grad()
    loss.backward()
    if step >= ${FAULT}:
        net.layers[2].weight.grad *= 40
    optimizer.step()
`;
let chrome;
let server;
let sleeper;

const place = (run) => join(DATA, run, readdirSync(join(DATA, run))[0]);
const heartbeat = (run, change) => {
  const path = join(place(run), 'heartbeat.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...change }));
};

before(async () => {
  writeFileSync(join(DATA, 'train.py'), TRAIN);
  const done = spawnSync(findCommand(), ['monitor', '--output', join(DATA, 'run'), '--', PYTHON, join(DATA, 'train.py')], { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  for (const copy of ['running', 'killed', 'hung', 'failed']) cpSync(join(DATA, 'run'), join(DATA, copy), { recursive: true });
  sleeper = spawn('sleep', ['600']);
  const now = Date.now() / 1000;
  const alive = { host: hostname(), pid: sleeper.pid, state: 'running', beat: now };
  heartbeat('running', alive);
  heartbeat('killed', { ...alive, pid: 2 ** 22 + 1 });
  heartbeat('hung', { ...alive, beat: now - 3600 });
  heartbeat('failed', { state: 'failed' });
  server = await serve(DATA);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  await server?.stop();
  sleeper?.kill();
  rmSync(DATA, { recursive: true, force: true });
});

async function visit(run, options = {}) {
  const opened = await openPage(chrome, { viewport: { width: 1280, height: 720 }, ...options });
  await opened.page.goto(`${server.answer.url}#run=${run}`);
  await opened.page.waitForFunction(() => document.body.dataset.runPainted);
  return opened;
}
const events = (page) => page.locator('[data-test=run-events]');

test('a rank writes one file of values, and no csv', () => {
  assert.deepEqual(readdirSync(place('run')).sort(), ['heartbeat.json', 'laws.json', 'monitor.series']);
});

test('the loss that the model returns stands above the map', async () => {
  const { page, faults } = await visit('run');
  const loss = page.locator('[data-test=run-loss]');
  await loss.waitFor();
  await counts(loss.locator('path.run-band'), 1);
  const [above, map] = [await loss.boundingBox(), await page.locator('[data-test=run-map]').boundingBox()];
  assert.ok(above.y + above.height <= map.y + 1);
  await page.context().close();
  assert.deepEqual(faults, []);
});

test('the server judges the run by itself, and draws what began it', async () => {
  const { page, faults } = await visit('run');
  await holds(async () => assert.match(await events(page).innerText(), new RegExp(`Step ${FAULT}[\\s\\S]*gradient norm of layers\\.2`)));
  await holds(async () => assert.deepEqual(await page.locator('.trend-names code').allInnerTexts(), ['layers.2']));
  await until(async () => /from=\d+&to=\d+/.test(page.url()), 'it opens at the step of the finding that leads');
  const [, from, to] = /from=(\d+)&to=(\d+)/.exec(page.url()).map(Number);
  assert.ok(from < FAULT && FAULT < to && to - from < 100);
  assert.match(page.url(), /metric=grad_reduced&stat=norm/);
  await page.screenshot({ path: join(OUT, 'monitored_finding.png') });
  await page.context().close();
  assert.deepEqual(faults, []);
});

test('what a link names stays, until a finding is clicked', async () => {
  const { page } = await visit('run&metric=param_origin');
  await holds(async () => assert.match(await events(page).innerText(), new RegExp(`Step ${FAULT}`)));
  await page.waitForTimeout(1000);
  assert.ok(!/from=/.test(page.url()), 'nothing moves by itself');
  await events(page).locator('.text-button').first().click();
  await until(async () => /metric=grad_reduced&stat=norm.*from=\d+&to=\d+/.test(page.url()), 'it zooms');
  await page.context().close();
});

test('lines that were cleared stay cleared', async () => {
  const { page } = await visit('run');
  await page.locator('.trend-names code').waitFor();
  await page.locator('.run-dash .text-button').click();
  await counts(page.locator('.trend-names code'), 0);
  await page.waitForTimeout(2500); // findings are asked for again
  assert.equal(await page.locator('.trend-names code').count(), 0);
  await page.context().close();
});

const STATES = { run: ['ended', /^Ended at step 199$/, /^已结束于 step 199$/], running: ['running', /^Running, step 199$/, /^运行中，step 199$/], killed: ['killed', /^Killed: the process of rank 0 is gone/, /^已被终止/], hung: ['hung', /^Hung: no heartbeat from rank 0/, /^挂起/], failed: ['failed', /^The monitor failed on rank 0/, /监控出错/] };
for (const [run, [health, en, zh]] of Object.entries(STATES)) {
  test(`how a run is doing, by its heartbeat: ${health}`, async () => {
    for (const [locale, wanted] of [['en-US', en], ['zh-CN', zh]]) {
      const { page } = await visit(run, { locale });
      const state = page.locator('[data-test=run-state]');
      await holds(async () => assert.equal(await state.getAttribute('data-health'), health));
      assert.match((await state.innerText()).trim(), wanted);
      await page.context().close();
    }
  });
}

test('both themes, languages and a narrow screen', async () => {
  for (const [name, options] of [['light', {}], ['dark_zh', { colorScheme: 'dark', locale: 'zh-CN' }], ['1920', { viewport: { width: 1920, height: 1080 } }], ['narrow', { viewport: { width: 390, height: 844 } }]]) {
    const { page, faults } = await visit('run', options);
    await page.locator('.trend-names code').waitFor();
    assert.deepEqual(await violations(page), []);
    if (name.endsWith('zh')) assert.deepEqual(await page.evaluate(englishSentences), []);
    await page.screenshot({ path: join(OUT, `monitored_${name}.png`) });
    await page.context().close();
    assert.deepEqual(faults, []);
  }
});

test('an exported run has the loss, the findings and the lines of the culprit', async () => {
  const file = join(DATA, 'run.html');
  msprobe('export', join(DATA, 'run'), '-o', file);
  const { page, faults } = await openPage(chrome, { locale: 'zh-CN' });
  await page.goto(pathToFileURL(file).href);
  await page.locator('[data-test=run-loss]').waitFor();
  await holds(async () => assert.match(await events(page).innerText(), /layers\.2 的梯度范数/));
  await holds(async () => assert.deepEqual(await page.locator('.trend-names code').allInnerTexts(), ['layers.2']));
  await page.context().close();
  assert.deepEqual(faults, []);
});
