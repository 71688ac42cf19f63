import type { SourcePlugin } from '@gateway/plugin';
import { check } from './check.js';
import type { Connection } from './queue.js';
import { run } from './run.js';

export type { Connection } from './queue.js';

const plugin: SourcePlugin<Connection> = { check, run };

export default plugin;
