// `msprobe serve DIR` as the home of all results: graphs, reports with their verdicts, dumps that become graphs, monitored runs, trends.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LOOKS, violations } from './accessible.mjs';
import { msprobe, writeTrends } from './data.mjs';
import { writeRun } from './run_data.mjs';
import { browser, counts, holds, openPage, OUT, ROOT, serve, until } from './support.mjs';

const DATA = mkdtempSync(join(tmpdir(), 'msprobe-home-'));
const RANKS = join(ROOT, 'tests/golden/graph/ranks');
const at = (...parts) => join(DATA, ...parts);
let chrome;
let server;

/** Where the exit code says what was found. */
function report(...args) {
  try {
    msprobe(...args);
  } catch (error) {
    assert.equal(error.status, 1, error.stderr);
  }
}

before(async () => {
  cpSync(join(RANKS, 'target'), at('problem'), { recursive: true });
  cpSync(join(RANKS, 'golden'), at('reference'), { recursive: true });
  mkdirSync(at('graph'));
  msprobe('graph_visualize', '-tp', at('problem'), '-gp', at('reference'), '-o', at('graph'));
  report('compare', '-tp', at('problem/step0'), '-gp', at('reference/step0'), '-o', at('compared'), '--html');
  for (const [name, bias] of [['a', 0], ['b', 0.8]]) {
    mkdirSync(at(name));
    writeFileSync(at(name, 'train.log'), Array.from({ length: 120 }, (_, step) => `{'loss': ${(4 / (1 + step / 40) + bias * (step > 60)).toFixed(5)}, 'step': ${step + 1}}`).join('\n'));
  }
  report('doctor', at('a'), at('b'), '-o', at('doctor'));
  report('curves', at('a/train.log'), at('b/train.log'), '-o', at('curves'));
  report('config_check', '-tp', join(ROOT, 'tests/checks/mindformers_dense.yaml'), '-gp', join(ROOT, 'tests/checks/megatron_dense.sh'), '-o', at('configuration'));
  writeRun(at('monitored'), { ranks: 2, steps: 30 });
  writeTrends(at('dumps of trends'), at('trends'));
  rmSync(at('dumps of trends'), { recursive: true });
  // What is no report of ours, and what leads out of the directory.
  writeFileSync(at('other.html'), '<script id="data">AAAA</script><p>of another tool</p>');
  writeFileSync(at('forged.html'), `<meta name="msprobe-report" content="${Buffer.from('{"kind":"compare","outcome":"equal","en":"forged","zh":"x"}').toString('base64')}"><script>window.forged = 1</script><script id="data"><script>window.forged = 1</script>`);
  symlinkSync(at('doctor/msprobe_doctor.html'), at('linked.html'));
  server = await serve(DATA);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  await server?.stop();
  rmSync(DATA, { recursive: true, force: true });
});

const rows = (page) => page.locator('.file-table tbody tr').evaluateAll((all) => all.map((row) => row.innerText.replace(/\s+/g, ' ')));
const tab = (page, kind) => page.locator(`[data-test=files-${kind}]`).click();

test('every kind of result has its list', async () => {
  const { page, faults } = await openPage(chrome);
  await page.goto(server.answer.url);
  await page.locator('.file-kinds').waitFor();
  assert.deepEqual(await page.locator('.file-kinds button').evaluateAll((all) => all.map((one) => one.dataset.test)), ['graphs', 'reports', 'dumps', 'runs', 'trends'].map((kind) => `files-${kind}`));
  await tab(page, 'runs');
  await holds(async () => assert.match((await rows(page)).join(), /monitored/));
  await tab(page, 'trends');
  await holds(async () => assert.match((await rows(page)).join(), /broken/));
  await page.context().close();
  assert.deepEqual(faults, []);
});

test('reports stand with their verdicts, and open with a click', async () => {
  const { page, faults } = await openPage(chrome);
  await page.goto(server.answer.url);
  await tab(page, 'reports');
  const wanted = [/compare_result_.*html .*(Origin|differ|equal).* Comparison/, /configuration\/checklist\.html .*rule.* Configuration/, /curves\/curves\.html not reasonable: diverges Curves/, /doctor\/msprobe_doctor\.html The runs part at stage .* Two trainings/];
  await holds(async () => {
    const all = await rows(page);
    for (const one of wanted) assert.ok(all.some((row) => one.test(row)), `${one} in ${all.join('\n')}`);
    assert.ok(all.every((row) => !/other\.html|linked\.html/.test(row)), 'another tool has pages, too, and no link is followed');
  });
  await page.locator('.file-link', { hasText: 'msprobe_doctor.html' }).click();
  await page.locator('[data-test=verdict-card]').waitFor();
  assert.match(await page.locator('[data-test=verdict-headline]').innerText(), /^The runs part/);
  await page.goBack();
  await page.locator('.file-kinds').waitFor();
  await page.context().close();
  assert.deepEqual(faults, []);
});

test('a report is shown by the page of this msprobe: none of its own scripts', async () => {
  const { origin, searchParams } = new URL(server.answer.url);
  const token = searchParams.get('token');
  const ask = (file, secret = token) => fetch(`${origin}/report?${new URLSearchParams({ token: secret, file })}`);
  assert.equal((await ask('doctor/msprobe_doctor.html')).status, 200);
  assert.equal((await ask('doctor/msprobe_doctor.html', 'wrong')).status, 403);
  assert.equal((await ask('forged.html')).status, 400);
  assert.equal((await ask('other.html')).status, 200, 'what is packed in it is data only');
  assert.ok(!(await (await ask('other.html')).text()).includes('of another tool'));
  assert.equal((await ask('../etc/passwd.html')).status, 400);
  assert.equal((await ask('a/train.log')).status, 404);
  assert.match((await ask('doctor/msprobe_doctor.html')).headers.get('content-security-policy'), /script-src 'nonce-/);
});

for (const [look, options] of LOOKS) {
  test(`home_${look}: every list can be read`, async () => {
    const { page, faults } = await openPage(chrome, { viewport: { width: 1280, height: 720 }, ...options });
    await page.goto(server.answer.url);
    for (const kind of ['reports', 'dumps', 'graphs']) {
      await tab(page, kind);
      await page.locator('.file-table tbody tr').first().waitFor();
      await page.mouse.move(0, 0);
      await page.screenshot({ path: join(OUT, `home_${kind}_${look}.png`) });
      assert.deepEqual(await violations(page), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling');
    }
    await page.context().close();
    assert.deepEqual(faults, []);
  });
}

test('a dump becomes a graph with one click, and two are compared', async () => {
  const { page, faults } = await openPage(chrome);
  await page.goto(server.answer.url);
  await tab(page, 'dumps');
  await holds(async () => assert.deepEqual((await rows(page)).map((row) => row.split(' ')[0]), ['problem', 'reference']));
  assert.ok(await page.locator('[data-test=dumps-compare]').isDisabled());
  await page.getByRole('checkbox', { name: /reference/ }).check();
  await page.getByRole('checkbox', { name: /problem/ }).check();
  assert.match(await page.locator('[data-test=dumps-pair]').innerText(), /reference against the reference problem/);
  await page.locator('[data-test=dumps-swap]').click();
  await page.locator('[data-test=dumps-compare]').click();
  await page.locator('[data-test=convert-state][data-state=done]').waitFor();
  assert.ok((await page.locator('.convert-command').innerText()).includes('--target_path ./problem --golden_path ./reference'));
  await page.locator('[data-test=convert-load]').click();
  await page.locator('[data-test=verdict-card]').waitFor();
  await page.goto(server.answer.url);
  await tab(page, 'dumps');
  await page.locator('[data-test=dump-build]').first().click();
  await page.locator('[data-test=convert-state][data-state=done]').waitFor();
  await page.context().close();
  assert.deepEqual(faults, []);
});

test('the directory of a dump itself offers to build its graph', async () => {
  const own = await serve(at('problem'));
  const { page } = await openPage(chrome);
  await page.goto(own.answer.url);
  await page.locator('[data-test=dump-build]').click();
  await page.locator('[data-test=convert-state][data-state=done]').waitFor();
  await page.locator('[data-test=convert-load]').click();
  await until(async () => (await page.evaluate(() => window.__msprobe?.state().graph)) === 'ready', 'the graph is shown');
  await page.context().close();
  await own.stop();
});
