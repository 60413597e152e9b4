import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../api/client';
import type { Conversion, ConversionState, ConvertApi, ConvertRequest } from '../api/convert';
import { Converter } from './convert';
import { EMPTY_FORM, isRunning, fieldOf, requestOf, type ConvertForm } from './convert_form';
import { INITIAL, Store } from './store';

const form = (change: Partial<ConvertForm>): ConvertForm => ({ ...EMPTY_FORM, target: 'a', ...change });

describe('what an error is about', () => {
  const filled = { ...EMPTY_FORM, target: 'runs/a', golden: './runs/a_golden/', output: 'graphs', thresholds: 'runs/a/t.yaml' };
  it('is the field that it names, or whose path it names', () => {
    expect(fieldOf('target_path is missing: choose one', filled)).toBe('target');
    expect(fieldOf('thresholds must be a YAML file: correct it, then start again', filled)).toBe('thresholds');
    expect(fieldOf('pp must be numbers from 1: correct it, then start again', filled)).toBe('pp0');
    expect(fieldOf('runs/a_golden cannot be opened (No such file or directory): browse', filled)).toBe('golden');
    expect(fieldOf('./runs/a/step0/rank0/dump.json is JSON but not a dump', filled)).toBe('target');
    expect(fieldOf('runs/a/t.yaml is not a file: browse', filled)).toBe('thresholds');
  });
  it('may be none', () => {
    expect(fieldOf('another conversion runs: wait for it, or cancel it', filled)).toBeNull();
    expect(fieldOf('no space left', EMPTY_FORM)).toBeNull();
  });
});

describe('requestOf', () => {
  it('asks for what is needed and nothing else', () => {
    expect(requestOf(EMPTY_FORM).faults).toEqual([{ field: 'target', why: 'needed' }]);
    expect(requestOf(form({ output: ' ' })).faults).toEqual([{ field: 'output', why: 'needed' }]);
    expect(requestOf(form({}))).toEqual({ request: { target_path: 'a', output_path: 'graphs' }, faults: [] });
  });
  it('leaves out what belongs to a comparison when there is none', () => {
    const { request } = requestOf(form({ mapping: 'bare', fuzzy: true, structure: true, suggest: 'x.yaml', thresholds: 't.yaml', overflow: true }));
    expect(request).toEqual({ target_path: 'a', output_path: 'graphs', overflow_check: true });
  });
  it('knows the three ways of a layer mapping', () => {
    const golden = 'b';
    expect(requestOf(form({ golden, mapping: 'bare' })).request.layer_mapping).toBe(true);
    expect(requestOf(form({ golden, mapping: 'file', mappingFile: 'm.yaml' })).request.layer_mapping).toBe('m.yaml');
    expect(requestOf(form({ golden, mapping: 'file' })).faults).toEqual([{ field: 'mappingFile', why: 'needed' }]);
    expect(requestOf(form({ golden, mapping: 'template', template: 't' })).request).toMatchObject({ template: 't' });
    expect(requestOf(form({ golden })).request.layer_mapping).toBeUndefined();
  });
  it('sends a merge for as many sides as there are', () => {
    const numbers = { ...EMPTY_FORM.numbers, rank_size: ['8', '4'], tp: ['8', '4'], pp: ['1', '1'], vpp: ['', '2'] } as ConvertForm['numbers'];
    const one = requestOf(form({ merge: true, numbers, json: true, ray: true }));
    expect(one.request).toEqual({ target_path: 'a', output_path: 'graphs', rank_size: [8], tp: [8], pp: [1], file_type: 'json' });
    const two = requestOf(form({ merge: true, golden: 'b', numbers, json: true, order: ['', 'tp-pp'], structure: true }));
    expect(two.faults).toEqual([]);
    expect(two.request).toEqual({ target_path: 'a', output_path: 'graphs', golden_path: 'b', rank_size: [8, 4], tp: [8, 4], pp: [1, 1], vpp: [1, 2], order: ['tp-cp-ep-dp-pp', 'tp-pp'] });
  });
  it('names the numbers that are none', () => {
    const numbers = { ...EMPTY_FORM.numbers, rank_size: ['8', ''], tp: ['0', '1'], pp: ['1.5', '1'], ep: ['x', ''] } as ConvertForm['numbers'];
    const { faults } = requestOf(form({ merge: true, golden: 'b', numbers, layout: ['', 'l.yaml'] }));
    expect(faults.map(({ field, why }) => `${field} ${why}`)).toEqual(['rank_size1 needed', 'tp0 number', 'pp0 number', 'ep0 number', 'layout0 needed']);
  });
});

const conversion = (state: Conversion['state'], percent = 0): Conversion => ({ id: 1, state, percent, seconds: 0, command: [], file: state === 'done' ? 'g.vis.db' : null, text: '', error: '', error_zh: '', log: [], log_zh: [] });

class FakeApi implements ConvertApi {
  states: (Conversion | Error | null)[] = [null];
  asked: (ConvertRequest | number)[] = [];
  private answer(): ConversionState {
    const next = this.states.length > 1 ? this.states.shift()! : this.states[0]!;
    if (next instanceof Error) throw next;
    return { enabled: true, templates: ['t'], conversion: next };
  }
  async state() {
    return this.answer();
  }
  async list() {
    return { path: '', kind: '' as const, dirs: [], files: [], cut: false };
  }
  async start(request: ConvertRequest) {
    this.asked.push(request);
    return this.answer();
  }
  async cancel(id: number) {
    this.asked.push(id);
    return this.answer();
  }
}

describe('Converter', () => {
  let store: Store;
  let api: FakeApi;
  let files: number;
  let converter: Converter;
  const state = () => store.get().convert;

  beforeEach(() => {
    vi.useFakeTimers();
    store = new Store(INITIAL);
    api = new FakeApi();
    files = 0;
    converter = new Converter(store, api, () => files++);
  });
  afterEach(() => vi.useRealTimers());

  it('is off on a host that knows nothing of it', async () => {
    api.states = [new ApiError('there is no such query', 404)];
    await converter.begin();
    converter.open();
    expect(state()).toMatchObject({ enabled: false, open: false });
  });

  it('follows a conversion to its end and looks for new files then', async () => {
    await converter.begin();
    converter.edit({ target: 'a' });
    api.states = [conversion('running'), conversion('running', 40), conversion('done', 100)];
    await converter.start();
    expect(state()).toMatchObject({ shown: 1, last: { state: 'running' } });
    await vi.advanceTimersByTimeAsync(250);
    expect(state().last?.percent).toBe(40);
    expect(files).toBe(0);
    await vi.advanceTimersByTimeAsync(250);
    expect(state().last?.state).toBe('done');
    expect(files).toBe(1);
    await vi.advanceTimersByTimeAsync(2000);
    expect(files).toBe(1);
    converter.again();
    expect(state()).toMatchObject({ shown: null, form: { target: 'a' } });
  });

  it('looks for new files also when it is over before it was seen to run', async () => {
    await converter.begin();
    converter.edit({ target: 'a' });
    api.states = [conversion('done', 100)];
    await converter.start();
    expect(files).toBe(1);
    await converter.cancel();
    expect(files).toBe(1);
  });

  it('says what is missing after the first attempt, and takes it back when it is there', async () => {
    await converter.begin();
    await converter.start();
    expect(state().faults).toHaveLength(1);
    expect(api.asked).toEqual([]);
    converter.edit({ target: 'a' });
    expect(state().faults).toEqual([]);
  });

  it('keeps the form when the server refuses', async () => {
    await converter.begin();
    converter.edit({ target: 'a' });
    api.states = [new ApiError('a is not a directory', 404)];
    await converter.start();
    expect(state()).toMatchObject({ shown: null, failed: { error: 'a is not a directory' }, form: { target: 'a' } });
  });

  it('shows what runs already, cancels it, and survives a server that is away for a moment', async () => {
    api.states = [conversion('running', 10)];
    await converter.begin();
    expect(state().shown).toBe(1);
    api.states = [new ApiError('', 0), conversion('running', 20)];
    await vi.advanceTimersByTimeAsync(210);
    expect(state().failed?.fault).toBe('noServer');
    await vi.advanceTimersByTimeAsync(210);
    expect(state()).toMatchObject({ failed: null, last: { percent: 20 } });
    api.states = [conversion('cancelling'), conversion('cancelled')];
    await converter.cancel();
    expect(api.asked).toEqual([1]);
    expect(isRunning(state().last)).toBe(true);
    await vi.advanceTimersByTimeAsync(210);
    expect(state().last?.state).toBe('cancelled');
    expect(files).toBe(0);
    await converter.cancel();
    expect(api.asked).toEqual([1]);
  });
});
