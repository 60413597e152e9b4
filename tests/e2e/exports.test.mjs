// Every kind of export is drawn when it opens: within two seconds on an idle machine, and never only at a second look of a timer.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { LOOKS } from './accessible.mjs';
import { msprobe, writeTrends } from './data.mjs';
import { writeRun } from './run_data.mjs';
import { browser, openPage, OUT, ROOT } from './support.mjs';

const WORK = mkdtempSync(join(tmpdir(), 'msprobe-exports-'));
const RANKS = join(ROOT, 'tests/golden/graph/ranks');
const at = (...parts) => join(WORK, ...parts);
// kind -> what is exported, and what is there once it is drawn
const KINDS = {
  comparison: { make: () => graph('compared', '-tp', join(RANKS, 'target'), '-gp', join(RANKS, 'golden')), drawn: '[data-test=verdict-card]' },
  'single run': { make: () => graph('single', '-tp', join(RANKS, 'target')), drawn: '.overview' },
  trends: { make: () => at('served/broken/dump_data.trend.db'), drawn: '[data-test=trend-map]' },
  'monitored run': { make: () => at('run'), drawn: '[data-test=run-map]', painted: true },
  'two monitored runs': { make: () => at('runs'), drawn: '.file-table' },
};
let chrome;

function graph(name, ...args) {
  mkdirSync(at(name));
  msprobe('graph_visualize', ...args, '-o', at(name));
  return at(name, readdirSync(at(name)).find((file) => file.endsWith('.vis.db')));
}

before(async () => {
  writeTrends(at('dumps'), at('served'));
  writeRun(at('run'), { ranks: 2, steps: 300, nan: true });
  mkdirSync(at('runs'));
  for (const name of ['a', 'b']) cpSync(at('run'), at('runs', name), { recursive: true });
  for (const [kind, { make }] of Object.entries(KINDS)) msprobe('export', make(), '-o', at(`${kind}.html`));
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  rmSync(WORK, { recursive: true, force: true });
});

for (const [kind, { drawn, painted }] of Object.entries(KINDS)) {
  test(`an export of ${kind} is drawn at once`, async () => {
    for (const [look, options] of LOOKS) {
      const { page, faults } = await openPage(chrome, options);
      // Timers of a second or more never fire: what waits for one is never drawn.
      await page.addInitScript(() => {
        const set = window.setTimeout;
        window.setTimeout = (what, wait, ...rest) => (wait >= 1000 ? 0 : set(what, wait, ...rest));
      });
      await page.goto(pathToFileURL(at(`${kind}.html`)).href);
      await page.locator(drawn).first().waitFor();
      if (painted) await page.waitForFunction(() => document.body.dataset.runPainted);
      await page.screenshot({ path: join(OUT, `export_${kind.replaceAll(' ', '_')}_${look}.png`) });
      assert.deepEqual(faults, []);
      await page.context().close();
    }
  });
}
