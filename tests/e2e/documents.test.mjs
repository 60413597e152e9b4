// Doctor, curves, checkpoints and certificates in the page that all reports share: themes, languages, a narrow screen, one file.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { LOOKS, violations } from './accessible.mjs';
import { englishSentences } from './language.mjs';
import { browser, findCommand, holds, openPage, OUT, ROOT } from './support.mjs';

const WORK = mkdtempSync(join(tmpdir(), 'msprobe-documents-'));
const at = (...parts) => join(WORK, ...parts);
const command = (...args) => spawnSync(findCommand(), args, { encoding: 'utf8', cwd: WORK, env: { ...process.env, PATH: `${join(ROOT, '.venv/bin')}:${process.env.PATH}` } });
const PYTHON = join(ROOT, '.venv/bin/python');
// kind -> its page, and what the card says
const KINDS = {
  doctor: { page: 'doctor/msprobe_doctor.html', en: /^The runs part at stage/, zh: /^两次运行在/, chart: true },
  curves: { page: 'curves/curves.html', en: /./, zh: /[一-鿿]/, chart: true },
  checkpoints: { page: 'ckpt.html', en: /^suspicious: layer\.bias/, zh: /^可疑：layer\.bias/ },
  certificate: { page: 'certified/certificate.html', en: /^certified/, zh: /[一-鿿]/ },
};
let chrome;

before(async () => {
  for (const [name, bias] of [['a', 0], ['b', 0.8]]) {
    mkdirSync(at(name));
    const lines = Array.from({ length: 200 }, (_, step) => `{'loss': ${(4 / (1 + step / 40) + bias * (step > 100) + 0.02 * Math.sin(step * 7)).toFixed(5)}, 'step': ${step + 1}}`);
    writeFileSync(at(name, 'train.log'), lines.join('\n'));
  }
  command('doctor', 'a', 'b', '-o', 'doctor');
  command('curves', 'a/train.log', 'b/train.log', '-o', 'curves');
  const save = "import sys, torch\nfor name, at in (('x', 0.0), ('y', 0.5)):\n    torch.save({'layer.weight': torch.ones(4, 4), 'layer.bias': torch.full((4,), at)}, f'{sys.argv[1]}/{name}.pt')\n";
  execFileSync(PYTHON, ['-c', save, WORK]);
  command('ckpt', 'compare', 'x.pt', 'y.pt', '--html', 'ckpt.html');
  writeFileSync(at('train.py'), 'import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(4, 1)\nsgd = torch.optim.SGD(model.parameters(), 0.1)\nfor _ in range(3):\n    loss = model(torch.ones(2, 4)).mean()\n    loss.backward()\n    sgd.step()\n    sgd.zero_grad()\n');
  const certified = command('certify', '-o', 'certified', '--', PYTHON, 'train.py');
  assert.equal(certified.status, 0, certified.stderr);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  rmSync(WORK, { recursive: true, force: true });
});

for (const [kind, { page: file, en, zh, chart }] of Object.entries(KINDS)) {
  for (const [look, options] of LOOKS) {
    test(`${kind}_${look}: the card, the parts and nothing in another language`, async () => {
      const chinese = look.endsWith('_zh');
      const { page, faults } = await openPage(chrome, { viewport: { width: 1280, height: 900 }, ...options });
      await page.goto(pathToFileURL(at(file)).href);
      await page.locator('[data-test=verdict-card]').waitFor();
      assert.match(await page.locator('[data-test=verdict-headline]').innerText(), chinese ? zh : en);
      assert.ok((await page.locator('section.card h2').count()) >= 2);
      if (chart) await holds(async () => assert.ok((await page.locator('svg.lines .curve').count()) >= 2, 'both curves are drawn'));
      if (chinese) assert.deepEqual(await page.evaluate(englishSentences), []);
      assert.deepEqual(await violations(page), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling');
      await page.screenshot({ path: join(OUT, `document_${kind}_${look}.png`), fullPage: true });
      assert.deepEqual(faults, []);
      await page.context().close();
    });
  }
}

test('a curve is read under the pointer, and the step where the runs part is marked', async () => {
  const { page } = await openPage(chrome);
  await page.goto(pathToFileURL(at('doctor/msprobe_doctor.html')).href);
  const plot = page.locator('svg.lines').first();
  await plot.locator('.parted').waitFor({ state: 'attached' });
  await plot.hover({ position: { x: 500, y: 100 } });
  await holds(async () => assert.match(await page.locator('.chart-read').first().innerText(), /A\s+\d[\s\S]*B\s+\d[\s\S]*step \d+/));
  await page.context().close();
});

test('commands of the next run are copied', async () => {
  const { page } = await openPage(chrome);
  await page.goto(pathToFileURL(at('doctor/msprobe_doctor.html')).href);
  const commands = page.locator('.commands').first();
  await commands.waitFor();
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => void (window.copied = text) } }));
  await commands.locator('button').click();
  await holds(async () => assert.equal((await page.evaluate(() => window.copied)).trim(), (await commands.locator('pre').innerText()).trim()));
  await page.context().close();
});

test('one file, and it says what it is in its first bytes', () => {
  for (const [kind, { page }] of Object.entries(KINDS)) {
    const text = readFileSync(at(page), 'utf8');
    const head = JSON.parse(Buffer.from(/<meta name="msprobe-report" content="([^"]+)">/.exec(text.slice(0, 16384))[1], 'base64'));
    assert.equal(head.kind, kind);
    assert.ok(head.en && head.zh);
    assert.match(text, /connect-src 'none'|default-src 'none'/);
  }
});
