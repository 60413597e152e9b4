import type { ComponentChildren } from 'preact';
import type { MessageKey } from '../i18n';
import { translateServerLine } from '../i18n/server_said';
import { fieldOf, MERGE_NUMBERS, type ConvertForm, type MergeNumber, type Two } from '../model/convert_form';
import { useApp, useSession, useText } from './context';
import { PathField } from './path_field';
import { ServerLine } from './states';

function useForm() {
  const session = useSession();
  const t = useText();
  const { form, faults, templates, failed } = useApp((state) => state.convert);
  const language = useApp((state) => state.language);
  const refused = failed && fieldOf(failed.error, form);
  const faultOf = (field: string) => {
    const fault = faults.find((candidate) => candidate.field === field);
    if (fault) return t(fault.why === 'needed' ? 'convert.needed' : 'convert.number');
    return failed && refused === field ? translateServerLine(language, failed.error).text : undefined;
  };
  return { form, faultOf, templates, refused, faulty: faults.length > 0, edit: (change: Partial<ConvertForm>) => session.convert?.edit(change) };
}

export function ConvertFormView() {
  const session = useSession();
  const t = useText();
  const failed = useApp((state) => state.convert.failed);
  const { form, faultOf, faulty, refused, edit } = useForm();
  const compared = form.golden.trim() !== '';
  return (
    <form
      class="card convert-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void session.convert?.start();
      }}
    >
      <Group title={t('convert.dumps')}>
        <PathField name="target" label={t('convert.target')} hint={t('convert.targetHint')} wanted="dump" value={form.target} fault={faultOf('target')} onChange={(target) => edit({ target })} />
        <PathField name="golden" label={t('convert.golden')} hint={t('convert.goldenHint')} wanted="dump" value={form.golden} fault={faultOf('golden')} onChange={(golden) => edit({ golden })} />
        <PathField name="output" label={t('convert.output')} hint={t('convert.outputHint')} wanted="directory" value={form.output} fault={faultOf('output')} onChange={(output) => edit({ output })} />
      </Group>
      {compared && <Matching />}
      <Group title={t('convert.options')}>
        <div class="checks">
          <Check name="overflow" label={t('convert.overflow')} value={form.overflow} onChange={(overflow) => edit({ overflow })} />
          <Check name="log" label={t('convert.log')} value={form.log} onChange={(log) => edit({ log })} />
          <Check name="plain" label={t('convert.plain')} value={form.plain} onChange={(plain) => edit({ plain })} />
          {!form.merge && <Check name="ray" label={t('convert.ray')} value={form.ray} onChange={(ray) => edit({ ray })} />}
          <Check name="merge" label={t('convert.merge')} value={form.merge} onChange={(merge) => edit({ merge })} />
        </div>
      </Group>
      {form.merge && <Merge compared={compared} />}
      <div class="convert-ways">
        <button type="submit" class="button primary" data-test="convert-start">
          {t('convert.start')}
        </button>
        {(faulty || refused) && (
          <span class="field-fault" role="alert">
            {t(faulty ? 'convert.faulty' : 'convert.refusedField')}
          </span>
        )}
      </div>
      {failed && !refused && (
        <p class="convert-error" role="alert" data-test="convert-refused">
          {t('convert.refused')} {failed.error ? <ServerLine text={failed.error} /> : t(`fault.${failed.fault}`)}
        </p>
      )}
    </form>
  );
}

function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <fieldset>
      <legend>{title}</legend>
      {children}
    </fieldset>
  );
}

interface CheckProps {
  name: string;
  label: string;
  value: boolean;
  onChange: (value: boolean) => void;
}

function Check({ name, label, value, onChange }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" data-test={`check-${name}`} checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

const MAPPINGS: [ConvertForm['mapping'], MessageKey][] = [
  ['none', 'convert.mappingNone'],
  ['bare', 'convert.mappingBare'],
  ['file', 'convert.mappingFile'],
  ['template', 'convert.mappingTemplate'],
];

function Matching() {
  const t = useText();
  const { form, faultOf, templates, edit } = useForm();
  return (
    <Group title={t('convert.matching')}>
      <div class="field">
        <label for="field-mapping">{t('convert.mapping')}</label>
        <select id="field-mapping" value={form.mapping} onChange={(event) => edit({ mapping: event.currentTarget.value as ConvertForm['mapping'] })}>
          {MAPPINGS.map(([value, text]) => (
            <option key={value} value={value}>
              {t(text)}
            </option>
          ))}
        </select>
      </div>
      {form.mapping === 'file' && <PathField name="mappingFile" label={t('convert.mappingYaml')} wanted="yaml" value={form.mappingFile} fault={faultOf('mappingFile')} onChange={(mappingFile) => edit({ mappingFile })} />}
      {form.mapping === 'template' && (
        <div class="field">
          <label for="field-template">{t('convert.template')}</label>
          <select id="field-template" value={form.template} aria-invalid={faultOf('template') !== undefined} onChange={(event) => edit({ template: event.currentTarget.value })}>
            <option value="">{t('convert.templateNone')}</option>
            {templates.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          {faultOf('template') && <span class="field-fault">{faultOf('template')}</span>}
        </div>
      )}
      <PathField name="thresholds" label={t('convert.thresholds')} hint={t('convert.thresholdsHint')} wanted="yaml" value={form.thresholds} fault={faultOf('thresholds')} onChange={(thresholds) => edit({ thresholds })} />
      {!form.merge && (
        <div class="field">
          <label for="field-suggest">{t('convert.suggest')}</label>
          <input id="field-suggest" type="text" spellcheck={false} autocomplete="off" value={form.suggest} aria-describedby="note-suggest" onInput={(event) => edit({ suggest: event.currentTarget.value })} />
          <span id="note-suggest" class={faultOf('suggest') ? 'field-fault' : 'muted field-hint'}>
            {faultOf('suggest') ?? t('convert.suggestHint')}
          </span>
        </div>
      )}
      <div class="checks">
        <Check name="fuzzy" label={t('convert.fuzzy')} value={form.fuzzy} onChange={(fuzzy) => edit({ fuzzy })} />
        {!form.merge && <Check name="structure" label={t('convert.structure')} value={form.structure} onChange={(structure) => edit({ structure })} />}
      </div>
    </Group>
  );
}

const NUMBERS: Record<MergeNumber, MessageKey> = {
  rank_size: 'convert.rankSize',
  tp: 'convert.tp',
  pp: 'convert.pp',
  vpp: 'convert.vpp',
  cp: 'convert.cp',
  ep: 'convert.ep',
};

function Merge({ compared }: { compared: boolean }) {
  const t = useText();
  const { form, faultOf, edit } = useForm();
  const sides = (compared ? [0, 1] : [0]) as (0 | 1)[];
  const sideName = (side: 0 | 1) => t(side === 0 ? 'side.NPU' : 'side.Bench');
  const put = (two: Two, side: 0 | 1, value: string): Two => (side === 0 ? [value, two[1]] : [two[0], value]);
  return (
    <Group title={t('convert.mergeTitle')}>
      <table class="merge-table">
        <thead>
          <tr>
            <td />
            {sides.map((side) => (
              <th key={side} scope="col">
                {sideName(side)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {MERGE_NUMBERS.map((key) => (
            <tr key={key}>
              <th scope="row">{t(NUMBERS[key])}</th>
              {sides.map((side) => (
                <td key={side}>
                  <input
                    inputMode="numeric"
                    data-test={`merge-${key}-${side}`}
                    aria-label={`${t(NUMBERS[key])}, ${sideName(side)}`}
                    aria-invalid={faultOf(`${key}${side}`) !== undefined}
                    title={faultOf(`${key}${side}`)}
                    value={form.numbers[key][side]}
                    onInput={(event) => edit({ numbers: { ...form.numbers, [key]: put(form.numbers[key], side, event.currentTarget.value) } })}
                  />
                </td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row">{t('convert.order')}</th>
            {sides.map((side) => (
              <td key={side}>
                <input class="wide" spellcheck={false} aria-label={`${t('convert.order')}, ${sideName(side)}`} placeholder={ORDER} value={form.order[side]} onInput={(event) => edit({ order: put(form.order, side, event.currentTarget.value) })} />
              </td>
            ))}
          </tr>
          <tr>
            <th scope="row">{t('convert.layout')}</th>
            {sides.map((side) => (
              <td key={side}>
                <PathField bare name={`layout${side}`} label={`${t('convert.layout')}, ${sideName(side)}`} wanted="yaml" value={form.layout[side]} fault={faultOf(`layout${side}`)} onChange={(value) => edit({ layout: put(form.layout, side, value) })} />
              </td>
            ))}
          </tr>
        </tbody>
      </table>
      <div class="checks">
        <Check name="plan" label={t('convert.plan')} value={form.plan} onChange={(plan) => edit({ plan })} />
        {!compared && <Check name="json" label={t('convert.json')} value={form.json} onChange={(json) => edit({ json })} />}
      </div>
    </Group>
  );
}

const ORDER = 'tp-cp-ep-dp-pp';
