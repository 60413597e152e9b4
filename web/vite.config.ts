import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One self-contained dist/index.html: the command embeds it, and a copy of it works from anywhere.
export default defineConfig({
  base: './',
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: 'es2022', assetsInlineLimit: Number.MAX_SAFE_INTEGER, reportCompressedSize: false },
});
