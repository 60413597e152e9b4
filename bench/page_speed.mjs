// Measures the page in Chromium: bench/page_speed.mjs FILE.vis.db RUNS [TENSORBOARD LOGDIR], for bench/page.py. Prints one
// JSON object. Times are from the user's act to the frame that shows its result, in milliseconds.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { spawn } from 'node:child_process';
import { browser, findCommand, freePort, openPage } from '../tests/e2e/support.mjs';

const WIDE = 'Module.wide.Wide.forward.0';
const FRAMES = 120;
const LIMIT_MS = 60_000; // a step that takes longer is null in the result
const [file, runs, tensorboard, logdir] = process.argv.slice(2);

/** A program and its process number, which start() of the tests does not tell. */
async function run(command, args, wanted) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const answer = await new Promise((done, fail) => {
    const listen = (data) => {
      said += data;
      const found = wanted(said);
      if (found) done(found);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('exit', (code) => fail(new Error(`${command} ended with ${code}: ${said}`)));
  });
  child.removeAllListeners('exit');
  const ended = new Promise((over) => child.on('exit', over));
  return { answer, pid: child.pid, stop: () => (child.kill(), ended) };
}

const serverOf = () => run(findCommand(), ['serve', file, '--port', '0', '--json'], (text) => (text.includes('\n') ? JSON.parse(text.split('\n')[0]) : null));
const memory = (pid, key) => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

/** In the page: helpers that watch it frame by frame. */
function install(limit) {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  window.bench = {
    frame,
    /** The time of the first frame behind the one in which `check` holds; null when it does not within the limit. */
    async shown(check) {
      for (const end = performance.now() + limit; performance.now() < end; ) {
        await frame();
        if (check()) return frame();
      }
      return null;
    },
    /** Until nothing opens by itself any more. */
    async rest(limit) {
      const drawn = () => JSON.stringify(['NPU', 'Bench'].map((side) => [window.__msprobe.drawn(side), window.__msprobe.map(side)]));
      let [before, since] = [drawn(), performance.now()];
      for (const end = since + limit; performance.now() < end && performance.now() - since < 800; ) {
        await frame();
        if (drawn() !== before) [before, since] = [drawn(), performance.now()];
      }
    },
    /** The next press, click or key stamps its time. */
    act(kind) {
      window.bench.acted = new Promise((done) => window.addEventListener(kind, (event) => done(event.timeStamp), { once: true, capture: true }));
    },
    async since(check) {
      const from = await Promise.race([window.bench.acted, new Promise((done) => setTimeout(done, limit, null))]);
      const at = from === null ? null : await window.bench.shown(check);
      return at === null ? null : at - from;
    },
    /** Frames one after the other while `step` moves the graph; their lengths. */
    async frames(count, step) {
      const lengths = [];
      let before = await frame();
      for (let i = 0; i < count; i++) {
        step(i);
        const now = await frame();
        lengths.push(now - before);
        before = now;
      }
      return lengths;
    },
  };
  window.bench.firstPaint = window.bench.shown(() => window.__msprobe?.drawn('NPU').length > 1 && window.__msprobe.drawn('Bench').length > 1);
}

async function visit(chrome, server) {
  const { page, faults } = await openPage(chrome);
  await page.addInitScript(install, LIMIT_MS);
  await page.goto(server.answer.url);
  const first = await page.evaluate(() => window.bench.firstPaint);
  if (first === null) throw new Error(`no graph on the page in ${LIMIT_MS / 1000} s: is the file whole?`);
  const quiet = async () => {
    await page.waitForFunction(() => window.__msprobe.state().findings === 'ready', undefined, { timeout: LIMIT_MS });
    await page.evaluate((limit) => window.bench.rest(limit), LIMIT_MS);
    // The page opened the way to the origin.
    await page.getByRole('button', { name: 'Collapse all' }).click();
    await page.evaluate((limit) => window.bench.rest(limit), LIMIT_MS);
  };
  return { page, faults, first, quiet };
}

/** Clicks with the mouse and measures until the page is as wanted; `wanted` is source text of a condition. */
async function clicked(page, x, y, wanted) {
  await page.evaluate(() => window.bench.act('pointerup'));
  const measured = page.evaluate((text) => window.bench.since(new Function(`return ${text}`)), wanted);
  await page.mouse.click(x, y);
  return measured;
}

async function toWide(page) {
  await page.evaluate(() => {
    const canvas = document.querySelector('canvas[data-side=NPU]');
    canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: 1e9, bubbles: true, cancelable: true }));
  });
  await page.evaluate(() => window.bench.frame());
  return page.evaluate((name) => window.__msprobe.rect('NPU', name), WIDE);
}

async function expand(page) {
  const { x, y, height } = await toWide(page);
  const wanted = `['NPU', 'Bench'].every((side) => window.__msprobe.open(side).includes('${WIDE}'))`;
  return clicked(page, x + 15, y + height / 2, wanted);
}

const wheel = (options) => `(i) => document.querySelector('canvas[data-side=NPU]').dispatchEvent(
  new WheelEvent('wheel', { bubbles: true, cancelable: true, clientX: 300, clientY: 400, ...(${options})(i) }))`;
const frames = (page, options) => page.evaluate(([count, text]) => window.bench.frames(count, eval(text)), [FRAMES, wheel(options)]);

/** Where an op can be clicked; null when its place is not in view: of the last one drawn often only the edge is. */
function clickable(name) {
  const rect = window.__msprobe.rect('NPU', name);
  if (rect === null) return null;
  const [x, y] = [rect.x + 60, rect.y + rect.height / 2];
  return document.elementFromPoint(x, y)?.dataset.side === 'NPU' ? { x, y } : null;
}

async function details(page) {
  await page.locator('.pane-head.NPU .zoom .text-button').click(); // zooming left few ops in view
  await page.waitForFunction(() => window.__msprobe.zoom('NPU') === 1);
  const names = await page.evaluate(() => window.__msprobe.drawn('NPU').filter((name) => name.startsWith('Functional.')));
  const times = [];
  for (const name of names.slice(3, 13)) {
    const place = await page.evaluate(clickable, name);
    if (place === null) continue;
    const wanted = `window.__msprobe.state().details === 'ready' && window.__msprobe.state().selection?.name === '${name}'`;
    times.push(await clicked(page, place.x, place.y, wanted));
  }
  if (times.length === 0) throw new Error('no op of the wide module is in view');
  return times;
}

/** What the server needs, as the page sees it; and from the key to the list, with the page's own wait for further keys. */
async function searches(page, api) {
  const asked = [];
  for (const query of ['q=down_proj', 'q=layers.77.mlp', 'q=nothing_like_it', 'q=forward', 'level=error', 'level=unmatched', 'level=error&q=proj']) {
    asked.push(
      await page.evaluate(async ([address, token, limit]) => {
        const start = performance.now();
        await (await fetch(address, { headers: { 'X-Msprobe-Token': token }, signal: AbortSignal.timeout(limit) })).json();
        return performance.now() - start;
      }, [`${api.base}&${query}`, api.token, LIMIT_MS]),
    );
  }
  const typed = [];
  await page.locator('#search').click();
  for (const text of ['down_proj', 'layers.77.mlp', 'wide_op.99']) {
    await page.locator('#search').fill('');
    await page.evaluate(() => window.bench.frame());
    await page.evaluate(() => window.bench.act('input'));
    const measured = page.evaluate((t) => window.bench.since(() => window.__msprobe.state().search === 'ready' && document.querySelector('#hit-0')?.title.includes(t)), text);
    await page.locator('#search').fill(text);
    typed.push(await measured);
  }
  return { asked, typed };
}

async function ours() {
  const out = { first: [], warm: [], expand: [], again: [], pan: [], zoom: [], details: [], search: [], typed: [], rss_mb: [], peak_mb: [], faults: [] };
  const chrome = await browser();
  for (let i = 0; i < Number(runs); i++) {
    const server = await serverOf(); // afresh: nothing of the file is in its memory
    const cold = await visit(chrome, server);
    out.first.push(cold.first);
    await cold.quiet();
    const { page } = cold;
    out.expand.push(await expand(page));
    out.pan.push(...(await frames(page, '(i) => ({ deltaY: i % 2 ? 60 : -97 })')));
    out.pan.push(...(await frames(page, '() => ({ deltaY: 173 })')));
    out.zoom.push(...(await frames(page, '(i) => ({ ctrlKey: true, deltaY: i < 60 ? 12 : -12 })')));
    await page.evaluate(() => window.__msprobe.rect('NPU', 'DefaultModel'));
    out.details.push(...(await details(page)));
    const { port, token } = server.answer;
    const base = `http://127.0.0.1:${port}/api/search?file=${basename(file)}&step=0&rank=0&side=NPU`;
    const { asked, typed } = await searches(page, { base, token });
    out.search.push(...asked);
    out.typed.push(...typed);
    await page.context().close();
    const warm = await visit(chrome, server);
    out.warm.push(warm.first);
    await warm.quiet();
    out.again.push(await expand(warm.page));
    await warm.page.context().close();
    out.rss_mb.push(memory(server.pid, 'VmRSS'));
    out.peak_mb.push(memory(server.pid, 'VmHWM'));
    out.faults.push(...cold.faults, ...warm.faults);
    await server.stop();
  }
  await chrome.close();
  return out;
}

// --- the earlier plugin

const ROOT = 'Module.model.';

/** Milliseconds since `start`, or null when the wait ran into its limit. */
async function inTime(wait, start) {
  try {
    await wait;
  } catch (error) {
    if (error.name !== 'TimeoutError') throw error;
    return null;
  }
  return performance.now() - start;
}

async function earlier() {
  const port = await freePort();
  const server = await run(tensorboard, ['--logdir', logdir, '--host', '127.0.0.1', '--port', String(port)], (text) => /TensorBoard .* at http/.test(text));
  const base = `http://127.0.0.1:${port}`;
  const name = readdirSync(join(logdir, 'run')).find((entry) => entry.endsWith('.vis.db'));
  const chrome = await browser();
  const out = { first: [], details: [], expand: [], search: [] };
  for (let i = 0; i < Math.min(3, Number(runs)); i++) {
    const { page } = await openPage(chrome);
    const start = performance.now();
    await page.goto(`${base}/#graph_ascend`);
    out.first.push(await inTime(page.frameLocator('iframe').first().locator('svg text').filter({ hasText: ROOT }).first().waitFor({ timeout: LIMIT_MS }), start));
    const frame = page.frames().find((one) => one !== page.mainFrame());
    const ask = (route, body) =>
      frame.evaluate(async ([address, content, limit]) => {
        const begin = performance.now();
        const signal = AbortSignal.timeout(limit);
        try {
          const reply = await fetch(address, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(content), signal });
          await reply.json();
        } catch (error) {
          if (!signal.aborted) throw error;
          return null;
        }
        return performance.now() - begin;
      }, [`${base}/data/plugin/graph_ascend/${route}`, { metaData: { run: 'run', tag: name.replace(/\.vis\.db$/, ''), type: 'db', lang: 'en', microStep: -1, step: 0, rank: 0 }, ...body }, LIMIT_MS]);
    out.expand.push(await ask('changeNodeExpandState', { nodeInfo: { nodeName: WIDE, nodeType: 'NPU' } }));
    await ask('changeNodeExpandState', { nodeInfo: { nodeName: WIDE, nodeType: 'NPU' } }); // closes it again
    for (let k = 0; k < 5; k++) out.details.push(await ask('getNodeInfo', { nodeInfo: { nodeName: `Functional.wide_op.${k * 100}.forward`, nodeType: 'NPU' } }));
    out.search.push(await ask('screen', { type: 'precision', values: ['error'] }));
    await page.context().close();
  }
  out.peak_mb = memory(server.pid, 'VmHWM');
  await chrome.close();
  await server.stop();
  return out;
}

console.log(JSON.stringify({ ours: await ours(), ...(tensorboard ? { earlier: await earlier() } : {}) }));
