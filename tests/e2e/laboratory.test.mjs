// What acc_check found, as a page: the file beside its tables, and from the list of `msprobe serve` with links into the graph.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { LOOKS, violations } from './accessible.mjs';
import { englishSentences } from './language.mjs';
import { browser, findCommand, holds, openPage, OUT, ROOT, serve, shows } from './support.mjs';

const DUMP = join(ROOT, 'out/demo/golden/step0/rank');
// A kernel of the user's that is wrong by a thousandth.
const WRONG = 'import torch\nright = torch.nn.functional.silu\ntorch.nn.functional.silu = lambda x, inplace=False: right(x) * 1.001\n';
let directory;
let chrome;
let served;
let file;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-laboratory-'));
  mkdirSync(join(directory, 'site'));
  writeFileSync(join(directory, 'site/sitecustomize.py'), WRONG);
  const said = execFileSync(findCommand(), ['acc_check', '-api_info', join(DUMP, 'dump.json'), '-o', join(directory, 'out'), '--json'], { encoding: 'utf8', env: { ...process.env, PYTHONPATH: join(directory, 'site') } });
  file = JSON.parse(said).page;
  execFileSync(findCommand(), ['graph_visualize', '-tp', DUMP, '-o', join(directory, 'out')], { stdio: 'ignore' });
  served = await serve(join(directory, 'out'));
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  await served?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const visit = (options) => openPage(chrome, { viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });

for (const [look, options] of LOOKS) {
  const zh = look.endsWith('_zh');
  test(`${look}: the wrong function stands first, with the histogram of its errors`, async () => {
    const { page, faults } = await visit(options);
    await page.goto(pathToFileURL(file).href);
    await holds(async () => assert.match(await page.locator('[data-test=verdict-headline]').textContent(), zh ? /^\d+ 个结果中有 \d+ 个与 float64/ : /^\d+ of \d+ results are further from float64/));
    const first = page.locator('table.functions > tbody > tr').first();
    await shows(first, zh ? /Functional\.silu[\s\S]*前向[\s\S]*错误/ : /Functional\.silu[\s\S]*forward[\s\S]*wrong/);
    await first.locator('.expander').click();
    const opened = page.locator('tr.whole').first();
    await shows(opened.locator('.ulp-histogram'), /2\^-\d+/);
    assert.ok((await opened.locator('.ulp-bar i').count()) > 1);
    await shows(opened.locator('.lab-results'), /Functional\.silu\.0\.forward\.output\.0/);
    assert.equal(await opened.locator('a').count(), 0, 'a file has no graph to lead into');
    if (zh) assert.deepEqual(await page.evaluate(englishSentences), []);
    const search = page.locator('#rows input[type=search]');
    await search.fill('linear backward');
    await holds(async () => assert.deepEqual([...new Set(await page.locator('table.functions > tbody > tr .code').allInnerTexts())], ['Functional.linear']));
    await search.fill('');
    await page.locator('table.functions th button').first().click();
    await holds(async () => assert.equal(await page.locator('table.functions th').first().getAttribute('aria-sort'), 'ascending'));
    assert.deepEqual(await violations(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling of the page');
    await page.locator('table.functions th button').nth(1).click();
    await page.screenshot({ path: join(OUT, `laboratory_${look}.png`), fullPage: true });
    await page.context().close();
    assert.deepEqual(faults, []);
  });
}

test('from the list of files to the table, and from a result to its call in the graph', async () => {
  const { page, faults } = await visit({ locale: 'en-US' });
  await page.goto(served.answer.url);
  await page.locator('[data-test=files-reports]').click();
  await page.screenshot({ path: join(OUT, 'laboratory_list.png') });
  await page.getByRole('link', { name: /accuracy_checking_report_\d+\.html/ }).click();
  const first = page.locator('table.functions > tbody > tr').first();
  await shows(first, /Functional\.silu/);
  await first.locator('.expander').click();
  await page.locator('.lab-results a').first().click();
  await holds(async () => assert.match(decodeURIComponent(page.url()), /file=build_\d+\.vis\.db.*node=Functional\.silu\.\d+\.forward/));
  await shows(page.locator('body'), /Functional\.silu\.\d+\.forward/);
  await page.screenshot({ path: join(OUT, 'laboratory_graph.png') });
  await page.context().close();
  assert.deepEqual(faults, []);
});

test('without the token, or for what is no table, nothing is shown', async () => {
  const { origin, searchParams } = new URL(served.answer.url);
  const [table] = readdirSync(join(directory, 'out')).filter((name) => name.startsWith('accuracy_checking_float64'));
  const status = async (query) => (await fetch(`${origin}/check?${new URLSearchParams(query)}`)).status;
  const token = searchParams.get('token');
  assert.equal(await status({ token, file: table }), 200);
  assert.equal(await status({ token: 'wrong', file: table }), 403);
  assert.equal(await status({ token, file: `../out/${table}` }), 400);
  assert.equal(await status({ token, file: 'accuracy_checking_float64_1.csv' }), 404);
  assert.equal(await status({ token, file: readdirSync(join(directory, 'out')).find((name) => name.endsWith('.vis.db')) }), 404);
});
