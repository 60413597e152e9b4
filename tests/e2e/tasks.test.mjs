// The five tasks of docs/en/graph/tasks.md as they are written there: its commands, in under a minute of processor time, then the clicks.
// TASK_PICTURES=1 takes the pictures of both languages anew.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { forDocument } from './pictures.mjs';
import { browser, findCommand, holds, openPage, ROOT, serve, shows, tickLevels, until } from './support.mjs';

const TASKS = join(ROOT, 'out/tasks');
const DOC = readFileSync(join(ROOT, 'docs/en/graph/tasks.md'), 'utf8');
const PYTHON = join(ROOT, '.venv/bin/python');
const LANGUAGES = [['en', { locale: 'en-US' }], ['zh', { locale: 'zh-CN' }]].slice(0, process.env.TASK_PICTURES ? 2 : 1);
const MINUTE = 60; // seconds

let chrome;
let path; // with the command under test before all others

/** The commands under a heading, by its number. */
function commandsOf(number) {
  const part = DOC.split(/^## /m).find((text) => text.startsWith(`${number}. `));
  return [...part.matchAll(/^\$ (.+)$/gm)].map((match) => match[1]);
}

/** What a command prints, and the seconds that it kept processors busy: how long it takes depends on what else the machine does. */
function run(command) {
  const stdio = ['ignore', 'pipe', 'pipe', 'pipe'];
  const env = { ...process.env, PATH: path };
  const { status, output } = spawnSync('bash', ['-c', `trap 'times >&3' EXIT\n${command}`], { cwd: ROOT, encoding: 'utf8', stdio, env });
  assert.equal(status, 0, `${command}\n${output?.[1]}${output?.[2]}`);
  const times = [...output[3].matchAll(/(\d+)m([\d.]+)s/g)];
  assert.equal(times.length, 4, output[3]);
  return { printed: output[1], seconds: times.reduce((sum, [, minutes, seconds]) => sum + 60 * minutes + Number(seconds), 0) };
}

before(async () => {
  rmSync(TASKS, { recursive: true, force: true });
  rmSync(join(ROOT, 'out/converted'), { recursive: true, force: true });
  mkdirSync(join(TASKS, 'bin'), { recursive: true });
  symlinkSync(resolve(findCommand()), join(TASKS, 'bin/msprobe'));
  path = [join(TASKS, 'bin'), process.env.PATH].join(delimiter);
  execFileSync(PYTHON, [join(ROOT, 'examples/quickstart/tasks.py'), '--out', TASKS], { stdio: ['ignore', 'ignore', 'pipe'] });
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
});

/** Runs what the document says; a server it starts is left running for `walk`, which is told its address and what was printed. */
async function task(number, walk) {
  const said = [];
  let busy = 0;
  let server = null;
  try {
    for (const command of commandsOf(number)) {
      const served = /^msprobe serve (\S+) --open$/.exec(command);
      if (served) {
        server = await serve(join(ROOT, served[1]));
        continue;
      }
      const { printed, seconds } = run(command);
      said.push(printed);
      busy += seconds;
    }
    assert.ok(busy < MINUTE, `in under a minute, not ${busy} s`);
    for (const [language, options] of LANGUAGES) {
      const { page, faults } = await openPage(chrome, { viewport: { width: 1280, height: 760 }, reducedMotion: 'reduce', ...options });
      const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
      const shoot = (name) => picture(page, `task_${name}_${language}`);
      const ready = () => until(async () => (await state()).graph === 'ready' && (await state()).findings === 'ready', 'the graph is ready', state);
      const selected = (name) => until(async () => (await state()).selection?.name === name && (await state()).details === 'ready', `${name} is selected`, state);
      await walk({ page, state, ready, selected, shoot, language, url: server?.answer.url, said: said.join('') });
      await page.context().close();
      assert.deepEqual(faults, []);
    }
  } finally {
    server?.stop();
  }
}

async function picture(page, name) {
  if (!process.env.TASK_PICTURES) return;
  await page.mouse.move(1, 300);
  await page.waitForTimeout(800); // a picture for people: nothing depends on it
  await page.evaluate((root) => {
    for (const place of document.querySelectorAll('.files-head p')) place.textContent = place.textContent.replace(root, '~/msprobe');
  }, ROOT);
  writeFileSync(join(ROOT, 'docs/images', `${name}.png`), forDocument(await page.screenshot({ animations: 'disabled', caret: 'hide' })));
}

test('1. the sabotaged layer is found', async () => {
  await task(1, async ({ page, url, ready, state, shoot }) => {
    await page.goto(url);
    await ready();
    const origin = page.locator('[data-test=verdict-go]');
    await origin.waitFor();
    await shoot('layer');
    await origin.click();
    await until(async () => (await state()).details === 'ready', 'the op is selected');
    await holds(async () => assert.match(`${(await state()).selection.name} ${await page.locator('[data-test=node-name]').innerText()}`, /layers\.2\.[\s\S]*mlp[\s\S]*down_proj/));
    await shoot('details');
  });
});

test('2. the rank that had NaN first is found', async () => {
  await task(2, async ({ page, url, ready, state, shoot, said }) => {
    assert.match(said, /step1, 4 ranks[\s\S]*Origin: Functional\.cross_entropy\.0\.forward: every label is -100, which is ignored: it is the mean of nothing \(input\.1\) \(rank 2, step 1\)/);
    await page.goto(url);
    await ready();
    await page.locator('[data-test="cell-1-2"]').click();
    await until(async () => (await state()).rank === 2 && (await state()).step === 1 && (await state()).graph === 'ready', 'rank 2 at step 1', state);
    await page.locator('[data-test=verdict-go]').click();
    await until(async () => (await state()).details === 'ready', 'the op is selected', state);
    await holds(async () => assert.equal((await state()).selection.name, 'Functional.cross_entropy.0.forward'));
    await shoot('nan');
  });
});

test('3. a renamed module is matched, and the mapping saved', async () => {
  await task(3, async ({ page, url, ready, selected, shoot, language }) => {
    await page.goto(url);
    await ready();
    await page.keyboard.press('c');
    const matching = () => page.evaluate(() => window.__msprobe.matching());
    await until(async () => (await matching()).state.at === 'ready', 'matches are known');
    for (const [side, name] of [['NPU', 'Module.model.layers.1.mlp.w_out.Linear.forward.0'], ['Bench', 'Module.model.layers.1.mlp.down_proj.Linear.forward.0']]) {
      await page.locator(`[data-test=match-${side}]`).click();
      // Since the visit in English they are matched: the list has only what is free.
      if (language !== 'en') {
        await tickLevels(page);
        await page.locator('#search').fill(name);
      }
      await page.locator(`#search-hits li[title="${name}"]`).click();
      await selected(name);
    }
    if (language === 'en') {
      await page.locator('[data-test=match-act]').click();
      await until(async () => (await matching()).message?.kind === 'made' && !(await matching()).busy, 'they are matched', matching);
    }
    await page.locator('[data-test=match-save]').click();
    await until(async () => (await matching()).message?.kind === 'saved' && !(await matching()).busy, 'they are saved', matching);
    const config = join(TASKS, 'renamed_graph', readdirSync(join(TASKS, 'renamed_graph')).find((file) => file.endsWith('.vis.config')));
    assert.equal(JSON.parse(readFileSync(config, 'utf8'))['Module.model.layers.1.mlp.w_out.Linear.forward.0'], 'Module.model.layers.1.mlp.down_proj.Linear.forward.0');
    await shoot('match');
  });
});

test('4. a dump is converted in the page', async () => {
  await task(4, async ({ page, url, ready, state, shoot }) => {
    await page.goto(url);
    await page.locator('[data-test=convert-open]').click();
    await page.locator('[data-test=browse-target]').click();
    await page.locator('[data-test=dir-demo]').click();
    await page.locator('[data-test=choose-problem]').click();
    await page.locator('#field-golden').fill('demo/golden');
    await page.locator('#field-output').fill('converted');
    await shoot('convert');
    await page.locator('[data-test=convert-start]').click();
    await page.locator('[data-test=convert-load]').click({ timeout: 60_000 });
    await ready();
    assert.match((await state()).file, /^converted\//);
  });
});

test('5. a colleague gets one file', async () => {
  await task(5, async ({ page, ready, state, shoot }) => {
    await page.goto(pathToFileURL(join(TASKS, 'for_a_colleague.html')).href);
    await ready();
    await page.locator('[data-test=verdict-go]').click();
    await until(async () => (await state()).details === 'ready', 'the op is selected', state);
    await shows(page.locator('[data-test=node-name]'), /layers\.2\.[\s\S]*mlp[\s\S]*down_proj/);
    await shoot('export');
  });
});
