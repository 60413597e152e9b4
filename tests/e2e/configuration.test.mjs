// The pages of config_check: the checklist and two packs in the page of the HTML report; and the page of `msprobe curves`.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { LOOKS, violations } from './accessible.mjs';
import { englishSentences } from './language.mjs';
import { browser, counts, findCommand, holds, openPage, OUT, ROOT, shows } from './support.mjs';

const CHECKS = join(ROOT, 'tests/checks');
const HOSTILE = '<img src=x onerror=alert(1)>';
let directory;
let chrome;
const pages = {};

const command = (args) => spawnSync(findCommand(), args, { encoding: 'utf8' });

/** A pack of a script, as a run with this learning rate would be. */
function pack(name, rate) {
  const script = join(directory, `${name}.sh`);
  writeFileSync(script, `export NCCL_ALGO=${rate === '1e-4' ? 'Ring' : 'Tree'}\npython3 train.py --lr ${rate} --seed 1 --data-path '${HOSTILE}${rate}'\n`);
  execFileSync(findCommand(), ['config_check', '-d', script, '-o', join(directory, `${name}.zip`)], { stdio: 'ignore' });
  return join(directory, `${name}.zip`);
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-configuration-'));
  const yaml = readFileSync(join(CHECKS, 'mindformers_dense.yaml'), 'utf8').replace('num_layers: 32', 'num_layers: 30');
  writeFileSync(join(directory, 'other.yaml'), yaml);
  const checked = command(['config_check', '-tp', join(directory, 'other.yaml'), '-gp', join(CHECKS, 'megatron_dense.sh'), '-o', join(directory, 'rules')]);
  assert.equal(checked.status, 1, checked.stderr);
  pages.checklist = join(directory, 'rules/checklist.html');
  execFileSync(findCommand(), ['config_check', '-c', pack('a', '1e-4'), pack('b', '2e-4'), '-o', join(directory, 'packs')], { stdio: 'ignore' });
  pages.packs = join(directory, 'packs/result.html');
  for (const [name, bias] of [['x', 0], ['y', 0.3]]) {
    const lines = Array.from({ length: 200 }, (_, step) => `{'loss': ${(4 / (1 + step / 40) + bias * (step > 100) + 0.02 * Math.sin(step * 7)).toFixed(5)}, 'step': ${step + 1}}`);
    writeFileSync(join(directory, `${name}.log`), lines.join('\n'));
  }
  command(['curves', join(directory, 'x.log'), join(directory, 'y.log'), '-o', join(directory, 'curves')]);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  rmSync(directory, { recursive: true, force: true });
});

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
  test(`checklist_${look}: what fails stands first, with where each value comes from, and why`, async () => {
    const { page, leave } = await visit(pages.checklist, options);
    await holds(async () => assert.match(await page.locator('[data-test=verdict-headline]').textContent(), zh ? /^\d+ 条规则中 1 条未通过/ : /^1 of \d+ rules fail/));
    const first = page.locator('#rules tbody tr').first();
    await shows(first, /structure\.num_layers[\s\S]*30[\s\S]*other\.yaml:\d+[\s\S]*32[\s\S]*megatron_dense\.sh:\d+/);
    await holds(async () => assert.match(await first.innerText(), zh ? /两侧模型层数不同/ : /layers/));
    if (zh) assert.deepEqual(await page.evaluate(englishSentences), []);
    const pass = page.locator('#rules').getByRole('button', { name: zh ? '通过' : 'pass', exact: true });
    const before = await page.locator('#rules tbody tr').count();
    await pass.click();
    await holds(async () => assert.ok((await page.locator('#rules tbody tr').count()) > before + 40, 'rules that pass are there, too'));
    await pass.click();
    await page.locator('#rules').getByRole('searchbox').fill('no such rule');
    await counts(page.locator('#rules tbody tr'), 0);
    await page.locator('#rules').getByRole('searchbox').fill('');
    await page.locator('section:has(#effective-title)').getByRole('searchbox').fill('num_layers');
    await shows(page.locator('section:has(#effective-title) tbody tr').first(), /num_layers[\s\S]*30[\s\S]*32/);
    await page.locator('section:has(#effective-title)').getByRole('searchbox').fill('');
    await leave(`checklist_${look}`);
  });

  test(`packs_${look}: the parts with their verdicts and rows; texts of the packs are only text`, async () => {
    const { page, leave } = await visit(pages.packs, options);
    await holds(async () => assert.match(await page.locator('[data-test=verdict-headline]').textContent(), zh ? /以下部分不同：.*超参数/ : /These parts differ:.*Hyperparameters/));
    const part = page.locator('section:has(#part-hyperparameters)');
    await shows(part, /lr[\s\S]*1e-4[\s\S]*2e-4/);
    await shows(part, /onerror=alert/);
    assert.equal(await page.locator('img').count(), 0);
    await shows(page.locator('section:has(#part-env)'), /NCCL_ALGO[\s\S]*Ring[\s\S]*Tree/);
    await holds(async () => assert.match(await page.locator('section:has(#part-pip)').innerText(), zh ? /没有差异/ : /No difference/));
    await leave(`packs_${look}`);
  });
}

for (const [look, options] of LOOKS) {
  test(`curves_${look}: verdict and plots can be read in both themes`, async () => {
    const zh = look.endsWith('_zh');
    const { page, leave } = await visit(join(directory, 'curves/curves.html'), options);
    await holds(async () => assert.equal(await page.locator('html').getAttribute('lang'), zh ? 'zh-CN' : 'en'));
    if (zh) assert.deepEqual(await page.evaluate(englishSentences), []);
    await holds(async () => assert.ok((await page.locator('svg').count()) >= 1, 'a plot'));
    assert.ok(await page.locator('main').isVisible());
    await leave(`curves_${look}`);
  });
}
