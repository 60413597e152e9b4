// What axe finds wrong with a page, and the looks in which every page of a report is seen.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from './support.mjs';

const AXE = readFileSync(createRequire(join(ROOT, 'web/package.json')).resolve('axe-core/axe.min.js'), 'utf8');
export const RULES = { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] };

export const LOOKS = [
  ['light_en', { colorScheme: 'light', locale: 'en-US' }],
  ['dark_zh', { colorScheme: 'dark', locale: 'zh-CN' }],
  ['narrow_dark_en', { colorScheme: 'dark', locale: 'en-US', viewport: { width: 420, height: 900 } }],
];

/** A line for each element that breaks a rule. */
export async function violations(page, runOnly = RULES) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const found = await page.evaluate((only) => window.axe.run(document, { runOnly: only, resultTypes: ['violations'] }).then((result) => result.violations), runOnly);
  return found.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary.replace(/\s+/g, ' ')}`));
}
