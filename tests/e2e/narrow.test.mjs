// Screens of a laptop and of a phone: words on every chip, and one pane at a time.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { violations } from './accessible.mjs';
import { msprobe, writeDecoder } from './data.mjs';
import { browser, holds, openPage, OUT, serve, until } from './support.mjs';

const WORK = mkdtempSync(join(tmpdir(), 'msprobe-narrow-'));
let chrome;
let server;

before(async () => {
  writeDecoder(WORK);
  mkdirSync(join(WORK, 'graph'));
  msprobe('graph_visualize', '-tp', join(WORK, 'target'), '-gp', join(WORK, 'golden'), '-o', join(WORK, 'graph'));
  server = await serve(join(WORK, 'graph'));
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  await server?.stop();
  rmSync(WORK, { recursive: true, force: true });
});

async function visit(options) {
  const opened = await openPage(chrome, options);
  await opened.page.goto(server.answer.url);
  await until(async () => (await opened.page.evaluate(() => window.__msprobe?.state().graph)) === 'ready', 'the graph is ready');
  return opened;
}

test('every chip has its word at 1280', async () => {
  for (const [name, options] of [['en', {}], ['zh', { locale: 'zh-CN', colorScheme: 'dark' }]]) {
    const { page, faults } = await visit({ viewport: { width: 1280, height: 720 }, ...options });
    await page.locator('.count-name').first().waitFor();
    const widths = await page.locator('.count-name').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width));
    assert.ok(widths.length >= 2 && widths.every((width) => width > 8), widths.join());
    await page.screenshot({ path: join(OUT, `narrow_1280_${name}.png`) });
    await page.context().close();
    assert.deepEqual(faults, []);
  }
});

test('a phone shows one side, and the other with a touch', async () => {
  const { page, faults } = await visit({ viewport: { width: 390, height: 844 } });
  const shown = () => page.locator('.pane').evaluateAll((all) => all.map((one) => one.checkVisibility()));
  await holds(async () => assert.deepEqual(await shown(), [true, false]));
  assert.ok((await page.locator('.pane').first().boundingBox()).width > 380);
  await page.locator('[data-test=pane-other]').click();
  await holds(async () => assert.deepEqual(await shown(), [false, true]));
  assert.match(await page.locator('[data-test=pane-other]').innerText(), /Target/);
  await page.screenshot({ path: join(OUT, 'narrow_390.png') });
  await page.locator('[data-test=pane-other]').click();
  assert.deepEqual(await violations(page), []);
  await page.context().close();
  assert.deepEqual(faults, []);
});
