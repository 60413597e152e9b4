import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { policy } from './policy';

// One self-contained dist/index.html: the command embeds it, and a copy of it works from anywhere.
export default defineConfig({
  base: './',
  // msprobe export takes the server out of the policy.
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), policy("connect-src 'self'; ")],
  build: { target: 'es2022', assetsInlineLimit: Number.MAX_SAFE_INTEGER, reportCompressedSize: false },
});
