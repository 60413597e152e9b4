// What is not the demo's one good file: lists with long names, broken and vanished files, single graphs, several ranks.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { writeRank } from './data.mjs';
import { browser, counts, DEMO, findCommand, holds, listed, openPage, OUT, ROOT, serve, shows, until } from './support.mjs';

const LONG = 'runs/2026-11-20_a_rather_long_name_of_an_experiment_that_does_not_end_where_one_would_wish/llama_7b_tensor_parallel_8_pipeline_parallel_4_bf16';
const RANKS = join(ROOT, 'tests/golden/graph/ranks');
const EXPECTED_FAULT = /status of 4\d\d/; // the browser repeats each answer that is an error

let directory;
let chrome;
let server;

function graph(out, ...sides) {
  mkdirSync(join(directory, out));
  execFileSync(findCommand(), ['graph_visualize', ...sides, '-o', join(directory, out)], { stdio: 'ignore' });
  return `${out}/${readdirSync(join(directory, out))[0]}`;
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  const demo = join(DEMO, readdirSync(DEMO).find((file) => file.endsWith('.vis.db')));
  mkdirSync(join(directory, LONG), { recursive: true });
  copyFileSync(demo, join(directory, LONG, 'compare.vis.db'));
  copyFileSync(demo, join(directory, 'vanishing.vis.db'));
  writeFileSync(join(directory, 'text.vis.db'), 'this is not a database');
  mkdirSync(join(directory, 'empty'));
  server = await serve(directory);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** The page in one of the two languages and themes, at the size of a small laptop. */
async function visit(hash, { url = server.answer.url, ...options } = {}) {
  const opened = await openPage(chrome, { viewport: { width: 1280, height: 800 }, ...options });
  await opened.page.goto(url + hash);
  const state = () => opened.page.evaluate(() => window.__msprobe.state());
  const leave = async (name) => {
    if (name) await opened.page.screenshot({ path: join(OUT, `${name}.png`) });
    await opened.page.context().close();
    assert.deepEqual(opened.faults.filter((fault) => !EXPECTED_FAULT.test(fault)), []);
  };
  return { ...opened, state, leave };
}

const CHINESE = { locale: 'zh-CN', colorScheme: 'dark' };

test('the list shows every column and the whole of long names', async () => {
  for (const [name, options] of [['files', {}], ['files_zh', CHINESE], ['files_narrow', { viewport: { width: 720, height: 800 } }]]) {
    const { page, leave } = await visit('', options);
    const table = page.locator('.file-table');
    await table.waitFor();
    const sticking = await page.locator('main.files').evaluate((main) => {
      const { right } = main.getBoundingClientRect();
      return [...main.querySelectorAll('td, th, .file-link, .button')].filter((part) => part.scrollWidth > part.clientWidth + 1 || part.getBoundingClientRect().right > right).map((part) => part.textContent);
    });
    assert.deepEqual(sticking, [], name);
    await holds(async () => assert.ok((await table.innerText()).includes(LONG)));
    await page.locator('.skipped summary').click();
    await shows(page.locator('.skipped'), /text\.vis\.db (is not a|不是) SQLite/);
    await leave(name);
  }
});

test('a directory without graphs says how to make one', async () => {
  const other = await serve(join(directory, 'empty'));
  try {
    for (const [name, options] of [['empty', {}], ['empty_zh', CHINESE]]) {
      const { page, leave } = await visit('', { url: other.answer.url, ...options });
      await shows(page.locator('.empty'), /msprobe run --dump-path/);
      await leave(name);
    }
  } finally {
    other.stop();
  }
});

test('what is not a database is told in the language of the page, and the list is one click away', async () => {
  for (const [name, options, words] of [['broken', {}, /not a graph file[\s\S]*not a SQLite database/], ['broken_zh', CHINESE, /不是图数据文件[\s\S]*不是 SQLite 数据库/]]) {
    const { page, leave } = await visit('#file=text.vis.db', options);
    const alert = page.getByRole('alert');
    await alert.waitFor();
    await holds(async () => assert.match(await alert.innerText(), words));
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    await alert.getByRole('button').last().click();
    await page.locator('.file-table').waitFor();
    await leave();
  }
});

test('a file that goes away while it is open is told, and what was read stays', async () => {
  const { page, state, leave } = await visit('#file=vanishing.vis.db', CHINESE);
  await until(async () => (await state()).graph === 'ready', 'the graph is ready');
  rmSync(join(directory, 'vanishing.vis.db'));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await until(async () => (await state()).details === 'failed', 'the details fail');
  const said = await page.getByRole('alert').innerText();
  assert.match(said, /文件已不存在[\s\S]*vanishing\.vis\.db/);
  assert.doesNotMatch(said, /\/api\/|[Cc]hoose/, 'in the language of the page, without addresses of queries');
  assert.equal(await page.locator('canvas[data-side]').count(), 2);
  await page.screenshot({ path: join(OUT, 'vanished_zh.png') });
  await page.getByRole('alert').getByRole('button').last().click();
  await page.locator('.file-table').waitFor();
  await leave();
});

test('a link to a step and rank that the file lacks says so, and offers what there is', async () => {
  for (const [name, options, words] of [['strayed', {}, /This link names Step 77, Rank 99, which the file does not have\. Shown: Step 0, Rank 0/], ['strayed_zh', CHINESE, /此链接指向 Step 77，Rank 99，但文件中没有。 当前显示：Step 0，Rank 0/]]) {
    const { page, state, leave } = await visit(`#file=${encodeURIComponent(`${LONG}/compare.vis.db`)}&step=77&rank=99`, options);
    await until(async () => (await state()).graph === 'ready', 'the graph is ready');
    const note = page.locator('[data-test=strayed]');
    await holds(async () => assert.match(await note.innerText(), words));
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    await note.getByRole('button', { name: 'Step 0' }).click();
    await until(async () => (await note.count()) === 0 && (await state()).graph === 'ready', 'it goes once something is chosen');
    await leave();
  }
});

test('a single graph has one side and no verdicts', async () => {
  const file = graph('single', '-tp', join(RANKS, 'target/step0'));
  const { page, state, leave } = await visit(`#file=${encodeURIComponent(file)}`);
  await until(async () => (await state()).graph === 'ready', 'the graph is ready');
  assert.equal(await page.locator('canvas[data-side]').count(), 1);
  assert.equal(await page.locator('[data-test^=count-]').count(), 0);
  await leave('single');
});

test('a single graph shows how large its values are, and which are odd', async () => {
  const file = graph('values', '-tp', join(DEMO, '../problem'));
  for (const [name, options, words] of [['values', {}, [/floating-point outputs/, /Largest value/]], ['values_zh', CHINESE, [/个浮点输出/, /最大绝对值/]]]) {
    const { page, state, leave } = await visit(`#file=${encodeURIComponent(file)}`, options);
    const values = page.locator('[data-test=odd-values]');
    await values.waitFor();
    await holds(async () => assert.match(await values.innerText(), words[0]));
    assert.doesNotMatch(await page.locator('[data-test=overview]').innerText(), /Nothing to report|没有需要关注/);
    const bars = page.locator('[data-test=magnitudes] button.bar');
    await holds(async () => assert.ok((await bars.count()) > 5));
    await holds(async () => assert.match(await bars.first().getAttribute('aria-label'), words[1]));
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    await bars.first().click();
    await until(async () => (await state()).details === 'ready', 'the op is selected');
    await leave();
  }
});

test('steps and ranks are chosen, and the address keeps them', async () => {
  const file = graph('ranks', '-tp', join(RANKS, 'target'), '-gp', join(RANKS, 'golden'), '--plain'); // as the earlier tool wrote it
  const { page, state, leave } = await visit(`#file=${encodeURIComponent(file)}`);
  await until(async () => (await state()).graph === 'ready', 'the graph is ready');
  const options = page.locator('.chooser', { hasText: 'Rank' }).locator('select').locator('option');
  await until(async () => (await options.count()) > 1, 'several ranks', () => options.allInnerTexts());
  const ranks = await options.allInnerTexts();
  await page.locator('.chooser', { hasText: 'Rank' }).locator('select').selectOption(ranks.at(-1));
  await until(async () => page.url().includes(`rank=${ranks.at(-1)}`) && (await state()).graph === 'ready', 'the other rank is shown');
  await page.reload();
  await until(async () => (await state()).graph === 'ready', 'the graph is back');
  await holds(async () => assert.equal(await page.locator('.chooser', { hasText: 'Rank' }).locator('select').inputValue(), ranks.at(-1)));
  // Such a file lists no findings: what its nodes say takes their place.
  await page.locator('[data-test=finding-first_warning]').click();
  await until(async () => (await state()).details === 'ready', 'the first warning is selected');
  await leave('ranks');
});

/** Two forward and backward passes in each step of each rank; `norm` is that of all outputs. */
function accumulated(out, norm) {
  for (const step of [0, 1]) {
    for (const rank of [0, 1]) {
      const [data, construct] = [{}, {}];
      for (const call of [0, 1]) {
        for (const pass of ['forward', 'backward']) {
          const values = { Max: norm, Min: -norm, Mean: 0, Norm: norm + call };
          const given = { type: 'torch.Tensor', dtype: 'torch.float32', shape: [4], ...values, requires_grad: true };
          data[`Module.net.Net.${pass}.${call}`] = pass === 'forward' ? { input_args: [given], input_kwargs: {}, output: [given] } : { input: [given], output: [given] };
          construct[`Module.net.Net.${pass}.${call}`] = null;
        }
      }
      writeRank(join(directory, out, `step${step}`, `rank${rank}`), { data, construct });
    }
  }
  return join(directory, out);
}

test('directory, step, rank and micro step are chosen one after the other', async () => {
  const target = accumulated('dump_target', 5);
  const files = [graph('first_run', '-tp', target, '-gp', accumulated('dump_golden', 4)), graph('second_run', '-tp', target)];
  const { page, state, leave } = await visit('');
  await page.locator('.file-link', { hasText: files[1] }).click();
  await until(async () => (await state()).graph === 'ready' && (await state()).file === files[1], 'the graph of the second directory');
  await page.locator('.file-name').click();
  await page.locator('.file-link', { hasText: files[0] }).click();
  const isAt = async (step, rank) => {
    const now = await state();
    return now.graph === 'ready' && now.file === files[0] && now.step === step && now.rank === rank;
  };
  await until(() => isAt(0, 0), 'the graph of the first directory');
  const chooser = (name) => page.locator(`.chooser:has(> span:text-is("${name}")) select`);
  await chooser('Step').selectOption('1');
  await until(() => isAt(1, 0), 'the other step');
  await chooser('Rank').selectOption('1');
  await until(() => isAt(1, 1), 'the other rank');
  await holds(async () => assert.deepEqual(await chooser('Micro step').locator('option').allInnerTexts(), ['All', '0', '1']));
  const drawn = (side) => page.evaluate((name) => window.__msprobe.drawn(name).slice(1).sort(), side);
  const calls = (...of) => of.flatMap((call) => [`Module.net.Net.backward.${call}`, `Module.net.Net.forward.${call}`]).sort();
  const both = (...of) => async () => JSON.stringify([await drawn('NPU'), await drawn('Bench')]) === JSON.stringify([calls(...of), calls(...of)]);
  await until(both(0, 1), 'all passes', state);
  await chooser('Micro step').selectOption('1');
  await until(both(1), 'the second pass alone, on both sides');
  await holds(() => assert.match(page.url(), /step=1&rank=1.*micro_step=1/));
  await page.reload();
  await until(both(1), 'the same after loading the page again');
  await holds(async () => assert.equal(await chooser('Micro step').inputValue(), '1'));
  await chooser('Micro step').selectOption('0');
  await until(both(0), 'the first pass alone');
  await chooser('Micro step').selectOption({ label: 'All' });
  await until(both(0, 1), 'all passes again');
  await leave('micro_step');
});

test('the address names filter, tab and node; a page without a clipboard copies it as well', async () => {
  const { page, state, leave } = await visit(`#file=${encodeURIComponent(`${LONG}/compare.vis.db`)}`);
  await until(async () => (await state()).graph === 'ready', 'the graph is ready');
  // Of a long path the name of the file is whole, and the run's directory is what begins.
  const [directoryCut, nameCut] = await page.locator('.file-name span').evaluateAll((parts) => parts.map((part) => part.scrollWidth > part.clientWidth));
  assert.deepEqual([directoryCut, nameCut], [true, false]);
  await page.locator('[data-test=colors-precision]').click();
  await page.locator('[data-test=count-pass]').click();
  await page.locator('[data-test=search-leaves]').check();
  await page.locator('#search').fill('down_proj');
  const hits = page.locator('#search-hits li');
  await until(async () => page.url().includes('q=down_proj') && (await hits.count()) > 1, 'the filter is in the address');
  await listed(page);
  const { length } = await hits.all();
  assert.ok(length > 1);
  // The buttons go along the list, which stays.
  await page.locator('[data-test=search-next]').click();
  await page.locator('[data-test=search-next]').click();
  const second = await hits.nth(1).getAttribute('title');
  await until(async () => (await state()).selection?.name === second && (await state()).details === 'ready', 'the second hit is shown');
  await page.locator('[data-test=search-previous]').click();
  const first = await hits.nth(0).getAttribute('title');
  await until(async () => (await state()).selection?.name === first && (await state()).details === 'ready', 'the first hit is shown');
  await page.keyboard.press('Escape');
  await page.locator('[data-test=tab-stack]').click();
  await page.locator('canvas[data-side=NPU]').press('Shift+F10');
  await page.locator('.node-menu').waitFor();
  // As over plain HTTP from another machine.
  await page.evaluate(() => {
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
    document.addEventListener('copy', () => (window.copied = document.activeElement.value));
  });
  await page.locator('[data-test=menu-link]').click();
  await until(() => page.evaluate(() => window.copied !== undefined), 'the link is copied');
  const link = await page.evaluate(() => window.copied);
  const colleague = await page.context().newPage();
  await colleague.goto(link);
  await colleague.locator('.stacks').waitFor();
  const seen = await colleague.evaluate(() => window.__msprobe.state());
  assert.equal(seen.selection.name, first);
  await holds(async () => assert.equal(await colleague.locator('[data-test=colors-precision]').getAttribute('aria-checked'), 'true', 'in the same colours'));
  await colleague.locator('#search').focus();
  await until(async () => (await colleague.locator('#search-hits li').count()) === length, 'the same nodes are listed');
  await page.keyboard.press('?');
  await shows(page.locator('[data-test=legend]'), /Error[\s\S]*Unmatched/);
  await page.keyboard.press('Escape');
  await leave('link');
});

test('both panes draw on whole device pixels, so that text is sharp', async () => {
  for (const deviceScaleFactor of [1, 1.25]) {
    const { page, state, leave } = await visit(`#file=${encodeURIComponent(`${LONG}/compare.vis.db`)}`, { deviceScaleFactor });
    await until(async () => (await state()).graph === 'ready', 'the graph is ready');
    const sizes = () => page.evaluate(() => {
      const exact = (canvas) => new Promise((done) => new ResizeObserver(([entry]) => done(entry.devicePixelContentBoxSize[0].inlineSize)).observe(canvas, { box: 'device-pixel-content-box' }));
      return Promise.all([...document.querySelectorAll('canvas[data-side]')].map(async (canvas) => [canvas.width, await exact(canvas)]));
    });
    await holds(async () => {
      for (const [drawn, filled] of await sizes()) assert.equal(drawn, filled, `at ${deviceScaleFactor}`);
    });
    await leave();
  }
});

test('a finding is shown below the head of its module; the keys go from a hit to the graph, the list stays beside it', async () => {
  const { page, state, leave } = await visit(`#file=${encodeURIComponent(`${LONG}/compare.vis.db`)}`);
  await until(async () => (await state()).graph === 'ready', 'the graph is ready');
  await page.locator('[data-test=first-finding]').click();
  await until(async () => (await state()).details === 'ready', 'the finding is selected');
  const layer = process.env.MSPROBE_DEMO_LAYER ?? 'Module.model.layers.2.mlp.down_proj.Linear.forward.0';
  const pane = await page.locator('canvas[data-side=NPU]').boundingBox();
  await until(async () => {
    const head = await page.evaluate((name) => window.__msprobe.rect('NPU', name), layer);
    return head !== null && head.y >= pane.y && head.y + head.height <= pane.y + pane.height;
  }, 'the head of the layer is in sight');
  await page.keyboard.press('/');
  await page.keyboard.type('gate_proj');
  await until(async () => (await page.locator('#search-hits li').count()) > 1, 'hits are there');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await until(() => page.evaluate(() => document.activeElement.dataset.side === 'NPU'), 'the keys go to the graph');
  assert.equal(await page.locator('#search-hits li.active').count(), 1, 'the list stays');
  await page.locator('[data-test=search-close]').click();
  await page.locator('#search-hits').waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  await counts(page.locator('#search-hits li.active'), 1, 'the list comes back as it was');
  await leave();
});

test('the Tab key goes from the search box into its list, back, and on; Escape closes it', async () => {
  const { page, state, leave } = await visit(`#file=${encodeURIComponent(`${LONG}/compare.vis.db`)}`);
  await until(async () => (await state()).graph === 'ready', 'the graph is ready');
  await page.keyboard.press('/');
  await page.locator('.search-list').waitFor();
  const inside = (part) => page.evaluate((selector) => document.activeElement.closest(selector) !== null, part);
  await page.keyboard.press('Tab');
  await holds(async () => assert.ok(await inside('.search-list')));
  await page.keyboard.press('Shift+Tab');
  await holds(async () => assert.ok(await inside('.search')));
  for (let i = 0; i < 40 && (i === 0 || (await inside('.search-list'))); i++) await page.keyboard.press('Tab');
  assert.ok(!(await inside('.search-list')) && (await page.locator('.search-list').isVisible()), 'the list stays');
  await holds(async () => assert.ok(await inside('.top-bar'), 'on behind the field'));
  await page.locator('#search').focus();
  await page.keyboard.press('Escape');
  await page.locator('.search-list').waitFor({ state: 'detached' });
  await holds(async () => assert.ok(await inside('canvas[data-side=NPU]')));
  await leave();
});

test('a server that has ended is told, with what to do', async () => {
  const other = await serve(join(directory, LONG));
  const { page, state } = await visit('', { url: other.answer.url });
  await until(async () => (await state()).graph === 'ready', 'the graph is ready');
  await page.locator('[data-test=first-finding]').click();
  await until(async () => (await state()).details === 'ready', 'the way to the finding is open');
  await other.stop();
  await page.locator('[data-test=first-finding]').click(); // asks for the node alone
  const ended = page.locator('.notice.bad', { hasText: 'Start "msprobe serve" again' });
  await ended.waitFor();
  await page.waitForTimeout(9_000); // longer than other failures are shown
  assert.ok(await ended.isVisible(), 'it stays');
  await page.screenshot({ path: join(OUT, 'server_ended.png') });
  await page.context().close();
});

test('an address without its token is explained, in both languages', async () => {
  const { page } = await openPage(chrome);
  const answer = await page.goto(server.answer.url.replace(/token=.*/, ''));
  assert.equal(answer.status(), 403);
  await shows(page.locator('body'), /msprobe serve printed last[\s\S]*此地址/);
  await page.screenshot({ path: join(OUT, 'no_token.png') });
  await page.context().close();
});

test('a port in use is an error that says so; Ctrl-C ends a server', { timeout: 300_000 }, async () => {
  const other = await serve(directory);
  const { status, stderr } = spawnSync(findCommand(), ['serve', directory, '--port', String(other.answer.port)], { encoding: 'utf8', timeout: 60_000 });
  assert.equal(status, 3);
  assert.match(stderr, /port \d+ .*(in use).*--port/);
  assert.equal(await other.stop('SIGINT'), 0);
});
