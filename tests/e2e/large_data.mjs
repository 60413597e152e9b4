// Larger dumps that browser tests convert, and graphs that they match by hand.
import { cpSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { msprobe } from './data.mjs';
import { DEMO, ROOT } from './support.mjs';

export const RANKS = join(ROOT, 'tests/golden/graph/ranks');

/** A graph of two dumps, or of one, in `out`; the name of its file. */
export function makeGraph(out, target, golden, ...options) {
  msprobe('graph_visualize', '-tp', target, ...(golden ? ['-gp', golden] : []), '-o', out, ...options);
  return readdirSync(out).find((name) => name.endsWith('.vis.db'));
}

/** A copy of a tensor dump in which an op has another name. */
export function renameOp(from, to, name, other) {
  cpSync(from, to, { recursive: true });
  const rank = join(to, 'step0/rank0');
  for (const file of ['dump.json', 'construct.json']) {
    const path = join(rank, file);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(name, other).replaceAll(`${from}/`, `${to}/`));
  }
  const values = join(rank, 'dump_tensor_data');
  for (const file of readdirSync(values)) renameSync(join(values, file), join(values, file.replace(name, other)));
}

/** The first op's output has an infinite maximum. */
export function overflow(directory) {
  const path = join(directory, 'step0/rank0/dump.json');
  writeFileSync(path, readFileSync(path, 'utf8').replace(/("output":\[\{[^}]*?"Max":)[^,]+/, '$1Infinity'));
}

export const MODULE = 'Module.model.layers.1.mlp.down_proj.Linear.forward.0';
export const MODULE_GOLDEN = MODULE.replace('down_proj.', 'down_proj_new.');

/** The demo's dumps, with one module called differently on the golden side; the name of the graph in `out`. */
export function renamedGraph(directory, out) {
  const dumps = dirname(DEMO);
  const golden = join(directory, 'golden');
  cpSync(join(dumps, 'golden'), golden, { recursive: true, dereference: true });
  for (const file of readdirSync(golden, { recursive: true }).filter((name) => name.endsWith('.json'))) {
    const path = join(golden, file);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('layers.1.mlp.down_proj.', 'layers.1.mlp.down_proj_new.'));
  }
  return makeGraph(out, join(dumps, 'problem'), golden);
}

/** A dump of a million nodes on 64 ranks, which takes some seconds to convert on any machine, in the files of one. */
export function hugeDump(directory) {
  const big = grown(join(RANKS, 'target/step0/rank0'));
  for (let i = 0; i < 64; i++) {
    const rank = join(directory, 'step0', `rank${i}`);
    mkdirSync(rank, { recursive: true });
    for (const [name, text] of Object.entries(big)) {
      if (i === 0) writeFileSync(join(rank, name), text);
      else linkSync(join(directory, 'step0/rank0', name), join(rank, name));
    }
  }
}

/** A dump of many layers, made of one: names with a number each. */
function grown(rank) {
  const count = 4000;
  const dump = JSON.parse(readFileSync(join(rank, 'dump.json'), 'utf8'));
  const construct = JSON.parse(readFileSync(join(rank, 'construct.json'), 'utf8'));
  const data = {};
  const tree = {};
  for (let i = 0; i < count; i++) {
    const renamed = (name) => (name === null ? null : name.replace(/^(\w+)\./, `$1.copy${i}.`));
    for (const [name, value] of Object.entries(dump.data)) data[renamed(name)] = value;
    for (const [name, value] of Object.entries(construct)) tree[renamed(name)] = Array.isArray(value) ? [renamed(value[0]), ...value.slice(1)] : renamed(value);
  }
  return { 'dump.json': JSON.stringify({ ...dump, data }), 'construct.json': JSON.stringify(tree), 'stack.json': '{}' };
}
