// @ts-check
// Loaded into every test process: it runs the TypeScript of `test` as compile.mjs has compiled it. By hand, `--import tsx` does the same at more cost.
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

process.setSourceMapsEnabled(true);
// Threads inherit this import, and run built packages alone.
if (isMainThread) register('./load-hooks.mjs', import.meta.url);
