import { createHash } from 'node:crypto';
import type { Plugin } from 'vite';

/** Only the script and the style that were built may run: their hashes stand in the page's policy. `more` are further rules. */
export function policy(more = ''): Plugin {
  const hashes = (html: string, tag: 'script' | 'style') =>
    [...html.matchAll(new RegExp(`<${tag}([^>]*)>([\\s\\S]*?)</${tag}>`, 'g'))]
      .filter(([, attributes = '']) => !attributes.includes('octet-stream'))
      .map(([, , text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)
      .join(' ');
  return {
    name: 'page-policy',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== 'asset' || !file.fileName.endsWith('.html')) continue;
          const html = String(file.source);
          const rules = `default-src 'none'; script-src ${hashes(html, 'script')}; style-src ${hashes(html, 'style')}; img-src data:; ${more}base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'`;
          file.source = html.replace('<meta charset="utf-8" />', () => `<meta charset="utf-8" />\n    <meta http-equiv="Content-Security-Policy" content="${rules}" />`);
        }
      },
    },
  };
}
