import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

/** Only the script and the style that were built may run: their hashes stand in the page's policy. */
function policy(): Plugin {
  const hashes = (html: string, tag: 'script' | 'style') =>
    [...html.matchAll(new RegExp(`<${tag}([^>]*)>([\\s\\S]*?)</${tag}>`, 'g'))]
      .filter(([, attributes = '']) => !attributes.includes('octet-stream'))
      .map(([, , text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)
      .join(' ');
  return {
    name: 'report-policy',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== 'asset' || !file.fileName.endsWith('.html')) continue;
          const html = String(file.source);
          const rules = `default-src 'none'; script-src ${hashes(html, 'script')}; style-src ${hashes(html, 'style')}; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'`;
          file.source = html.replace('<meta charset="utf-8" />', () => `<meta charset="utf-8" />\n    <meta http-equiv="Content-Security-Policy" content="${rules}" />`);
        }
      },
    },
  };
}

// One self-contained dist/report.html: the command writes it with the data of a comparison inside.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), policy()],
  build: {
    target: 'es2022',
    outDir: fileURLToPath(new URL('../dist', import.meta.url)),
    emptyOutDir: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
    rollupOptions: { input: fileURLToPath(new URL('./report.html', import.meta.url)) },
  },
});
