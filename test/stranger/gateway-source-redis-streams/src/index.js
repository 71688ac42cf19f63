import { check } from './check.js';
import { run } from './run.js';

/** @type {import('@gateway/plugin').SourcePlugin} */
export default { check, run };
