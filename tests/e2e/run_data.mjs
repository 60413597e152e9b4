// Output of a training monitor, as monitor.series (src/monitor/series_format.h) and as csv.
import { appendFileSync, mkdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

const NAMES = ['embed.weight', ...[0, 1, 2, 3].flatMap((i) => [`layers.${i}.attn.weight`, `layers.${i}.fc.weight`]), 'norm.weight'];
const STATS = ['norm', 'max'];
const padded = (buffer) => Buffer.concat([buffer, Buffer.alloc((8 - (buffer.length % 8)) % 8)]);

function block(type, payload) {
  const head = Buffer.alloc(16);
  head.writeUInt32LE(type, 0);
  head.writeUInt32LE(payload.length, 4);
  head.writeUInt32LE(crc32(payload), 8);
  return padded(Buffer.concat([head, payload]));
}

function stepBlock(rank, step, { nan, first }) {
  const head = Buffer.alloc(24);
  head.writeBigInt64LE(BigInt(step), 0);
  head.writeUInt32LE(NAMES.length, 12);
  head.writeUInt32LE(STATS.length, 16);
  head.writeUInt32LE(first ? 0 : 1, 20);
  const rows = first ? padded(Buffer.from(new Uint32Array(NAMES.map((_, i) => i)).buffer)) : Buffer.alloc(0);
  const value = (i) => {
    if (nan && rank === 1 && step >= 240 && NAMES[i].startsWith('layers.2')) return NaN;
    return (1 + i / 3) * (0.4 + 2 / (1 + step / 60)) * (1 + 0.1 * Math.sin(step * (i + 1)));
  };
  const values = new Float64Array(STATS.flatMap((_, s) => NAMES.map((_, i) => value(i) / (1 + s))));
  return block(4, Buffer.concat([head, rows, Buffer.from(values.buffer)]));
}

const placeOf = (run, rank) => join(run, `Nov25_18-24-11-rank${rank}-0000000${rank}`);

export function writeRun(run, { ranks, steps, nan = false }) {
  for (let rank = 0; rank < ranks; rank++) {
    mkdirSync(placeOf(run, rank), { recursive: true });
    const table = block(2, Buffer.from(JSON.stringify({ name: 'grad_reduced', columns: STATS, micro_steps: false })));
    const series = block(3, Buffer.from(JSON.stringify({ items: NAMES.map((name) => [0, 0, name, -1]) })));
    const values = Array.from({ length: steps }, (_, step) => stepBlock(rank, step, { nan, first: step === 0 }));
    writeFileSync(join(placeOf(run, rank), 'monitor.series'), Buffer.concat([Buffer.from('MSPSER01'), block(1, Buffer.alloc(0)), table, series, ...values]));
  }
}

export function appendSteps(run, rank, from, count) {
  const blocks = Array.from({ length: count }, (_, i) => stepBlock(rank, from + i, { first: false }));
  appendFileSync(join(placeOf(run, rank), 'monitor.series'), Buffer.concat(blocks));
}

/** As mindstudio-probe writes it, two files of five steps each. */
export function writeCsvRun(run) {
  mkdirSync(placeOf(run, 0), { recursive: true });
  for (const first of [0, 5]) {
    const rows = Array.from({ length: 5 }, (_, i) => NAMES.map((name, n) => `0,${name},${first + i},${(n + 1) / (first + i + 1)},0.5`));
    writeFileSync(join(placeOf(run, 0), `grad_reduced_${first}-${first + 4}.csv`), `vpp_stage,name,step,norm,max\n${rows.flat().join('\n')}\n`);
  }
}

/** The same, of a run that was killed while it wrote its last row. */
export function cutCsvRun(run) {
  writeCsvRun(run);
  const file = join(placeOf(run, 0), 'grad_reduced_5-9.csv');
  truncateSync(file, statSync(file).size - 6);
}
