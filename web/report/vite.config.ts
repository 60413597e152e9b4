import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { policy } from '../policy';

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
