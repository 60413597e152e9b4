// The main job with keys alone: no pointer, no script, and one sees where one is.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BROKEN, msprobe, writeDecoder } from './data.mjs';
import { browser, counts, holds, listed, openPage, serve, until as waitUntil } from './support.mjs';

let directory;
let chrome;
let server;
let page;
let faults;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  writeDecoder(join(directory, 'dumps'));
  for (const name of ['one', 'two']) {
    mkdirSync(join(directory, name));
    msprobe('graph_visualize', '-tp', join(directory, 'dumps/target'), '-gp', join(directory, 'dumps/golden'), '-o', join(directory, name), '-oc');
  }
  server = await serve(directory);
  chrome = await browser();
  ({ page, faults } = await openPage(chrome));
  await page.goto(server.answer.url);
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const state = () => page.evaluate(() => window.__msprobe.state());
const press = (key) => page.keyboard.press(key);

const until = (check, what) => waitUntil(check, what, state);

/** Tab by Tab to what the selector names; what is focused on the way must be seen to be. */
async function tabTo(selector, back = false) {
  for (let i = 0; i < 120; i++) {
    await press(back ? 'Shift+Tab' : 'Tab');
    const [there, seen, what] = await page.evaluate((wanted) => {
      const at = document.activeElement;
      const shown = (element) => {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
        return (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none';
      };
      return [at.matches(wanted), at === document.body || shown(at) || (at.nextElementSibling !== null && shown(at.nextElementSibling)), at.outerHTML.slice(0, 120)];
    }, selector);
    assert.ok(seen, `no sign of the focus: ${what}`);
    if (there) return;
  }
  assert.fail(`the Tab key does not lead to ${selector}`);
}

const focused = (selector) => page.evaluate((wanted) => document.activeElement.matches(wanted), selector);
const selected = (name) => until(async () => (await state()).selection?.name === name && (await state()).details === 'ready', `${name} is selected`);

test('from the list of files to the first finding and its figures', async () => {
  await page.locator('.file-link').first().waitFor();
  await tabTo('.file-link');
  await press('Enter');
  await until(async () => (await state()).graph === 'ready', 'the graph opens');
  await tabTo('[data-test=first-finding]');
  await press('Enter');
  await selected(BROKEN);
  await tabTo('[data-test=tab-items]');
  await tabTo('[data-test=sort-Norm]');
  await press('Enter');
  await counts(page.locator('th[aria-sort=descending]'), 1);
});

test('the arrow keys change the tab and the side that is searched', async () => {
  await tabTo('[role=tab]', true);
  await holds(async () => assert.ok(await focused('[data-test=tab-items]'), 'the chosen tab, not each of them'));
  await press('ArrowRight');
  await holds(async () => assert.ok(await focused('[data-test=tab-flow]')));
  await page.locator('[data-test=flow]').waitFor();
  await press('ArrowLeft');
  await press('ArrowLeft');
  await page.locator('[role=tabpanel] [data-test=overview]').waitFor();
  await press('/');
  await page.keyboard.type('up_proj');
  await tabTo('.search-bar [role=radio]');
  await press('ArrowRight');
  await until(async () => (await page.locator('.search-bar [role=radio]').nth(1).getAttribute('aria-checked')) === 'true', 'the golden side');
  await holds(async () => assert.ok(await focused('.search-bar [role=radio][aria-checked=true]')));
  await press('Escape');
});

test('a filtered list, the tree, its menu, and the way back', async () => {
  await page.evaluate(() => document.activeElement.blur());
  await press('/');
  await press('Delete'); // what was looked for before is selected
  await tabTo('.search-bar [role=radio]');
  await press('ArrowLeft');
  const listed = (...levels) => async () => {
    const seen = await page.locator('#search-hits .dot').evaluateAll((dots) => dots.map((dot) => dot.classList[1]));
    return seen.length > 0 && levels.every((level) => seen.includes(level)) && seen.every((level) => levels.includes(level));
  };
  await tabTo('[data-test=search-level-inherited]');
  await press('Space');
  await until(listed('inherited'), 'those that inherit');
  await tabTo('[data-test=search-level-unmatched]');
  await press('Space');
  await until(listed('inherited', 'unmatched'), 'what has no partner, too');
  await press('Space');
  await until(listed('inherited'), 'those that inherit, again');
  await tabTo('#search', true);
  await press('Control+A');
  await page.keyboard.type('layers.2');
  await listed(page);
  await until(async () => (await page.locator('#search-hits li').allInnerTexts()).every((text) => text.includes('layers.2')), 'of layer 2');
  assert.ok((await page.locator('#search-hits li').count()) > 0);
  await press('ArrowDown');
  await press('Enter');
  await until(() => focused('canvas[data-side=NPU]'), 'the keys are in the graph');
  const at = (await state()).selection.name;
  await press('ArrowUp');
  await until(async () => (await state()).selection.name !== at, 'up in the tree');
  await press('Shift+F10');
  await page.locator('.node-menu').waitFor();
  await holds(async () => assert.ok(await focused('.node-menu [role=menuitem]')));
  await press('Escape');
  await holds(async () => assert.ok(await focused('canvas[data-side=NPU]'), 'the focus comes back'));
});

test('the other rank, help, theme and language', async () => {
  await tabTo('.chooser select:not(:disabled)', true);
  await press('ArrowDown');
  await until(async () => (await state()).rank === 1 && (await state()).graph === 'ready', 'rank 1 is shown');
  await tabTo('[data-test=theme]');
  await press('Enter');
  await until(async () => (await state()).theme === 'dark', 'dark');
  await tabTo('[data-test=language]');
  await press('Enter');
  await until(async () => (await state()).language === 'zh', 'Chinese');
  await press('?');
  await page.locator('dialog.help').waitFor();
  await holds(async () => assert.ok(await focused('dialog.help *'), 'the focus is in the sheet'));
  await press('Escape');
  await page.locator('dialog.help').waitFor({ state: 'detached' });
  await tabTo('.brand', true);
  await press('Enter');
  await page.locator('.file-link').first().waitFor();
  assert.deepEqual(faults, []);
});
