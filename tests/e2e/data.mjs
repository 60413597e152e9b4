// Small dumps with the same figures everywhere: a decoder of four layers, a tensor dump of one op, runs of some steps.
import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from './support.mjs';

/** Writes one rank of a dump. */
export function writeRank(directory, { data, construct, stack = {}, task = 'statistics', tensors = null }) {
  mkdirSync(directory, { recursive: true });
  const head = { task, level: 'mix', framework: 'pytorch', dump_data_dir: tensors };
  // Dumps have infinities bare, which JSON does not know.
  writeFileSync(join(directory, 'dump.json'), JSON.stringify({ ...head, data }).replaceAll('"Infinity"', 'Infinity'));
  writeFileSync(join(directory, 'construct.json'), JSON.stringify(construct));
  writeFileSync(join(directory, 'stack.json'), JSON.stringify(stack));
}

/** Runs the command with its output kept away. */
export function msprobe(...args) {
  return execFileSync(findCommand(), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

// ---- a decoder ---------------------------------------------------------------------------------------------------------

const WIDTH = 64;
export const LAYERS = 4;
export const BROKEN = 'Module.model.layers.2.mlp.down_proj.Linear.forward.0';
export const RENAMED = 'Module.model.layers.1.mlp.up_proj.Linear.forward.0'; // the golden side calls it up_proj_new

function tensor(norm, shape) {
  const digits = (value) => Number(value.toPrecision(9));
  const size = Math.sqrt(shape.reduce((a, b) => a * b));
  const values = { Max: digits((4.1 * norm) / size), Min: digits((-3.9 * norm) / size), Mean: digits((0.01 * norm) / size), Norm: digits(norm) };
  return { type: 'torch.Tensor', dtype: 'torch.float32', shape, ...values, requires_grad: true };
}

const CLASSES = { q_proj: 'Linear', k_proj: 'Linear', v_proj: 'Linear', o_proj: 'Linear', gate_proj: 'Linear', up_proj: 'Linear', act_fn: 'SiLU', down_proj: 'Linear', input_layernorm: 'RMSNorm', post_attention_layernorm: 'RMSNorm' };

/**
 * A rank of the decoder. `scale(layer, part)` is the factor on what a part gives out; `rename` changes names of modules.
 */
function decoder({ scale, rename = (name) => name, extra = false }) {
  const data = {};
  const construct = {};
  const frames = {};
  const shape = [2, 16, WIDTH];
  let flowing = 5;
  const put = (name, parent, record, line) => {
    if (record) data[name] = record; // that of a module follows those inside it
    construct[name] = parent;
    frames[name] = [`File /train/model.py, line ${line}, in forward, \n x = self.${name.split('.').at(-4) ?? 'model'}(x)`];
  };
  const part = (layer, path, parent, line) => {
    const short = path.split('.').at(-1);
    const kind = CLASSES[short] ?? 'DecoderLayer';
    const own = rename(`Module.model.layers.${layer}.${path}.${kind}`);
    const given = tensor(flowing, shape);
    flowing *= (1 + (short.length % 7) / 50) * scale(layer, short);
    const taken = tensor(flowing, shape);
    const weight = kind === 'SiLU' ? undefined : { weight: tensor(8, kind === 'RMSNorm' ? [WIDTH] : [WIDTH, WIDTH]) };
    put(`${own}.forward.0`, `${parent}.forward.0`, { input_args: [given], input_kwargs: {}, ...(weight ? { parameters: weight } : {}), output: [taken] }, line);
    return [own, parent, given, taken];
  };
  const forward = [];
  const root = 'Module.model.Decoder';
  put(`${root}.forward.0`, null, null, 10);
  for (let layer = 0; layer < LAYERS; layer++) {
    const block = `Module.model.layers.${layer}.DecoderLayer`;
    const begin = tensor(flowing, shape);
    put(`${block}.forward.0`, `${root}.forward.0`, null, 20);
    const inside = [part(layer, 'input_layernorm', block, 31)];
    for (const [group, names] of [['self_attn', ['q_proj', 'k_proj', 'v_proj', 'o_proj']], ['mlp', ['gate_proj', 'up_proj', 'act_fn', 'down_proj']]]) {
      const whole = `Module.model.layers.${layer}.${group}.${group === 'mlp' ? 'MLP' : 'Attention'}`;
      if (group === 'mlp') inside.push(part(layer, 'post_attention_layernorm', block, 40));
      const first = tensor(flowing, shape);
      put(`${whole}.forward.0`, `${block}.forward.0`, null, 45);
      for (const name of names) inside.push(part(layer, `${group}.${name}`, whole, 50 + name.length));
      data[`${whole}.forward.0`] = { input_args: [first], input_kwargs: {}, output: [tensor(flowing, shape)] };
      inside.push([whole, block, first, tensor(flowing, shape)]);
    }
    data[`${block}.forward.0`] = { input_args: [begin], input_kwargs: {}, output: [tensor(flowing, shape)] };
    forward.push([block, root, begin, tensor(flowing, shape)], ...inside);
  }
  if (extra) put('Torch.clone.0.forward', `${root}.forward.0`, { input_args: [tensor(flowing, shape)], input_kwargs: {}, output: [tensor(flowing, shape)] }, 70);
  data[`${root}.forward.0`] = { input_args: [tensor(3, [2, 16])], input_kwargs: {}, output: [tensor(flowing, shape)] };
  put(`${root}.backward.0`, null, { input: [tensor(0.5, shape)], output: [tensor(0.2, shape)] }, 10);
  for (const [own, parent, given, taken] of forward.reverse()) {
    put(`${own}.backward.0`, `${parent}.backward.0`, { input: [{ ...taken, Norm: taken.Norm / 10 }], output: [{ ...given, Norm: given.Norm / 10 }] }, 80);
  }
  const stack = {};
  Object.entries(frames).forEach(([name, lines], index) => (stack[index] = [[name], lines]));
  return { data, construct, stack };
}

/** Two runs of two ranks: a weight scaled on rank 0 of the target, an overflow on rank 1, a module of another name. */
export function writeDecoder(dumps) {
  const sound = () => 1;
  const off = (layer, part) => (layer === 2 && part === 'down_proj' ? 4 : 1);
  const golden = decoder({ scale: sound, rename: (name) => name.replace('layers.1.mlp.up_proj.', 'layers.1.mlp.up_proj_new.') });
  const target = decoder({ scale: off, extra: true });
  const spoilt = decoder({ scale: sound, extra: true });
  const bad = spoilt.data[BROKEN];
  bad.output = [{ ...bad.output[0], Max: 'Infinity', Norm: 'Infinity', Mean: 'Infinity' }];
  for (const [rank, dump] of [[0, target], [1, spoilt]]) writeRank(join(dumps, 'target/step0', `rank${rank}`), dump);
  for (const rank of [0, 1]) writeRank(join(dumps, 'golden/step0', `rank${rank}`), golden);
}

// ---- one op with its tensors -------------------------------------------------------------------------------------------

export const TENSOR_NODE = 'Functional.linear.0.forward';
const SHAPE = [2, 80, 120]; // larger than the picture

function npy(values, shape) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  const head = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + '\n';
  const size = Buffer.alloc(2);
  size.writeUInt16LE(head.length);
  return Buffer.concat([Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]), size, Buffer.from(head), Buffer.from(new Float32Array(values).buffer)]);
}

/** A tensor dump of one op; `spoil` changes its output. */
function writeTensorDump(run, spoil) {
  const rank = join(run, 'step0/rank0');
  mkdirSync(join(rank, 'dump_tensor_data'), { recursive: true });
  const count = SHAPE.reduce((a, b) => a * b);
  const record = (item, values) => {
    const file = `${TENSOR_NODE}.${item}.npy`;
    writeFileSync(join(rank, 'dump_tensor_data', file), npy(values, SHAPE));
    const finite = values.filter(Number.isFinite);
    const norm = Math.sqrt(finite.reduce((sum, v) => sum + v * v, 0));
    return { type: 'torch.Tensor', dtype: 'torch.float32', shape: SHAPE, Max: Math.max(...finite), Min: Math.min(...finite), Mean: finite.reduce((a, b) => a + b) / count, Norm: norm, requires_grad: false, data_name: file };
  };
  const wave = Array.from({ length: count }, (_, i) => Math.sin(i / 37) * Math.exp(-(((i % 120) - 60) ** 2) / 900));
  const output = wave.map((v, i) => 2 * v + spoil(i));
  const data = { [TENSOR_NODE]: { input_args: [record('input.0', wave)], input_kwargs: {}, output: [record('output.0', output)] } };
  writeRank(rank, { data, construct: { [TENSOR_NODE]: null }, task: 'tensor', tensors: join(realpathSync(rank), 'dump_tensor_data') });
}

/** Both sides below `directory`: one element of the second slice far off, a band of the first a little, one no number. */
export function writeTensors(directory) {
  writeTensorDump(join(directory, 'target'), (i) => (i === 80 * 120 + 2 * 120 + 5 ? 9 : i === 7 ? Number.NaN : i < 1200 ? 0.05 : 0));
  writeTensorDump(join(directory, 'golden'), () => 0);
}

// ---- steps and ranks ---------------------------------------------------------------------------------------------------

export const TREND_LAYERS = 12;
const STEPS = 6;

/** A run of six steps on two ranks below `dumps/NAME`, and its trend file `served/NAME/dump_data.trend.db`. */
function writeTrendRun(dumps, served, name, valueAt, ranks = [0, 1]) {
  const text = (number) => (Number.isFinite(number) ? number : String(number).replace('Infinity', 'inf').toLowerCase()); // JSON knows neither
  const value = (norm) => ({ type: 'torch.Tensor', dtype: 'torch.float32', shape: [4], Max: text(norm / 2), Min: text(-norm / 2), Mean: text(norm / 10), Norm: text(norm) });
  for (let step = 0; step < STEPS; step++) {
    for (const rank of ranks) {
      const root = 'Module.model.Net.forward.0';
      const construct = { [root]: null };
      const data = { [root]: { input_args: [value(1)], output: [value(valueAt(step, rank, TREND_LAYERS))] } };
      for (let layer = 0; layer < TREND_LAYERS; layer++) {
        const op = `Module.model.layers.${layer}.mlp.Linear.forward.0`;
        construct[op] = root;
        data[op] = { input_args: [value(1 + layer)], output: [value(valueAt(step, rank, layer))] };
      }
      writeRank(join(dumps, name, `step${step}`, `rank${rank}`), { data, construct });
    }
  }
  msprobe('data2db', '--data', join(dumps, name), '--db', join(served, name));
}

/** A run of four ranks that differ a little by nature; rank 2 is 1 % off in layer 9, rank 1 NaN in layer 4 from step 3, infinite in layer 5. */
export function writeOddTrends(dumps, served) {
  const value = (step, rank, layer) => {
    if (layer === 4 && rank === 1 && step >= 3) return NaN;
    if (layer === 5 && rank === 1) return Infinity;
    return 1 + (layer === 9 ? (rank === 2 ? 0.01 : 0) : 0.05 * rank) + step / 50;
  };
  writeTrendRun(dumps, served, 'odd', value, [0, 1, 2, 3]);
  writeTrendRun(dumps, served, 'even', (step, rank, layer) => (layer === 9 ? 1 : 1 + 0.05 * rank) + step / 50, [0, 1, 2, 3]);
}

/** Two runs, of which the second goes wrong at step 3 of rank 1. */
export function writeTrends(dumps, served) {
  const sound = (step, rank, layer) => 10 ** (layer / 3 - 2) * (1 + step / 50 + rank / 100);
  writeTrendRun(dumps, served, 'golden', sound);
  writeTrendRun(dumps, served, 'broken', (step, rank, layer) => sound(step, rank, layer) * (rank === 1 && step >= 3 && layer >= 7 ? 40 ** (step - 2) : 1));
}
