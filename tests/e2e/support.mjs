// What both browser tests share: where things are, the server under test, the browser.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
export const OUT = join(ROOT, 'out/e2e');
export const DEMO = resolve(ROOT, process.env.MSPROBE_DEMO_DIR ?? 'out/demo/graph');

const require = createRequire(join(ROOT, 'web/package.json'));
const { chromium } = require('playwright-core');

mkdirSync(OUT, { recursive: true });

export function findCommand() {
  const places = [process.env.MSPROBE_BIN, join(ROOT, '.venv/bin/msprobe'), join(ROOT, 'build/release/msprobe')];
  const found = places.find((place) => place && existsSync(place));
  if (!found) throw new Error('no msprobe command: run "make setup", or set MSPROBE_BIN');
  return found;
}

/** Starts a process and waits for the line that `wanted` makes something of. */
export async function start(command, args, wanted, { seconds = 60, ...options } = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const said = [];
  const answer = await new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`${command} said nothing useful in ${seconds} s:\n${said.join('')}`)), seconds * 1000);
    const listen = (data) => {
      said.push(String(data));
      const found = wanted(said.join(''));
      if (found === undefined) return;
      clearTimeout(timer);
      done(found);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('error', fail);
    child.on('exit', (code) => fail(new Error(`${command} ended with ${code}:\n${said.join('')}`)));
  }).catch((error) => {
    child.kill();
    throw error;
  });
  const ended = new Promise((done) => child.on('exit', done));
  const stop = (signal = 'SIGTERM') => (child.kill(signal), ended); // the exit code, for who waits for it
  return { answer, stop };
}

export function serve(directory) {
  const firstLine = (text) => {
    const line = text.split('\n').find((part) => part.startsWith('{'));
    return line && text.includes('\n') ? JSON.parse(line) : undefined;
  };
  return start(findCommand(), ['serve', directory, '--port', '0', '--json'], firstLine);
}

/** Until `check` says yes; `state`, if given, is told beside `what` when it never does. Long, for machines with much to do. */
export async function until(check, what, state = null) {
  for (const end = Date.now() + 30_000; Date.now() < end; ) {
    if (await check()) return;
    await new Promise((done) => setTimeout(done, 30));
  }
  throw new Error(`waited in vain: ${what}${state ? `; ${JSON.stringify(await state())}` : ''}`);
}

/** An assertion about what is on its way, tried until it passes; in the end it fails with its own words. What must stay as it is, or must never come, is asserted without it. */
export async function holds(check) {
  for (const end = Date.now() + 30_000; ; await new Promise((done) => setTimeout(done, 30))) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** Until the text of what the locator names matches. */
export const shows = (locator, wanted, message) => holds(async () => assert.match(await locator.innerText(), wanted, message));

/** Until there are as many. */
export const counts = (locator, wanted, message) => holds(async () => assert.equal(await locator.count(), wanted, message));

/** Until the list of nodes is the answer to what was asked last; until then it is the one before. `page` may be a frame of it. */
export const listed = (page) => until(async () => ['ready', 'failed', 'idle'].includes(await page.evaluate(() => window.__msprobe.state().search)), 'the search is answered');

/** Ticks these levels of the search list and no others; `page` may be a frame of it. */
export async function tickLevels(page, ...levels) {
  for (const box of await page.locator('.search-levels input').all()) {
    await box.setChecked(levels.includes((await box.getAttribute('data-test')).replace('search-level-', '')));
  }
}

/** For programs that cannot choose one themselves. */
export async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

/** The system's browser, with nothing of an earlier visit and nothing that calls home. */
export function browser() {
  return chromium.launch({
    executablePath: process.env.MSPROBE_CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** MSPROBE_SLOW=8: pages have an eighth of the processor, so that a test that reads before it waits is found out. */
const SLOW = Number(process.env.MSPROBE_SLOW ?? 1);

async function slowed(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: SLOW });
}

/** A page in a fresh profile; everything it complains of is collected in `faults`. */
export async function openPage(chrome, options = {}) {
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US', ...options });
  if (SLOW > 1) context.on('page', (page) => slowed(page).catch(() => {})); // one that is closed again at once has nothing to slow down
  const page = await context.newPage();
  const faults = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') faults.push(`asked another host: ${request.url()}`);
  });
  return { page, faults };
}
