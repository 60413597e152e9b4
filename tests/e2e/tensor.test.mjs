// The values behind the figures: histograms, pictures and worst elements of a tensor dump, for both sides.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { msprobe, TENSOR_NODE, writeTensors } from './data.mjs';
import { makeGraph, renameOp } from './large_data.mjs';
import { browser, counts, holds, openPage, OUT, serve, shows } from './support.mjs';

const EXPECTED_FAULT = /status of 4\d\d/;

let directory;
let chrome;
let server;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  writeTensors(directory);
  msprobe('graph_visualize', '-tp', join(directory, 'target'), '-gp', join(directory, 'golden'), '-o', join(directory, 'graph'));
  server = await serve(directory);
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function visit(options = {}) {
  const file = `graph/${readdirSync(join(directory, 'graph')).find((name) => name.endsWith('.vis.db'))}`;
  const opened = await openPage(chrome, { viewport: { width: 1440, height: 900 }, ...options });
  const { page, faults } = opened;
  await page.goto(`${server.answer.url}#${new URLSearchParams({ file, side: 'NPU', node: TENSOR_NODE })}`);
  await page.locator('[data-test=tab-tensor]').click();
  await page.locator('[data-test=histogram]').first().waitFor();
  const leave = async () => {
    await page.context().close();
    assert.deepEqual(faults.filter((fault) => !EXPECTED_FAULT.test(fault)), []);
  };
  return { page, leave };
}

test('an item shows both sides, their difference and its worst elements', async () => {
  const { page, leave } = await visit();
  await page.locator('[data-test=tensor-item]').selectOption({ label: 'output.0' });
  await page.locator('[data-test=worst]').waitFor();
  await holds(async () => {
    const worst = await page.locator('[data-test=worst] tbody tr').allInnerTexts();
    assert.match(worst[0], /\[0, 0, 7\]\s+NaN\s/);
    assert.match(worst[1], /^\[1, 2, 5\]\s.*\s9$/);
  });
  await counts(page.locator('[data-test=heat]'), 3);
  await counts(page.locator('[data-test=histogram]'), 2);
  await shows(page.locator('[data-test=scatter-fit]'), /^slope 1, offset 0\.00\d+, r 0\.99\d$/);
  assert.ok((await page.locator('.scatter-points').getAttribute('d')).split('M').length > 300, 'points of both sides');
  await shows(page.locator('.tensor-facts'), /1 NaN[\s\S]*17,999 of 19,200 elements are equal[\s\S]*NaN or infinite on one side only: 1\./);
  await page.locator('[data-test=tensor-slice]').fill('1');
  await page.keyboard.press('Enter');
  await page.locator('.tensor-head code', { hasText: '[1, :, :]' }).waitFor();
  // The arrow keys read the picture, the first one its corner: the spoilt element stands in row 2, column 5.
  const picture = page.locator('[data-test=heat]').nth(2);
  await picture.focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
  await shows(page.locator('.heat-read').nth(2), /rows 2, columns 5–6: 9$/);
  await page.evaluate(() => document.querySelector('.tensor').scrollIntoView());
  await page.screenshot({ path: join(OUT, 'tensor.png') });
  await leave();
});

test('in Chinese and dark; it opens on what is off, an input that agrees has no worst elements', async () => {
  const { page, leave } = await visit({ locale: 'zh-CN', colorScheme: 'dark' });
  await page.locator('[data-test=worst]').waitFor();
  await holds(async () => assert.equal(await page.locator('[data-test=tensor-item] option:checked').innerText(), 'output.0'));
  await page.locator('[data-test=tensor-item]').selectOption({ label: 'input.0' });
  await page.locator('[data-test=worst]').waitFor({ state: 'detached' });
  await shows(page.locator('.tensor-facts'), /19,200 个元素中有 19,200 个相等/);
  assert.equal(await page.locator('[data-test=worst]').count(), 0);
  await page.locator('[data-test=tensor-item]').selectOption({ label: 'output.0' });
  await page.locator('[data-test=worst]').waitFor();
  await page.screenshot({ path: join(OUT, 'tensor_zh.png') });
  await leave();
});

test('two nodes of other names are matched by hand, and compared by their tensors', async () => {
  const OTHER = TENSOR_NODE.replace('linear', 'matmul');
  renameOp(join(directory, 'golden'), join(directory, 'renamed'), TENSOR_NODE, OTHER);
  const file = `by_hand/${makeGraph(join(directory, 'by_hand'), join(directory, 'target'), join(directory, 'renamed'))}`;
  const { page, faults } = await openPage(chrome);
  await page.goto(`${server.answer.url}#${new URLSearchParams({ file, side: 'NPU', node: TENSOR_NODE })}`);
  const selected = (name) => page.waitForFunction((n) => window.__msprobe?.state().selection?.name === n && window.__msprobe.state().details === 'ready', name);
  await selected(TENSOR_NODE);
  assert.doesNotMatch(await page.locator('.items thead').innerText(), /Cosine/);
  await page.keyboard.press('c');
  await page.keyboard.press('/');
  await page.locator('.search-bar [role=radio]').nth(1).click();
  await page.locator('#search').fill(OTHER);
  await page.locator(`.search-list li[title="${OTHER}"]`).click();
  await selected(OTHER);
  await page.locator('[data-test=match-act]').click();
  await page.waitForFunction(() => window.__msprobe.matching().message?.kind === 'made' && !window.__msprobe.matching().busy);
  await page.locator('.items thead', { hasText: 'Cosine' }).waitFor();
  await shows(page.locator('.items'), /Error[^\n]*[\s\S]*NaN or infinities stand at other places/);
  await holds(async () => assert.equal(await page.locator('[data-test=count-error] b').innerText(), '1'));
  await page.screenshot({ path: join(OUT, 'tensor_matched.png') });
  await page.context().close();
  assert.deepEqual(faults, []);
});

test('a tensor that was deleted is told, and the page goes on', async () => {
  rmSync(join(directory, 'golden/step0/rank0/dump_tensor_data', `${TENSOR_NODE}.output.0.npy`));
  const { page, leave } = await visit();
  await page.locator('[data-test=tensor-item]').selectOption({ label: 'output.0' });
  await page.locator('.tensor-facts', { hasText: 'not there any more' }).waitFor();
  await counts(page.locator('[data-test=heat]'), 1);
  rmSync(join(directory, 'target/step0/rank0/dump_tensor_data', `${TENSOR_NODE}.output.0.npy`));
  await page.locator('[data-test=tensor-slice]').fill('1');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await shows(page.getByRole('alert'), /not there any more/);
  await page.locator('[data-test=tab-items]').click();
  await page.locator('.items').waitFor();
  await leave();
});
