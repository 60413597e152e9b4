// The page in a real browser, on the demo: a right run against one whose third decoder layer was tampered with.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { join } from 'node:path';
import { browser, counts, DEMO, holds, openPage, OUT, serve, shows, until } from './support.mjs';

const LAYER = process.env.MSPROBE_DEMO_LAYER ?? 'Module.model.layers.2.LlamaDecoderLayer.forward.0';
const BROKEN = process.env.MSPROBE_DEMO_NODE ?? 'Module.model.layers.2.mlp.down_proj.Linear.forward.0';
const BRANCH = 'Module.model.LlamaModel.forward.0';

let chrome;
let server;
let page;
let faults;

before(async () => {
  server = await serve(DEMO);
  chrome = await browser();
  ({ page, faults } = await openPage(chrome));
});
after(async () => {
  await chrome?.close();
  server?.stop();
});

const state = () => page.evaluate(() => window.__msprobe?.state() ?? {});
const rect = (side, name) => page.evaluate(([s, n]) => window.__msprobe.rect(s, n), [side, name]);
const drawn = (side) => page.evaluate((s) => window.__msprobe.drawn(s), side);
const open = (side) => page.evaluate((s) => window.__msprobe.open(s), side);
const shoot = (name) => page.screenshot({ path: join(OUT, `${name}.png`) });

/** Where a node stands, once the graph has stopped gliding. */
async function resting(side, name) {
  let last = null;
  await until(async () => {
    // Two frames apart: a busy machine may paint none between two questions.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const now = await rect(side, name);
    const still = now !== null && last !== null && now.y === last.y;
    last = now;
    return still;
  }, `${name} is placed on ${side}`);
  return last;
}

/** Scrolls a shown node to where it can be clicked. */
async function intoView(side, name) {
  const box = await page.locator(`canvas[data-side=${side}]`).boundingBox();
  const { y } = await resting(side, name);
  if (y >= box.y && y < box.y + box.height - 40) return resting(side, name);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, y - box.y - box.height / 3);
  await until(async () => (await rect(side, name)).y !== y, `${side} scrolls to ${name}`);
  return resting(side, name);
}

async function clickNode(side, name, dx = 60, times = 1) {
  const { x, y, height } = await intoView(side, name);
  await page.mouse.click(x + dx, y + height / 2, { clickCount: times });
}

/** Goes to a finding by a button; what was selected before must not be taken for it. */
async function toFinding(button) {
  const before = (await state()).selection?.name;
  await page.locator(`[data-test=${button}]`).click();
  await until(async () => {
    const { selection, details } = await state();
    return selection !== null && selection.name !== before && details === 'ready';
  }, 'a finding is selected, its details are there');
  return (await state()).selection.name;
}

/** What the browser tells screen readers; the canvas itself is only a picture to them. */
async function accessibleNodes() {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  return nodes;
}

/** The colour of the block itself, read off the canvas right of its name. */
async function colorOf(side, name) {
  const { x, y, width, height } = await resting(side, name);
  return page.evaluate(
    ([s, px, py]) => {
      const canvas = document.querySelector(`canvas[data-side="${s}"]`);
      const box = canvas.getBoundingClientRect();
      const ratio = canvas.width / box.width;
      return [...canvas.getContext('2d').getImageData((px - box.left) * ratio, (py - box.top) * ratio, 1, 1).data.slice(0, 3)];
    },
    [side, x + width * 0.8, y + height / 2],
  );
}

const isRed = ([r, g, b]) => r > g + 40 && r > b + 40;
const isYellow = ([r, g, b]) => r > b + 40 && g > b + 20 && Math.abs(r - g) < 60;
const isViolet = ([r, g, b]) => b > g + 15 && r >= g;
const isFinding = (color) => isRed(color) || isYellow(color) || isViolet(color);

test('the graph opens by itself and says what there is to find', async () => {
  await page.goto(server.answer.url);
  await until(async () => (await state()).graph === 'ready' && (await state()).findings === 'ready', 'the graph is ready');
  assert.match((await state()).file, /^compare_.*\.vis\.db$/);
  await shows(page.locator('.summary-bar'), /[\d,]+ nodes[\s\S]*\d+\s+(Bug|Suspicious)/);
  const summary = await page.locator('.summary-bar').innerText();
  const found = [...summary.matchAll(/(\d+)\s+(Bug|Suspicious)/g)].reduce((sum, match) => sum + Number(match[1]), 0);
  assert.ok(found > 0, `findings in: ${summary}`);
  await until(async () => (await drawn('NPU')).some((name) => name.includes('.mlp.down_proj.')) && (await drawn('Bench')).some((name) => name.includes('.mlp.down_proj.')), 'the graph is open at the origin');
  assert.equal((await state()).selection, null, 'the overview stays');
  await shows(page.locator('[data-test=compared]'), /^\S+ against \S+$/, 'what was compared');
  await shoot('1_open');
});

test('the card says what the whole file is about, and the bar agrees', async () => {
  const headline = await page.locator('[data-test=verdict-headline]').innerText();
  assert.match(headline, /^Origin: .*down_proj/);
  assert.equal(await page.locator('[data-test=conclusion]').count(), 0, 'it is said once');
  const shown = [headline, ...(await page.locator('[data-test=verdict-line]').allTextContents())];
  const told = await page.evaluate(async () => (await fetch(`api/verdict?file=${encodeURIComponent(window.__msprobe.state().file)}&token=${new URLSearchParams(location.search).get('token')}`)).json());
  assert.deepEqual(shown, told.text.en, 'the words of the command, character for character');
  assert.ok(shown.length > 3);
  assert.doesNotMatch(await page.locator('body').innerText(), /No errors|A difference starts here/);
  await page.locator('[data-test=colors-precision]').click();
  await page.locator('[data-test=count-error]').waitFor();
  await holds(() => assert.match(page.url(), /colors=rules/));
  assert.doesNotMatch(await page.locator('body').innerText(), /No errors|A difference starts here/, 'by the old rules neither');
  await page.locator('[data-test=colors-verdict]').click();
  await page.locator('[data-test=count-bug]').waitFor();
  assert.doesNotMatch(page.url(), /colors=/);
});

test('opening a module on one side opens its partner', async () => {
  await page.getByRole('button', { name: 'Collapse all' }).click();
  await until(async () => (await open('NPU')).length === 1 && (await open('Bench')).length === 1, 'only the roots are open');
  await clickNode('NPU', BRANCH, 14);
  await until(async () => (await open('NPU')).includes(BRANCH) && (await open('Bench')).includes(BRANCH), 'both sides are open');
  await clickNode('NPU', LAYER, 60, 2); // a double click does it too
  await until(async () => (await open('NPU')).includes(LAYER) && (await open('Bench')).includes(LAYER), 'the layer is open on both sides');
  await page.locator('label.toggle', { hasText: 'Sync expand' }).click();
  await clickNode('Bench', LAYER, 14);
  await until(async () => !(await open('Bench')).includes(LAYER), 'the golden layer is closed');
  assert.ok((await open('NPU')).includes(LAYER), 'the target layer stays open');
  await page.locator('label.toggle', { hasText: 'Sync expand' }).click();
});

test('the button leads to the origin in the sabotaged layer, from there to what inherits it, or to what the old rules mark', async () => {
  const origin = await toFinding('first-finding');
  await holds(async () => assert.match(`${origin} ${await page.locator('[data-test=node-name]').innerText()}`, /layers\.2\./));
  await counts(page.locator('.node-name [data-test=chip-origin]'), 1);
  assert.equal(await page.locator('.node-name .chip.pass').count(), 0, 'what begins it all is not called a pass');
  await shows(page.locator('.node-name [data-test=chip-differs]'), /^Passes the old rule, differs by [\d.]+ %$/);
  await shows(page.locator('[data-test=items-note]'), /begins here/);
  await counts(page.locator('[data-test=item-origin]'), 1, 'the item that begins it is marked');
  await holds(async () => assert.ok((await page.locator('.items .sized').count()) > 0, 'errors have bars'));
  await toFinding('next-finding');
  await page.locator('.node-name .chip.inherited').waitFor();
  await page.locator('[data-test=colors-precision]').click();
  const name = await toFinding('next-finding');
  await until(async () => isFinding(await colorOf('NPU', name)), 'a finding has its colour');
  assert.ok(!isFinding(await colorOf('Bench', name)), 'the golden side is not to blame');
  await holds(async () => assert.ok(Math.abs((await resting('NPU', name)).y - (await resting('Bench', name)).y) <= 1, 'both sides stand at the same height'));
  await page.locator('[data-test=colors-verdict]').click();
  await shoot('2_first_finding');
});

test('a selected node shows its items in pairs, rounded, with the verdict near the front', async () => {
  await page.goto(`${server.answer.url}#file=${encodeURIComponent((await state()).file)}&side=NPU&node=${BROKEN}`);
  await page.reload();
  await until(async () => (await state()).details === 'ready', 'the link opened the node');
  assert.equal((await state()).selection.name, BROKEN);
  await page.locator('.items tbody').first().waitFor();
  const head = await page.locator('.items thead th').allInnerTexts();
  assert.equal(head[1], 'Result');
  const weight = page.locator('.items tbody', { hasText: 'parameters.weight' });
  await counts(weight.locator('tr.NPU'), 1);
  await counts(weight.locator('tr.Bench'), 1);
  const at = head.indexOf('Norm');
  const norm = async (row, skip) => Number(await weight.locator(row).locator('th, td').nth(at - skip).getAttribute('data-full'));
  const ratio = (await norm('tr.NPU', 0)) / (await norm('tr.Bench', 2)); // item and result span both rows
  assert.ok(Math.abs(ratio - 1.25) < 1e-3, `the weight was scaled by 1.25, the table says ${ratio}`);
  const cell = weight.locator('tr.NPU').locator('th, td').nth(at);
  await holds(async () => assert.ok((await cell.innerText()).length < (await cell.getAttribute('data-full')).length, 'shown rounded'));
  await page.locator('[data-test=tab-stack]').click();
  await shows(page.locator('.stacks'), /modeling_llama\.py/);
  await page.locator('[data-test=tab-items]').click();
  await shoot('3_details');
});

test('back leads to the node before', async () => {
  const name = (await state()).selection.name;
  await page.locator('body').press(']');
  await until(async () => (await state()).selection.name !== name && (await state()).details === 'ready', 'the next op is selected');
  await page.goBack();
  await until(async () => (await state()).selection?.name === name && (await state()).details === 'ready', 'and the one before again');
});

test('keys walk the tree', async () => {
  await page.locator('canvas[data-side=NPU]').focus();
  const before = (await state()).selection.name;
  await page.keyboard.press('ArrowUp');
  await until(async () => (await state()).selection.name !== before, 'the selection moved up');
  await page.keyboard.press('ArrowDown');
  await until(async () => (await state()).selection.name === before, 'and down again');
  await page.keyboard.press('Enter');
  await until(async () => (await open('NPU')).includes(before) && (await open('Bench')).includes(before), 'Enter opens');
  const item = (await accessibleNodes()).find((node) => node.role?.value === 'treeitem' && node.name?.value.startsWith(before));
  assert.ok(item, 'screen readers are told the node');
  await page.keyboard.press('m');
  await until(async () => (await state()).selection.side === 'Bench', 'm goes to the partner');
  await page.keyboard.press('Escape');
  await until(async () => (await state()).selection === null, 'Escape clears');
});

test('search finds, walks with the keys and jumps', async () => {
  await page.keyboard.press('/');
  await page.keyboard.type('MLP.gate_proj');
  await until(async () => (await state()).search === 'ready', 'hits are there');
  const hits = page.locator('#search-hits li');
  await until(async () => (await hits.count()) > 3 && (await hits.allInnerTexts()).every((text) => /mlp\.gate_proj/i.test(text)), 'hits hold the text');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  const wanted = (await hits.nth(1).innerText()).trim();
  await page.keyboard.press('Enter');
  await until(async () => (await state()).selection?.name === wanted, 'the second hit is selected');
  await holds(async () => assert.ok((await drawn('NPU')).includes(wanted)));
  await shoot('4_search');
  await page.keyboard.press('Escape');
});

test('a count lists the nodes behind it', async () => {
  const level = 'inherited';
  const count = Number((await page.locator(`[data-test=count-${level}] b`).innerText()).replaceAll(',', ''));
  await page.locator(`[data-test=count-${level}]`).click();
  await until(async () => (await page.locator('#search-hits li').count()) === Math.min(count, 200), `all ${count} are listed`);
  await page.keyboard.press('Escape');
});

test('wheel scrolls both sides, ctrl and wheel zoom', async () => {
  await page.evaluate(() => document.activeElement.blur());
  const name = (await drawn('NPU')).at(-1);
  const before = await resting('NPU', name);
  await page.mouse.move(before.x + 40, 400);
  await page.mouse.wheel(0, 60);
  await until(async () => (await rect('NPU', name)).y !== before.y, 'the target moved');
  await holds(async () => assert.ok(Math.abs((await resting('NPU', name)).y - (await resting('Bench', name)).y) <= 1, 'the golden side followed'));
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  await until(async () => (await rect('NPU', name)).height > before.height * 1.2, 'blocks grew');
  await holds(async () => assert.equal((await rect('NPU', name)).height, (await rect('Bench', name)).height));
  await page.getByRole('button', { name: 'Zoom 100 %' }).click();
});

test('theme and language change, and stay', async () => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.locator('[data-test=theme]').click();
  await until(async () => (await state()).theme === 'dark' && (await ground()) !== light, 'the page is dark');
  await page.locator('[data-test=language]').click();
  await until(async () => (await page.locator('.summary-bar').innerText()).includes('同步展开'), 'Chinese');
  const name = await toFinding('next-finding');
  await until(async () => isFinding(await colorOf('NPU', name)), 'the colour holds in the dark');
  await shoot('5_dark_zh');
  await page.reload();
  await until(async () => (await state()).details === 'ready', 'the link brought everything back');
  await holds(async () => assert.deepEqual([(await state()).theme, (await state()).language, (await state()).selection.name], ['dark', 'zh', name]));
});

test('a step without the file says so instead of hanging', async () => {
  const other = await openPage(chrome);
  await other.page.goto(`${server.answer.url}#file=missing.vis.db`);
  await other.page.getByRole('alert').waitFor();
  await shows(other.page.getByRole('alert'), /missing\.vis\.db/);
  assert.deepEqual(other.faults.filter((fault) => !/404/.test(fault)), []);
});

test('nothing was complained of, and no other host was asked', () => {
  assert.deepEqual(faults, []);
});
