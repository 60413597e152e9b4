// Runs with a known fault (stories/): the terminal, the page and the HTML report name the rank, op, item and cause that are true.
// STORY_PICTURES=1 takes pictures of both screens of each, in both themes and languages.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { DENIALS, wantedLines } from './stories/words.mjs';
import { browser, findCommand, holds, openPage, OUT, ROOT, serve, until } from './support.mjs';

const LANGUAGES = { en: { LC_ALL: 'C.UTF-8' }, zh: { LC_ALL: 'zh_CN.UTF-8' } };
const LOOKS = [
  ['light_en', { locale: 'en-US' }],
  ['dark_zh', { locale: 'zh-CN', colorScheme: 'dark' }],
  ['dark_en', { locale: 'en-US', colorScheme: 'dark' }],
  ['light_zh', { locale: 'zh-CN' }],
].slice(0, process.env.STORY_PICTURES ? 4 : 2);
const PICTURES = join(OUT, 'stories');
const RULINGS = ['bug', 'suspicious', 'inherited', 'rewritten', 'round-off', 'bit-equal'];
const LARGE = ['m20', 'm100', 'r64']; // their commands run once

let directory;
let stories;
let chrome;
let server;
const windows = {}; // look -> an open page

/** Standard output of a command. */
function run(args, language) {
  const { status, stdout, stderr } = spawnSync(findCommand(), args, { encoding: 'utf8', env: { ...process.env, ...LANGUAGES[language] } });
  assert.equal(status, 0, `${args.join(' ')}\n${stderr}`);
  return stdout;
}

/** The card at the head of what a command prints; [] where it names no origin. */
function cardOf(text) {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => /^(Origin: |误差源头：)/.test(line));
  if (first < 0) return [];
  const rest = lines.slice(first + 1);
  return [lines[first], ...rest.slice(0, rest.findIndex((line) => !line.startsWith('  '))).map((line) => line.slice(2))];
}

const fileIn = (folder, ending) => join(folder, readdirSync(folder).find((name) => name.endsWith(ending)));

/** What the terminal says, in the languages asked for; the graph and the report are left behind. */
function terminal(story, languages) {
  const out = join(directory, 'out', story.name);
  const said = {};
  for (const language of languages) {
    const own = join(out, language);
    const compared = run(['compare', '-tp', join(story.target, 'step0'), '-gp', join(story.golden, 'step0'), '-o', join(own, 'compare'), '--html'], language);
    const graph = run(['graph_visualize', '-tp', story.target, '-gp', story.golden, '-o', join(own, 'graph'), '-oc'], language);
    const alone = run(['overflow_check', '-i', story.target, '-o', join(own, 'overflow')], language);
    said[language] = { rulers: rulersOf(compared), compare: cardOf(compared), graph: cardOf(graph), overflow: cardOf(alone), alone };
  }
  renameSync(fileIn(join(out, 'en/graph'), '.vis.db'), join(directory, 'served', `${story.name}.vis.db`));
  return { ...story, said, report: pathToFileURL(fileIn(join(out, 'en/compare'), '.html')).href };
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-stories-'));
  mkdirSync(join(directory, 'served'));
  const env = { ...process.env, HF_HUB_OFFLINE: '1', TRANSFORMERS_VERBOSITY: 'error' };
  execFileSync(join(ROOT, '.venv/bin/python'), [join(ROOT, 'tests/e2e/stories/make_stories.py'), join(directory, 'runs')], { stdio: ['ignore', 'ignore', 'pipe'], env });
  stories = JSON.parse(readFileSync(join(directory, 'runs/stories.json'), 'utf8')).map((story) => terminal(story, LARGE.includes(story.name) ? ['en'] : ['en', 'zh']));
  chrome = await browser();
  server = await serve(join(directory, 'served'));
  for (const [look, options] of LOOKS) windows[look] = await openPage(chrome, options);
  if (process.env.STORY_PICTURES) mkdirSync(PICTURES, { recursive: true });
});
after(async () => {
  await chrome?.close();
  await server?.stop();
  if (directory) rmSync(directory, { recursive: true, force: true });
});

/** Every story, and in the end everything that is wrong with any of them. */
async function each(check) {
  const wrong = [];
  for (const story of stories) {
    try {
      await check(story);
    } catch (error) {
      wrong.push(`${story.name}: ${error.message}`);
    }
  }
  assert.deepEqual(wrong, []);
}

function assertTrue(card, truth, language, alone = false) {
  wantedLines(truth, language, alone).forEach((wanted, index) => {
    assert.ok(index ? card.slice(1).some((line) => wanted.test(line)) : wanted.test(card[0] ?? ''), `${wanted} is not in\n${card.join('\n')}`);
  });
}

/** In the page: the texts that a reader sees without doing anything, those that are cut off or covered left out. */
function visibleTexts() {
  const inside = (rect, box) => rect.left >= box.left - 1 && rect.right <= box.right + 1 && rect.top >= box.top - 1 && rect.bottom <= box.bottom + 1;
  const screen = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  const range = document.createRange();
  const seen = (node) => {
    const owner = node.parentElement;
    if (!node.textContent.trim() || !owner.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()];
    for (let at = owner; at; at = at.parentElement) {
      if (getComputedStyle(at).overflow !== 'visible' && !rects.every((rect) => inside(rect, at.getBoundingClientRect()))) return false;
    }
    return rects.every((rect) => {
      const top = document.elementFromPoint((rect.left + rect.right) / 2, (rect.top + rect.bottom) / 2);
      return inside(rect, screen) && top !== null && (top.contains(owner) || owner.contains(top));
    });
  };
  const out = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) if (seen(node)) out.push(node.textContent);
  return out;
}

/** {rank label: {bug: n, ..}} of what compare prints; a single pair stands under its own label, too. */
function rulersOf(text) {
  const found = {};
  let label = '';
  for (const line of text.split('\n')) {
    label = /^(\S+) \(\w+\)$/.exec(line)?.[1] ?? label;
    const said = /^ {2}ruler: (.+) \(ops\)$/.exec(line)?.[1].replace('computed another way', 'rewritten');
    if (said) found[label] = Object.fromEntries(RULINGS.map((ruling) => [ruling, Number(new RegExp(`(\\d+) ${ruling}\\b`).exec(said)?.[1] ?? 0)]));
  }
  return found;
}

const cardOn = async (page) => [await page.locator('[data-test=verdict-headline]').textContent(), ...(await page.locator('[data-test=verdict-line]').allTextContents())];

async function shoot(page, story, screen, look) {
  if (!process.env.STORY_PICTURES) return;
  await page.waitForTimeout(1000); // a picture for people: nothing depends on it
  await page.screenshot({ path: join(PICTURES, `${story.name}_${screen}_${look}.png`), animations: 'disabled' });
}

async function openGraph(look, story) {
  const { page } = windows[look];
  const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
  await page.goto(`${server.answer.url}&visit=${story.name}#file=${story.name}.vis.db`);
  await until(async () => (await state()).graph === 'ready' && (await state()).findings === 'ready', 'the graph is ready', state);
  await page.locator('[data-test=verdict-headline]').waitFor();
  await shoot(page, story, 'page', look);
  return page;
}

async function openReport(look, story) {
  const { page } = windows[look];
  await page.goto(story.report);
  await page.locator('[data-test=verdict-headline]').waitFor();
  await shoot(page, story, 'report', look);
  return page;
}

test('there are single runs, NaN on several ranks, precision on several ranks, four of each and more', () => {
  for (const kind of ['single', 'nan', 'precision']) assert.ok(stories.filter((story) => story.kind === kind).length >= 4, kind);
});

test('the terminal names what is true, in both languages', async () => {
  await each(({ truth, said, overflow }) => {
    for (const [language, { compare, graph, overflow: alone, alone: text }] of Object.entries(said)) {
      assertTrue(compare, truth, language);
      assertTrue(graph, truth, language);
      if (overflow) assertTrue(alone, overflow, language, true);
      else assert.deepEqual(alone, [], text);
    }
  });
});

test('compare and graph_visualize say the same', async () => {
  await each(({ name, overflow, said }) => {
    for (const { compare, graph } of Object.values(said)) {
      // The graph also knows since when something is not finite.
      if (overflow) assert.equal(graph[0], compare[0]);
      else assert.deepEqual(graph, compare);
    }
  });
});

test('the report has the words of compare, and nothing that denies them', async () => {
  await each(async (story) => {
    for (const [look] of LOOKS) {
      const language = look.slice(-2);
      const page = await openReport(look, story);
      const card = await cardOn(page);
      assertTrue(card, story.truth, language);
      if (story.said[language]) assert.deepEqual(card, story.said[language].compare);
      const seen = await page.evaluate(visibleTexts);
      assert.doesNotMatch(seen.join('\n'), DENIALS);
      const chosen = await page.locator('table.pairs tr.chosen button').allInnerTexts();
      if (story.kind !== 'single') {
        assert.deepEqual(chosen, [`rank${story.truth.ranks[0]}`], 'the pair of the origin is chosen');
        assert.ok(chosen.every((label) => seen.includes(label)), `the chosen pair is in sight: ${chosen}`);
      }
    }
  });
});

test('the first screen of the page has the words of graph_visualize, and nothing that denies them', async () => {
  await each(async (story) => {
    for (const [look] of LOOKS) {
      const language = look.slice(-2);
      const page = await openGraph(look, story);
      const card = await cardOn(page);
      assertTrue(card, story.truth, language);
      if (story.said[language]) assert.deepEqual(card, story.said[language].graph);
      assert.doesNotMatch((await page.evaluate(visibleTexts)).join('\n'), DENIALS);
    }
  });
  for (const { faults } of Object.values(windows)) assert.deepEqual(faults, []);
});

test('counts of ops are equal on the terminal, in the report and on the page', async () => {
  const number = (text) => Number(text.replace(/\D/g, ''));
  await each(async (story) => {
    const { rulers } = story.said.en;
    const wanted = rulers[`rank${story.truth.ranks[0]}`] ?? Object.values(rulers)[0];
    const inherited = Object.values(rulers).reduce((sum, ruler) => sum + ruler.inherited, 0);
    assert.equal(number(/^inherited: (\d+) ops?/m.exec(story.said.en.compare.join('\n'))?.[1] ?? '0'), inherited, 'the card counts all pairs');
    const report = await openReport('light_en', story);
    const shown = await report.locator('dl.ruler > div').evaluateAll((rows) => rows.map((row) => [row.className.replace('_', '-'), row.querySelector('dd').textContent]));
    assert.deepEqual({ ...Object.fromEntries(RULINGS.map((ruling) => [ruling, 0])), ...Object.fromEntries(shown.map(([ruling, count]) => [ruling, number(count)])) }, wanted, 'the report');
    const page = await openGraph('light_en', story);
    const chips = await page.locator('.summary-bar .count').evaluateAll((all) => all.map((chip) => [chip.dataset.test.replace('count-', ''), chip.querySelector('b').textContent]));
    assert.deepEqual(Object.fromEntries(RULINGS.map((ruling) => [ruling, number(chips.find(([level]) => level === ruling)?.[1] ?? '0')])), wanted, 'the page');
  });
});

test('on a small screen all ranks are in sight without scrolling, and all layers, the one that it begins in marked', async () => {
  const { page } = windows.light_en;
  const inSight = (selector) =>
    page.locator(selector).evaluateAll((all) => {
      const inside = ({ left, top, right, bottom }, box) => left >= box.left - 1 && top >= box.top - 1 && right <= box.right + 1 && bottom <= box.bottom + 1;
      const seen = (element) => {
        const rect = element.getBoundingClientRect();
        for (let at = element.parentElement; at; at = at.parentElement) if (getComputedStyle(at).overflow !== 'visible' && !inside(rect, at.getBoundingClientRect())) return false;
        return inside(rect, { left: 0, top: 0, right: innerWidth, bottom: innerHeight });
      };
      return { all: all.length, seen: all.filter(seen).length };
    });
  await page.setViewportSize({ width: 1024, height: 768 });
  try {
    await openGraph('light_en', stories.find(({ name }) => name === 'r64'));
    await holds(async () => assert.deepEqual(await inSight('[data-test^=cell-]'), { all: 64, seen: 64 }));
    await openGraph('light_en', stories.find(({ name }) => name === 'm100'));
    await holds(async () => {
      const layers = await inSight('button.bar.forward');
      assert.ok(layers.all >= 119);
      assert.equal(layers.seen, layers.all);
    });
    await holds(async () => assert.deepEqual(await inSight('[data-test=layer-origin]'), { all: 1, seen: 1 }));
  } finally {
    await page.setViewportSize({ width: 1440, height: 900 });
  }
});

/** What a reader of the first screen takes down: which rank, which op, and why. */
function readAnswer(texts) {
  const head = texts.map((text, i) => /^Origin: (.+?)\s*\(ranks? ([\d, ]+), step (\d+)\)\s*$/.exec(text + (texts[i + 1] ?? ''))).find((found) => found);
  const after = (label) => texts[texts.findIndex((text) => text.trim() === label) + 1]?.split(' ')[0];
  return head && { rank: Number(head[2].split(',')[0]), step: Number(head[3]), why: head[1], op: after('op:'), item: after('value:') };
}

test('rank, op and cause can be read on the first screen without a click', async () => {
  await each(async (story) => {
    const { truth } = story;
    const page = await openGraph('light_en', story);
    const answer = readAnswer(await page.evaluate(visibleTexts));
    assert.ok(answer, 'no origin is in sight');
    const { why, ...place } = answer;
    assert.deepEqual(place, { rank: truth.ranks[0], step: truth.step, op: truth.op, item: truth.item || answer.item });
    assert.match(`Origin: ${why} (${truth.ranks.length > 1 ? 'ranks' : 'rank'} ${truth.ranks.join(', ')}, step ${truth.step})`, wantedLines(truth, 'en')[0]);
  });
});

test('the card is copied as Markdown, every line of it', async () => {
  const page = await openGraph('light_en', stories[0]);
  await page.evaluate(() => {
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
    document.addEventListener('copy', () => (window.copied = document.activeElement.value));
  });
  await page.locator('[data-test=verdict-copy]').click();
  await until(() => page.evaluate(() => window.copied !== undefined), 'the card is copied');
  const [headline, blank, ...points] = (await page.evaluate(() => window.copied)).trimEnd().split('\n');
  const plain = (text) => text.replace(/\\(.)/g, '$1');
  const [said, ...lines] = await cardOn(page);
  assert.deepEqual([plain(headline), blank, points.map(plain)], [`**${said}**`, '', lines.map((line) => `- ${line}`)]);
});
