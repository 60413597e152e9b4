// The page of acc_check: the verdict, functions and results sorted by badness, histograms, and the way into the graph.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { englishSentences } from './language.mjs';
import { browser, counts, findCommand, holds, openPage, OUT, ROOT, shows } from './support.mjs';

const require = createRequire(join(ROOT, 'web/package.json'));
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const HOSTILE = '<img src=x onerror=alert(1)>';
const LOOKS = [
  ['light_en', { colorScheme: 'light', locale: 'en-US' }],
  ['dark_zh', { colorScheme: 'dark', locale: 'zh-CN' }],
  ['narrow_dark_en', { colorScheme: 'dark', locale: 'en-US', viewport: { width: 420, height: 900 } }],
];
// A kernel that is off, and one that is a little.
const KERNELS = `
import torch
right, less = torch.tanh, torch.exp
torch.tanh = lambda x: right(x) * 1.01
torch.exp = lambda x: less(x) * (1 + 1e-6)
`;
let directory;
let chrome;
let pages;

const leaf = (dtype, low, high) => ({ type: 'torch.Tensor', dtype: `torch.${dtype}`, shape: [16, 8], Max: high, Min: low, Mean: 0, Norm: 1, requires_grad: true });

/** A dump of statistics with three calls of each function. */
function writeDump(path) {
  const data = {};
  const ops = { 'Torch.tanh': [leaf('float32', -3, 3)], 'Torch.exp': [leaf('float32', -4, 4)], 'Torch.mul': [leaf('bfloat16', -2, 2), leaf('bfloat16', -2, 2)], 'Torch.add': [leaf('float32', 0, 1), leaf('float32', 0, 1)] };
  for (const [name, inputs] of Object.entries(ops)) {
    for (let call = 0; call < 3; call++) {
      data[`${name}.${call}.forward`] = { input_args: inputs, input_kwargs: {}, output: [inputs[0]] };
      data[`${name}.${call}.backward`] = { input: [inputs[0]], output: inputs };
    }
  }
  writeFileSync(path, JSON.stringify({ task: 'statistics', level: 'L1', framework: 'pytorch', dump_data_dir: null, data }));
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-accuracy-'));
  const dump = join(directory, HOSTILE);
  mkdirSync(dump);
  mkdirSync(join(directory, 'own'));
  writeFileSync(join(directory, 'own/sitecustomize.py'), KERNELS);
  writeDump(join(dump, 'dump.json'));
  const check = (out, env) => JSON.parse(execFileSync(findCommand(), ['acc_check', '-api_info', join(dump, 'dump.json'), '-d', 'cpu', '-o', join(directory, out), '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, ...env } })).html;
  pages = { off: check('off', { PYTHONPATH: join(directory, 'own') }), clean: check('clean', {}) };
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  rmSync(directory, { recursive: true, force: true });
});

async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }, resultTypes: ['violations'] }).then((result) => result.violations));
  return found.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary.replace(/\s+/g, ' ')}`));
}

async function visit(file, options) {
  const opened = await openPage(chrome, { viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
  await opened.page.goto(pathToFileURL(file).href);
  await opened.page.locator('h1').waitFor();
  const leave = async (name) => {
    assert.deepEqual(await violations(opened.page), []);
    assert.ok(await opened.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling of the page');
    await opened.page.screenshot({ path: join(OUT, `${name}.png`), fullPage: true });
    await opened.page.context().close();
    assert.deepEqual(opened.faults, []);
  };
  return { ...opened, leave };
}

for (const [look, options] of LOOKS) {
  const zh = look.endsWith('_zh');
  test(`accuracy_${look}: what is off stands first, with its elements by distance`, async () => {
    const { page, leave } = await visit(pages.off, options);
    await holds(async () => assert.match(await page.locator('[data-test=verdict-headline]').textContent(), zh ? /^\d+ 个结果中有 \d+ 个与 float64 的差距超出/ : /^\d+ of \d+ results are further from float64/));
    await holds(async () => assert.match(await page.locator('[data-test=verdict-card]').innerText(), /Torch\.tanh\.\d\.forward\.output\.0/));
    assert.equal(await page.locator('img').count(), 0);
    await shows(page.locator('main'), /onerror=alert/);
    if (zh) assert.deepEqual(await page.evaluate(englishSentences), []);

    const functions = page.locator('#functions tbody tr');
    await shows(functions.first(), zh ? /tanh[\s\S]*float32[\s\S]*错误/ : /tanh[\s\S]*float32[\s\S]*wrong/);
    assert.match(await functions.first().locator('svg.distances').getAttribute('aria-label'), /\d+, \d+, \d+, \d+, \d+, \d+, [1-9]\d*/);

    const rows = page.locator('#rows tbody tr:not(.whole)');
    await shows(rows.first(), /Torch\.tanh/);
    const all = await rows.count();
    assert.ok(all > 12, `${all} rows`);
    await functions.first().getByRole('button').click();
    await counts(rows, 3);
    await page.locator('#rows').getByRole('searchbox').fill('');
    await counts(rows, all);
    await page.locator('#rows').getByRole('button', { name: zh ? '错误' : 'wrong', exact: true }).click();
    await holds(async () => assert.ok(!/Torch\.tanh\.\d\.forward/.test(await page.locator('#rows tbody').innerText())));
    await page.locator('#rows').getByRole('button', { name: zh ? '错误' : 'wrong', exact: true }).click();

    const name = page.locator('#rows thead').getByRole('button', { name: 'API Name' });
    await name.click();
    await shows(rows.first(), /Torch\.add\.0/);
    await page.locator('#rows thead').getByRole('button', { name: zh ? /严重程度/ : /Badness/ }).click();
    await shows(rows.first(), /Torch\.tanh/);
    await rows.first().locator('.expander').click();
    await shows(page.locator('table.magnitudes'), /2\^/);
    await leave(`accuracy_${look}`);
  });
}

test('a result leads to its op in the graph', async () => {
  const { page, leave } = await visit(pages.off, {});
  const field = page.locator('#rows input[type=url]');
  await field.fill('http://127.0.0.1:6006/');
  await shows(page.locator('#graph-hint'), /no address of a graph/);
  await counts(page.locator('#rows tbody a'), 0);
  await field.fill('http://127.0.0.1:6006/#file=run.vis.db&step=0&rank=1');
  await holds(async () => assert.match(await page.locator('#rows tbody a').first().getAttribute('href'), /^http:\/\/127\.0\.0\.1:6006\/#file=run\.vis\.db&step=0&rank=1&side=NPU&node=Torch\.tanh\.\d\.(forward|backward)$/));
  await leave('accuracy_graph');
});

test('where nothing is off the page says so', async () => {
  const { page, leave } = await visit(pages.clean, {});
  await holds(async () => assert.match(await page.locator('[data-test=verdict-headline]').textContent(), /^No result is further from float64/));
  await leave('accuracy_clean');
});
