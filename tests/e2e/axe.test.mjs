// Every main view in both themes and languages: accessible by the rules of WCAG 2.1 A and AA, looking as it did,
// and in Chinese without a sentence in English.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { RULES, violations } from './accessible.mjs';
import { englishSentences } from './language.mjs';
import { checkPicture, difference, readGolden } from './pictures.mjs';
import { browser, openPage, OUT, serve } from './support.mjs';
import { walkViews, writeViews } from './views.mjs';

// Of RULES, the rules that colours or words decide; the others judge the same elements in every theme and language.
const RULES_OF_LOOK = {
  type: 'rule',
  values: ['color-contrast', 'link-in-text-block', 'label-content-name-mismatch', 'button-name', 'link-name', 'label', 'select-name', 'input-button-name', 'svg-img-alt', 'role-img-alt', 'aria-command-name', 'aria-dialog-name', 'aria-input-field-name', 'aria-progressbar-name', 'aria-toggle-field-name', 'aria-tooltip-name', 'aria-treeitem-name', 'document-title', 'html-has-lang', 'html-lang-valid', 'valid-lang'],
};
const EXPECTED_FAULT = /status of 4\d\d/; // the browser repeats each answer that is an error

// Contrast depends on the theme and names on the language, so two visits see all of it; MSPROBE_AXE=all makes four, with all rules.
const VISITS = [
  ['light_en', { colorScheme: 'light', locale: 'en-US' }],
  ['dark_zh', { colorScheme: 'dark', locale: 'zh-CN' }],
  ['dark_en', { colorScheme: 'dark', locale: 'en-US' }],
  ['light_zh', { colorScheme: 'light', locale: 'zh-CN' }],
].slice(0, process.env.MSPROBE_AXE === 'all' ? 4 : 2);
const PICTURES = new Set(['overview_light_en', 'overview_dark_zh', 'details_light_en', 'details_dark_zh', 'flow_light_en', 'filter_dark_zh', 'matching_light_en', 'tensor_dark_zh', 'trends_light_en', 'trends_dark_zh', 'convert_light_en', 'report_light_en']);

let directory;
let files;
let chrome;
let server;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  files = writeViews(directory);
  server = await serve(files.served);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** What breaks a rule, in words. */
/** Paths and times are others in each run, and longer ones would move what is below them. */
function hidePaths() {
  for (const place of document.querySelectorAll('.files-head p, .made, .sides dd')) place.textContent = '…';
  for (const place of document.querySelectorAll('p')) if (place.textContent.includes('compare_result_')) place.textContent = '…';
}

for (const [name, options] of VISITS) {
  test(`${name}: every view is accessible and looks as it did`, async () => {
    const { page, faults } = await openPage(chrome, { viewport: { width: 1200, height: 760 }, reducedMotion: 'reduce', ...options });
    const wrong = [];
    const rules = name === VISITS[0][0] || process.env.MSPROBE_AXE === 'all' ? RULES : RULES_OF_LOOK;
    await walkViews(page, server.answer.url, files, async (view) => {
      wrong.push(...(await violations(page, rules)).map((text) => `${view}: ${text}`));
      if (name.endsWith('_zh')) wrong.push(...(await page.evaluate(englishSentences)).map((text) => `${view}: still English: ${text}`));
      if (PICTURES.has(`${view}_${name}`)) {
        await page.evaluate(hidePaths);
        wrong.push(...[await checkPicture(page, `${view}_${name}`)].filter(Boolean));
      }
      if (process.env.MSPROBE_AXE === 'all') await page.screenshot({ path: join(OUT, `view_${view}_${name}.png`) });
    });
    await page.context().close();
    assert.deepEqual(wrong, []);
    assert.deepEqual(faults.filter((fault) => !EXPECTED_FAULT.test(fault)), []);
  });
}

test('pictures: letters a pixel further pass, a label or a colour that is gone does not', () => {
  const golden = readGolden('details_light_en');
  const { width, data: before } = golden;
  const changed = (change) => {
    const picture = readGolden('details_light_en');
    for (let at = 4; at < before.length; at += 4) picture.data.set(change([...before.subarray(at, at + 3)], (at / 4) % width, Math.floor(at / 4 / width), at), at);
    return difference(picture, golden);
  };
  const blank = (left, top, right, bottom) => changed((color, x, y) => (x >= left && x < right && y >= top && y < bottom ? [255, 255, 255] : color));
  assert.equal(changed((color) => color), null);
  assert.equal(changed((color, x, y, at) => color.map((value, i) => 0.5 * value + 0.5 * before[at - 4 + i])), null);
  assert.match(blank(76, 306, 106, 325), /% of those around/, 'the label of a verdict');
  assert.match(blank(0, 260, 600, 380), /% of the pixels differ/, 'the table');
  assert.match(changed(([r, g, b]) => (r - b > 120 ? [199, 199, 199] : [r, g, b])), /% of the pixels differ/, 'the colour of errors');
});
