// What the verdict of a story has to say, made of its truth: patterns of the headline and of the lines below it.

const quoted = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const DIFFERS = { en: '(differs( by [\\d.e+-]+ %)?|is \\S+ times the golden value)( \\(.+?\\))?', zh: '(相差 [\\d.e+-]+ %|不一致|为标杆值的 \\S+ 倍)(（.+?）)?' };

// Of a comparison.
const CAUSES = {
  op: { en: (t) => `its ${t.item} ${DIFFERS.en} although its inputs agree`, zh: (t) => `输入一致，${t.item} 却${DIFFERS.zh}` },
  weight: { en: (t) => `${t.module}\\.${t.parameter} ${DIFFERS.en} before it is used`, zh: (t) => `${t.module}\\.${t.parameter} 在使用前就已${DIFFERS.zh}` },
  buffer: { en: (t) => `buffer ${t.module}\\.${t.parameter} ${DIFFERS.en} before it is used`, zh: (t) => `缓冲区 ${t.module}\\.${t.parameter} 在使用前就已${DIFFERS.zh}` },
  input: { en: (t) => `its ${t.item} ${DIFFERS.en}, and no recorded op made it`, zh: (t) => `${t.item} ${DIFFERS.zh}，且不由任何已采集的算子产生` },
  code: { en: (t) => `code between its recorded ops makes a difference: ${t.item} of ${t.op} ${DIFFERS.en}`, zh: (t) => `其已采集算子之间的代码造成差异：${t.op} 的 ${t.item} ${DIFFERS.zh}` },
  argument: { en: (t) => `argument ${t.item} is \\S+, in the golden run \\S+`, zh: (t) => `参数 ${t.item} 为 \\S+，标杆为 \\S+` },
  dtype: { en: (t) => `${t.item} is torch\\.\\w+, in the golden run torch\\.\\w+`, zh: (t) => `${t.item} 为 torch\\.\\w+，标杆为 torch\\.\\w+` },
  extra_op: { en: (t) => `the golden run has no ${t.op}`, zh: (t) => `标杆侧没有 ${t.op}` },
};

// Of one run by itself.
const OVERFLOWS = {
  op: { en: () => 'its inputs are finite, its output is not', zh: () => '输入均为有限值，输出却不是' },
  weight: { en: (t) => `${t.module}\\.${t.parameter} holds NaN or infinities`, zh: (t) => `${t.module}\\.${t.parameter} 含有 NaN 或无穷大` },
  input: { en: (t) => `its ${t.item} holds NaN or infinities that no recorded op made`, zh: (t) => `${t.item} 含有 NaN 或无穷大，且不由任何已采集的算子产生` },
  collective: { en: () => 'what every rank puts in is finite, the result is not', zh: () => '各 rank 的输入均为有限值，结果却不是' },
};

const FRAME = {
  en: { head: 'Origin: ', place: (run) => ` \\(${run}\\)`, join: ', ', colon: ': ', ranks: (many) => (many ? 'ranks ' : 'rank '), op: 'op: ', value: 'value: ', spread: (rank, call) => `spread: reaches rank ${rank} through ${call}` },
  zh: { head: '误差源头：', place: (run) => `（${run}）`, join: '，', colon: '：', ranks: () => 'rank ', op: '算子：', value: '数值：', spread: (rank, call) => `扩散：经 ${call} [^ ]*.*传到 rank ${rank}` },
};

/** Patterns that lines of the card must match, the headline first. */
export function wantedLines(truth, language, alone = false) {
  const frame = FRAME[language];
  const names = Object.fromEntries(Object.entries(truth).map(([key, value]) => [key, typeof value === 'string' ? quoted(value) : value]));
  const run = [frame.ranks(truth.ranks.length > 1) + truth.ranks.join(', '), `step ${truth.step}`].join(frame.join);
  const subject = ['weight', 'buffer'].includes(truth.cause) || (truth.cause === 'extra_op' && !names.module) ? '' : (names.module || names.op) + frame.colon;
  const why = (alone ? OVERFLOWS : CAUSES)[truth.cause][language](names);
  return [
    `^${frame.head}${subject}${why}${frame.place(run)}$`,
    `^${frame.op}${names.op}( |，|$)`,
    ...(truth.item ? [`^${frame.value}${names.item} `] : []),
    ...truth.reached.map(([rank, call]) => `^${frame.spread(rank, quoted(call))}`),
  ].map((text) => new RegExp(text));
}

// What no screen may say that names an origin.
export const DENIALS = /No errors|No overflow|Nothing to report|No difference|Origin unknown|No NaN or infinity begins|all matched ops agree|没有错误|没有溢出|没有需要关注的问题|无差异|源头未知|未发现 NaN/;
