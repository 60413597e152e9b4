// The HTML report of `msprobe compare --html`, opened from disk: themes, languages, keyboard, contrast, hostile names.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { browser, counts, DEMO, findCommand, holds, openPage, OUT, shows } from './support.mjs';

const HOSTILE = 'Functional.</script><img src=x onerror=alert(1)>.0.forward';
let directory;
let chrome;
let demo; // the report of the demo's runs
let hostile;

function report(target, golden, out) {
  execFileSync(findCommand(), ['compare', '-tp', target, '-gp', golden, '-o', join(directory, out), '--html'], { stdio: 'ignore' });
  return join(directory, out, readdirSync(join(directory, out)).find((file) => file.endsWith('.html')));
}

function dump(side, rank, norm) {
  const tensor = (n) => ({ type: 'torch.Tensor', dtype: 'torch.float32', shape: [2], Max: n, Min: 0, Mean: 0.5, Norm: n, requires_grad: false });
  const op = (n) => ({ input_args: [tensor(1)], input_kwargs: {}, output: [tensor(n)] });
  const folder = join(directory, side, `rank${rank}`);
  mkdirSync(folder, { recursive: true });
  const data = { 'Module.m.layers.0.fc.Linear.forward.0': op(1), [HOSTILE]: op(norm), 'Module.m.layers.1.fc.Linear.forward.0': op(norm === 1 ? 1 : 1e300) };
  writeFileSync(join(folder, 'dump.json'), JSON.stringify({ task: 'statistics', level: 'mix', framework: 'pytorch', data }));
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-report-'));
  const runs = join(DEMO, '..');
  demo = report(join(runs, 'problem/step0'), join(runs, 'golden/step0'), 'demo');
  for (const rank of [0, 1]) {
    dump('target', rank, rank ? 1 : 7);
    dump('golden', rank, 1);
  }
  hostile = report(join(directory, 'target'), join(directory, 'golden'), 'hostile');
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  rmSync(directory, { recursive: true, force: true });
});

async function visit(file, options = {}) {
  const opened = await openPage(chrome, { viewport: { width: 1280, height: 900 }, ...options });
  await opened.page.goto(pathToFileURL(file).href);
  await opened.page.locator('#story').waitFor();
  const leave = async (name) => {
    if (name) await opened.page.screenshot({ path: join(OUT, `${name}.png`), fullPage: true });
    await opened.page.context().close();
    assert.deepEqual(opened.faults, []);
  };
  return { ...opened, leave };
}

test('paths and names go on in the next line after a part of them, not in the middle of a word', async () => {
  const { page, leave } = await visit(demo, { viewport: { width: 900, height: 800 } });
  const torn = await page.locator('.sides dd, .op-link').evaluateAll((places) => {
    const range = document.createRange();
    const lines = (node) => (range.selectNodeContents(node), new Set([...range.getClientRects()].map(({ top }) => top)).size);
    return [places.some((place) => lines(place) > 1), places.flatMap((place) => [...place.childNodes]).filter((part) => lines(part) > 1).map((part) => part.textContent)];
  });
  assert.deepEqual(torn, [true, []]);
  await leave();
});

/** Texts whose colour is too close to what is behind them (WCAG AA: 4.5, large ones 3). */
const faintTexts = () => {
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const out = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const owner = node.parentElement;
    if (!node.textContent.trim() || !owner.checkVisibility() || ['SCRIPT', 'NOSCRIPT'].includes(owner.tagName)) continue;
    const style = getComputedStyle(owner);
    const ink = parse(owner instanceof SVGElement ? style.fill : style.color);
    const [low, high] = [light(ink), light(ground(owner))].sort((a, b) => a - b);
    const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if ((high + 0.05) / (low + 0.05) < needed) out.push(`${node.textContent.trim().slice(0, 40)}: ${style.color} on ${ground(owner)}`);
  }
  return [...new Set(out)];
};

test('the card has the words of the terminal, character for character', async () => {
  const runs = join(DEMO, '..');
  const said = execFileSync(findCommand(), ['compare', '-tp', join(runs, 'problem/step0'), '-gp', join(runs, 'golden/step0'), '-o', join(directory, 'said'), '--json'], { encoding: 'utf8' });
  const { verdict } = JSON.parse(said);
  for (const [language, locale] of [['en', 'en-US'], ['zh', 'zh-CN']]) {
    const { page, leave } = await visit(demo, { locale });
    const shown = [await page.locator('[data-test=verdict-headline]').textContent(), ...(await page.locator('[data-test=verdict-line]').allTextContents())];
    assert.deepEqual(shown, verdict.text[language]);
    await leave();
  }
});

for (const [name, options] of [
  ['report_light_en', {}],
  ['report_dark_zh', { locale: 'zh-CN', colorScheme: 'dark' }],
  ['report_narrow', { viewport: { width: 420, height: 900 }, colorScheme: 'dark' }],
]) {
  test(`${name}: the answer, plots, tables; every text can be read, nothing sticks out`, async () => {
    const { page, leave } = await visit(demo, options);
    const zh = options.locale === 'zh-CN';
    await holds(async () => assert.match(await page.locator('#story').innerText(), zh ? /误差源头：[\s\S]*\.weight 在使用前就已为标杆值的 1\.25 倍/ : /Origin: [\s\S]*\.weight is 1\.25 times the golden value/));
    await holds(async () => assert.equal(await page.locator('html').getAttribute('lang'), zh ? 'zh-CN' : 'en'));
    await holds(async () => assert.ok((await page.locator('svg.plot').count()) >= 3, 'curves by layer, map of parts, curve over the run'));
    await holds(async () => assert.ok((await page.locator('svg.plot path.line.forward').first().getAttribute('d')).includes('L'), 'a curve over several layers'));
    await holds(async () => assert.ok((await page.locator('table.rows tbody tr').count()) >= 20));
    assert.deepEqual(await page.evaluate(faintTexts), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling of the page');
    await leave(name);
  });
}

test('theme and language are switched by the keyboard', async () => {
  const { page, leave } = await visit(demo);
  await page.getByRole('button', { name: 'Dark theme' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('html[data-theme=dark]').waitFor(); // what a key changes is drawn a moment later
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await page.getByRole('heading', { level: 1, name: /比对报告/ }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.innerText), 'English', 'the focus stays');
  assert.deepEqual(await page.evaluate(faintTexts), []);
  await leave();
});

test('rows are filtered, sorted, opened and turned over', async () => {
  const { page, leave } = await visit(demo);
  const rows = page.locator('table.rows tbody tr');
  const first = () => rows.first().locator('td').nth(1).innerText();
  const worst = await first();
  await page.getByRole('button', { name: 'Sort by Row', exact: true }).click();
  await holds(async () => assert.notEqual(await first(), worst));
  await holds(async () => assert.equal(await page.locator('table.rows th').first().getAttribute('aria-sort'), 'ascending'));
  await page.getByRole('button', { name: 'Next' }).click();
  await shows(page.locator('.pager'), /Rows 51 to 100/);
  await page.getByRole('searchbox').fill('gate_proj parameters_grad');
  await holds(async () => {
    const names = await page.locator('table.rows tbody tr td:nth-child(2)').allInnerTexts();
    assert.ok(names.length > 0 && names.every((name) => name.includes('gate_proj') && name.includes('parameters_grad')), names.join());
  });
  await rows.first().getByRole('button').press('Enter');
  await shows(page.locator('tr.whole'), /Bench l2norm/);
  await page.getByRole('searchbox').fill('nothing of this name');
  await shows(page.locator('#rows'), /No row matches/);
  await page.getByRole('searchbox').fill('');
  await page.locator('.ops .op-link').first().click();
  await holds(async () => assert.equal(await page.getByRole('searchbox').inputValue(), await page.locator('.ops .op-link').first().innerText()));
  await leave();
});

test('measures, parts and directions change the plots', async () => {
  const { page, leave } = await visit(demo);
  const curve = () => page.locator('svg.plot path.line.forward').first().getAttribute('d');
  const before = await curve();
  await page.locator('label.chooser', { hasText: /^Part/ }).locator('select').selectOption({ label: 'mlp.down_proj' });
  await holds(async () => assert.notEqual(await curve(), before));
  await page.getByLabel('Measure').selectOption({ label: 'Mean, relative error' });
  await counts(page.locator('path.roundoff'), 0, 'round-off is in units of the first measure');
  await page.locator('.legend').first().getByRole('button', { name: 'Forward' }).click();
  await counts(page.locator('.chart').first().locator('svg.plot path.line.forward'), 0);
  await page.locator('section').filter({ hasText: 'Error through depth' }).getByRole('button', { name: 'Backward' }).nth(1).click();
  await holds(async () => assert.ok((await page.locator('rect.spot').count()) > 4));
  await leave();
});

test('names of the dumps are text; the file asks for nothing and runs nothing else', async () => {
  const html = readFileSync(hostile, 'utf8');
  assert.ok(!html.includes('onerror'), 'the data is packed');
  assert.match(html, /default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; img-src data:;/);
  const { page, leave } = await visit(hostile);
  let asked = false;
  page.on('dialog', (dialog) => ((asked = true), dialog.dismiss()));
  await shows(page.locator('#story'), /onerror=alert/);
  assert.equal(await page.locator('img').count(), 0);
  await counts(page.locator('.pairs tbody tr'), 2);
  const [story, pairs] = await Promise.all(['#story', '.pairs'].map((part) => page.locator(part).boundingBox()));
  assert.ok(story.y + story.height <= pairs.y, 'the verdict stands before the list of pairs');
  await page.locator('.pairs').getByRole('button', { name: 'rank1' }).click();
  await shows(page.locator('#story'), /rank1: no difference beyond rounding/);
  const blocked = await page.evaluate(() => {
    const script = document.createElement('script');
    try {
      script.textContent = 'window.ran = true';
    } catch {
      return true; // trusted types
    }
    document.body.append(script);
    return window.ran === undefined;
  });
  assert.ok(blocked && !asked);
  await page.context().close();
  await (await visit(hostile)).leave('report_ranks');
});

test('a report that was cut short says so', async () => {
  const html = readFileSync(demo, 'utf8');
  const at = html.indexOf('id="data">') + 2000;
  const cut = join(directory, 'cut.html');
  writeFileSync(cut, html.slice(0, at) + html.slice(html.indexOf('</script>', at)));
  const { page } = await openPage(chrome);
  await page.goto(pathToFileURL(cut).href);
  await page.getByRole('alert').waitFor();
  await shows(page.getByRole('alert'), /cut short/);
  await page.context().close();
});

test('it prints with all its sections', async () => {
  const { page, leave } = await visit(demo, { colorScheme: 'light' });
  await page.emulateMedia({ media: 'print' });
  await holds(async () => assert.equal(await page.locator('.tools').isVisible(), false));
  const pdf = await page.pdf({ format: 'A4', printBackground: true });
  assert.ok(pdf.length > 20_000);
  writeFileSync(join(OUT, 'report.pdf'), pdf);
  await leave();
});

/** The report of the demo as if ops had been called again: the data is packed JSON. */
function withReplays(name) {
  const html = readFileSync(demo, 'utf8');
  const at = html.indexOf('id="data">') + 'id="data">'.length;
  const end = html.indexOf('</script>', at);
  const data = JSON.parse(gunzipSync(Buffer.from(html.slice(at, end).trim(), 'base64')));
  const figures = (dtype, ulp, limit) => ({ dtype, error: 0.01, ulp, round_off_ulp: limit });
  const replay = (op, verdict, items, why = '', notes = []) => ({ label: data.summary.pairs[0].label, op, golden_op: op, verdict, why, items, notes });
  const item = (target, golden) => [{ item: 'output.0', target, golden, inputs: 1e-7, verdict: '' }];
  data.summary.replays = [
    replay('Functional.linear.0.forward', 'both within round-off', item(figures('bfloat16', 0.22, 1.5), figures('float32', 0.4, 3))),
    replay('Functional.dropout.0.forward', 'cannot be replayed', [], 'it draws random numbers'),
    replay('Module.model.layers.1.self_attn.q_proj.a_long_name_that_nobody_breaks_into_lines.Linear.forward.0', 'golden nearer', item(figures('bfloat16', 'inf', 'inf'), figures('float32', 2.9e5, 3)), '', ['eps is taken for 1e-05: the dump does not say it']),
    replay('Functional.gelu.0.forward', 'target nearer', item(figures('bfloat16', 0.22, 1.5), figures('float32', 2.9e5, 3))),
    replay('Functional.silu.0.forward', 'both far', item(figures('float32', 400, 3), figures('float32', 500, 3))),
    replay('Torch.bmm.0.backward', 'cannot be replayed', [], `torch refuses the call (RuntimeError: ${'mat1_and_mat2_shapes '.repeat(12)})`),
  ];
  const file = join(directory, `${name}.html`);
  writeFileSync(file, html.slice(0, at) + gzipSync(JSON.stringify(data)).toString('base64') + html.slice(end));
  return file;
}

for (const [name, options] of [
  ['report_replay_light_en', {}],
  ['report_replay_dark_zh', { locale: 'zh-CN', colorScheme: 'dark' }],
  ['report_replay_narrow', { viewport: { width: 420, height: 900 } }],
]) {
  test(`${name}: verdicts of the replay, what tells something first, reasons in the reader's language`, async () => {
    const { page, leave } = await visit(withReplays(name), options);
    const zh = options.locale === 'zh-CN';
    const section = page.locator('section', { has: page.locator('#replay-title') });
    const verdicts = await section.locator('tbody .badge').allInnerTexts();
    assert.deepEqual(verdicts, zh ? ['标杆侧更接近', '两侧都远离真值', '调试侧更接近', '两侧都在舍入范围内', '无法重新调用', '无法重新调用'] : ['golden run is nearer', 'both are far from it', 'target is nearer', 'both within round-off', 'cannot be called again', 'cannot be called again']);
    await holds(async () => assert.match(await section.locator('tbody').innerText(), zh ? /会生成随机数[\s\S]*torch 拒绝此调用/ : /it draws random numbers[\s\S]*torch refuses the call/));
    assert.deepEqual(await page.evaluate(faintTexts), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling of the page');
    await leave(name);
  });
}
