// The values behind the figures: histograms, pictures and worst elements of a tensor dump, for both sides.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, findCommand, openPage, OUT, serve } from './support.mjs';

const NODE = 'Functional.linear.0.forward';
const ITEMS = ['input.0', 'output.0'];
const SHAPE = [2, 80, 120]; // larger than the picture
const EXPECTED_FAULT = /status of 4\d\d/;

let directory;
let chrome;
let server;

function npy(values, shape) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  const head = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + '\n';
  const size = Buffer.alloc(2);
  size.writeUInt16LE(head.length);
  return Buffer.concat([Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]), size, Buffer.from(head), Buffer.from(new Float32Array(values).buffer)]);
}

/** A tensor dump of one op; `spoil` changes its output. */
function dump(name, spoil) {
  const rank = join(directory, name, 'step0/rank0');
  mkdirSync(join(rank, 'dump_tensor_data'), { recursive: true });
  const count = SHAPE.reduce((a, b) => a * b);
  const record = (item, values) => {
    const file = `${NODE}.${item}.npy`;
    writeFileSync(join(rank, 'dump_tensor_data', file), npy(values, SHAPE));
    const finite = values.filter(Number.isFinite);
    const norm = Math.sqrt(finite.reduce((sum, v) => sum + v * v, 0));
    return { type: 'torch.Tensor', dtype: 'torch.float32', shape: SHAPE, Max: Math.max(...finite), Min: Math.min(...finite), Mean: finite.reduce((a, b) => a + b) / count, Norm: norm, requires_grad: false, data_name: file };
  };
  const wave = Array.from({ length: count }, (_, i) => Math.sin(i / 37) * Math.exp(-(((i % 120) - 60) ** 2) / 900));
  const output = wave.map((v, i) => 2 * v + spoil(i));
  const data = { [NODE]: { input_args: [record(ITEMS[0], wave)], input_kwargs: {}, output: [record(ITEMS[1], output)] } };
  const head = { task: 'tensor', level: 'mix', framework: 'pytorch', dump_data_dir: join(realpathSync(rank), 'dump_tensor_data') };
  writeFileSync(join(rank, 'dump.json'), JSON.stringify({ ...head, data }));
  writeFileSync(join(rank, 'construct.json'), JSON.stringify({ [NODE]: null }));
  writeFileSync(join(rank, 'stack.json'), '{}');
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'msprobe-e2e-'));
  // One element of the second slice is far off, a band of the first a little, and one is no number.
  dump('target', (i) => (i === 80 * 120 + 2 * 120 + 5 ? 9 : i === 7 ? Number.NaN : i < 1200 ? 0.05 : 0));
  dump('golden', () => 0);
  execFileSync(findCommand(), ['graph_visualize', '-tp', join(directory, 'target'), '-gp', join(directory, 'golden'), '-o', join(directory, 'graph')], { stdio: 'ignore' });
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
  await page.goto(`${server.answer.url}#${new URLSearchParams({ file, side: 'NPU', node: NODE })}`);
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
  const worst = await page.locator('[data-test=worst] tbody tr').allInnerTexts();
  assert.match(worst[0], /\[0, 0, 7\]\s+NaN\s/);
  assert.match(worst[1], /^\[1, 2, 5\]\s.*\s9$/);
  assert.equal(await page.locator('[data-test=heat]').count(), 3);
  assert.equal(await page.locator('[data-test=histogram]').count(), 2);
  assert.match(await page.locator('.tensor-facts').innerText(), /1 NaN[\s\S]*17,999 of 19,200 elements are equal[\s\S]*NaN or infinite on one side only: 1\./);
  await page.locator('[data-test=tensor-slice]').fill('1');
  await page.keyboard.press('Enter');
  await page.locator('.tensor-head code', { hasText: '[1, :, :]' }).waitFor();
  // The arrow keys read the picture, the first one its corner: the spoilt element stands in row 2, column 5.
  const picture = page.locator('[data-test=heat]').nth(2);
  await picture.focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
  const read = await page.locator('.heat-read').nth(2).innerText();
  assert.match(read, /rows 2, columns 5–6: 9$/);
  await page.evaluate(() => document.querySelector('.tensor').scrollIntoView());
  await page.screenshot({ path: join(OUT, 'tensor.png') });
  await leave();
});

test('in Chinese and dark; an input that agrees has no worst elements', async () => {
  const { page, leave } = await visit({ locale: 'zh-CN', colorScheme: 'dark' });
  assert.match(await page.locator('.tensor-facts').innerText(), /19,200 个元素中有 19,200 个相等/);
  assert.equal(await page.locator('[data-test=worst]').count(), 0);
  await page.locator('[data-test=tensor-item]').selectOption({ label: 'output.0' });
  await page.locator('[data-test=worst]').waitFor();
  await page.screenshot({ path: join(OUT, 'tensor_zh.png') });
  await leave();
});

test('a tensor that was deleted is told, and the page goes on', async () => {
  rmSync(join(directory, 'golden/step0/rank0/dump_tensor_data', `${NODE}.output.0.npy`));
  const { page, leave } = await visit();
  await page.locator('[data-test=tensor-item]').selectOption({ label: 'output.0' });
  await page.locator('.tensor-facts', { hasText: 'not there any more' }).waitFor();
  assert.equal(await page.locator('[data-test=heat]').count(), 1);
  rmSync(join(directory, 'target/step0/rank0/dump_tensor_data', `${NODE}.output.0.npy`));
  await page.locator('[data-test=tensor-slice]').fill('1');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  assert.match(await page.getByRole('alert').innerText(), /not there any more/);
  await page.locator('[data-test=tab-items]').click();
  await page.locator('.items').waitFor();
  await leave();
});
