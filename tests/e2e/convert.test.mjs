// Dumps become graphs in the page: chosen below the served directory, with real progress, cancelled for real.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { hugeDump, RANKS } from './large_data.mjs';
import { browser, findCommand, holds, openPage, OUT, serve, shows, start } from './support.mjs';

const CHINESE = { locale: 'zh-CN', colorScheme: 'dark' };
const EXPECTED_FAULT = /status of 4\d\d/; // the browser repeats each answer that is an error

let directory;
let chrome;
let server;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  cpSync(join(RANKS, 'target'), join(directory, 'runs/target 目标'), { recursive: true });
  cpSync(join(RANKS, 'golden'), join(directory, 'runs/golden'), { recursive: true });
  mkdirSync(join(directory, 'runs/broken/step0/rank0'), { recursive: true });
  for (const name of ['dump.json', 'stack.json', 'construct.json']) writeFileSync(join(directory, 'runs/broken/step0/rank0', name), '');
  writeFileSync(join(directory, 'map.yaml'), 'Net:\n  a: b\n');
  symlinkSync('/', join(directory, 'way_out'));
  server = await serve(directory);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function visit(options = {}, url = server.answer.url) {
  const opened = await openPage(chrome, { viewport: { width: 1280, height: 900 }, ...options });
  await opened.page.goto(url);
  const leave = async () => {
    await opened.page.context().close();
    assert.deepEqual(opened.faults.filter((fault) => !EXPECTED_FAULT.test(fault)), []);
  };
  return { ...opened, leave };
}

const stateOf = (page) => page.locator('[data-test=convert-state]').getAttribute('data-state');

async function reaches(page, state) {
  await page.locator(`[data-test=convert-state][data-state=${state}]`).waitFor({ timeout: 60_000 });
}

test('a comparison from the list of files to the graph, by keyboard alone', async () => {
  const { page, leave } = await visit();
  await page.locator('[data-test=convert-open]').focus();
  await page.keyboard.press('Enter');
  // Browse: into runs, then take the dump with its button.
  await page.locator('[data-test=browse-target]').focus();
  await page.keyboard.press('Enter');
  await page.locator('[data-test=dir-runs]').waitFor();
  assert.equal(await page.locator('[data-test=dir-way_out]').count(), 0, 'links are not shown');
  await page.keyboard.press('Enter');
  await page.locator('[data-test="dir-target 目标"]').waitFor();
  await page.screenshot({ path: join(OUT, 'convert_picker.png') });
  await page.locator('[data-test="choose-target 目标"]').focus();
  await page.keyboard.press('Enter');
  await holds(async () => assert.equal(await page.locator('#field-target').inputValue(), 'runs/target 目标'));
  await page.locator('#field-golden').focus();
  await page.keyboard.type('runs/golden');
  await page.locator('#field-output').fill('graphs/new');
  await page.locator('#field-mapping').selectOption('bare');
  await page.locator('[data-test=check-overflow]').focus();
  await page.keyboard.press('Space');
  await page.screenshot({ path: join(OUT, 'convert_form.png') });
  await page.keyboard.press('Enter'); // of the form: starts
  await reaches(page, 'done');
  await shows(page.locator('.convert-command pre'), /graph_visualize --target_path '\.\/runs\/target 目标' --golden_path \.\/runs\/golden --output_path \.\/graphs\/new --layer_mapping --overflow_check/);
  await page.screenshot({ path: join(OUT, 'convert_done.png') });
  await page.keyboard.press('Enter'); // the focus is on "Open the graph"
  await page.waitForFunction(() => window.__msprobe.state().graph === 'ready');
  assert.match((await page.evaluate(() => window.__msprobe.state())).file, /^graphs\/new\/compare_\d+\.vis\.db$/);
  // Back to the form from the graph, as it was left.
  await page.locator('[data-test=convert-icon]').click();
  await holds(async () => assert.equal(await page.locator('#field-golden').inputValue(), 'runs/golden'));
  await page.keyboard.press('Escape');
  await page.locator('canvas').first().waitFor();
  await leave();
});

test('what fails says why, in the words of the command; what is not filled in is marked', async () => {
  const { page, leave } = await visit(CHINESE, `${server.answer.url}#convert`);
  await page.locator('[data-test=convert-start]').click();
  await shows(page.locator('#note-target'), /必填/);
  await page.locator('#field-target').fill('runs/broken');
  await page.locator('[data-test=check-merge]').check();
  await page.locator('[data-test=convert-start]').click();
  await holds(async () => assert.equal(await page.locator('[data-test=merge-tp-0]').getAttribute('aria-invalid'), 'true'));
  await page.screenshot({ path: join(OUT, 'convert_form_zh.png'), fullPage: true });
  await page.locator('[data-test=check-merge]').uncheck();
  await page.locator('[data-test=convert-start]').click();
  await reaches(page, 'failed');
  await shows(page.locator('.convert-error'), /json[\s\S]*[\u4e00-\u9fff]/, 'in the language of the page');
  assert.deepEqual(existsSync(join(directory, 'graphs')) ? readdirSync(join(directory, 'graphs')).filter((name) => name !== 'new') : [], [], 'nothing half-written');
  await page.screenshot({ path: join(OUT, 'convert_failed_zh.png') });
  // A path out of the directory is refused before anything starts.
  await page.locator('[data-test=convert-again]').click();
  for (const path of ['../..', '/etc', 'way_out/etc']) {
    await page.locator('#field-target').fill(path);
    await page.locator('[data-test=convert-start]').click();
    const note = page.locator('#note-target.field-fault', { hasText: path });
    await note.waitFor(); // at the field that it is about, in the language of the page
    await shows(note, /[\u4e00-\u9fff]/);
    assert.doesNotMatch(await note.innerText(), /\/api\//);
  }
  await leave();
});

test('a conversion shows its progress, is seen by a second tab, and ends when it is cancelled', async () => {
  hugeDump(join(directory, 'runs/many'));
  const { page, leave } = await visit({}, `${server.answer.url}#convert`);
  await page.locator('#field-target').fill('runs/many');
  await page.locator('#field-output').fill('cancelled');
  await page.locator('[data-test=convert-start]').click();
  await reaches(page, 'running');
  const other = await visit(CHINESE, `${server.answer.url}#convert`);
  await reaches(other.page, 'running');
  await other.page.screenshot({ path: join(OUT, 'convert_running_zh.png') });
  await page.locator('[data-test=convert-cancel]').click();
  await reaches(page, 'cancelled');
  await reaches(other.page, 'cancelled');
  assert.deepEqual(existsSync(join(directory, 'cancelled')) ? readdirSync(join(directory, 'cancelled')) : [], [], 'nothing is left');
  await page.screenshot({ path: join(OUT, 'convert_cancelled.png') });
  await other.leave();
  await leave();
});

test('a server that is not to convert says so, and does not', async () => {
  const closed = await start(findCommand(), ['serve', directory, '--port', '0', '--json', '--no_convert'], (text) => (text.includes('\n') ? JSON.parse(text) : undefined));
  try {
    const { page, leave } = await visit({}, closed.answer.url);
    await page.locator('canvas').first().waitFor(); // the one graph there is
    assert.equal(await page.locator('[data-test=convert-icon]').count(), 0);
    const answer = await page.evaluate(async (token) => {
      const response = await fetch('api/convert', { method: 'POST', headers: { 'X-Msprobe-Token': token, 'Content-Type': 'application/json' }, body: '{"target_path":"runs/golden","output_path":"o"}' });
      return response.status;
    }, closed.answer.token);
    assert.equal(answer, 403);
    await leave();
  } finally {
    await closed.stop();
  }
});
