// Where people work: an address that a bookmark keeps, the tunnel over ssh, and results in a notebook.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { msprobe } from './data.mjs';
import { writeRun } from './run_data.mjs';
import { browser, findCommand, freePort, openPage, OUT, ROOT, start } from './support.mjs';

const WORK = mkdtempSync(join(tmpdir(), 'msprobe-places-'));
const RANKS = join(ROOT, 'tests/golden/graph/ranks');
let chrome;

before(async () => {
  writeRun(join(WORK, 'run'), { ranks: 1, steps: 80, nan: false });
  mkdirSync(join(WORK, 'graph'));
  msprobe('graph_visualize', '-tp', join(RANKS, 'target'), '-gp', join(RANKS, 'golden'), '-o', join(WORK, 'graph'));
  msprobe('compare', '-tp', join(RANKS, 'target/step0'), '-gp', join(RANKS, 'golden/step0'), '-o', join(WORK, 'compared'), '--html');
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  rmSync(WORK, { recursive: true, force: true });
});

test('with a port and a token file the address is the same after a restart', async () => {
  const [port, file] = [await freePort(), join(WORK, 'token')];
  const serve = () => start(findCommand(), ['serve', join(WORK, 'graph'), '--port', String(port), '--token-file', file, '--json'], (text) => (text.includes('\n') ? JSON.parse(text) : undefined));
  const first = await serve();
  await first.stop();
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const second = await serve();
  assert.equal(second.answer.url, first.answer.url);
  const { page } = await openPage(chrome);
  await page.goto(first.answer.url);
  await page.locator('[data-test=verdict-card]').waitFor();
  await page.context().close();
  await second.stop();
});

test('over ssh the tunnel is printed, and no browser of this machine is started', async () => {
  const made = join(WORK, 'xdg-open');
  writeFileSync(made, `#!/bin/sh\ntouch ${join(WORK, 'opened')}\necho noise >&2\n`, { mode: 0o755 });
  const env = { ...process.env, LC_ALL: 'C.UTF-8', PATH: `${WORK}:${process.env.PATH}`, SSH_CONNECTION: '10.0.0.2 50000 10.0.0.1 22' };
  const child = spawn(findCommand(), ['serve', join(WORK, 'graph'), '--port', '0', '--open'], { env });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  for (let i = 0; i < 300 && !/Ctrl-C/.test(said); i++) await new Promise((done) => setTimeout(done, 30));
  child.kill();
  const port = /127\.0\.0\.1:(\d+)/.exec(said)[1];
  assert.ok(said.includes(`ssh -L ${port}:127.0.0.1:${port} 10.0.0.1`), said);
  assert.ok(!existsSync(join(WORK, 'opened')) && !said.includes('noise'));
});

const drawn = { graph: '[data-test=verdict-card]', run: '[data-test=run-map]', report: '[data-test=verdict-card]' };
for (const [kind, selector] of Object.entries(drawn)) {
  test(`msprobe.show draws a ${kind} in a frame of a notebook`, async () => {
    const report = () => join(WORK, 'compared', readdirSync(join(WORK, 'compared')).find((name) => name.endsWith('.html')));
    const path = kind === 'report' ? report() : join(WORK, kind);
    const cell = execFileSync(join(ROOT, '.venv/bin/python'), ['-c', 'import sys, msprobe; print(msprobe.show(sys.argv[1], height=560)._repr_html_())', path], { encoding: 'utf8' });
    const notebook = join(WORK, `${kind}.notebook.html`);
    writeFileSync(notebook, `<!doctype html><meta charset="utf-8"><title>notebook</title><p>In [1]: msprobe.show(...)</p>${cell}`);
    const { page, faults } = await openPage(chrome, { viewport: { width: 1280, height: 720 } });
    await page.goto(pathToFileURL(notebook).href);
    const frame = page.frameLocator('iframe');
    await frame.locator(selector).first().waitFor();
    if (kind === 'graph') await frame.locator('[data-test=verdict-go]').click();
    await page.screenshot({ path: join(OUT, `notebook_${kind}.png`) });
    assert.deepEqual(faults, []);
    await page.context().close();
  });
}
