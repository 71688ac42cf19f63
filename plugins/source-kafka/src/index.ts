import type { SourcePlugin } from '@gateway/plugin';
import { check } from './check.js';
import type { Connection } from './connection.js';
import { run } from './run.js';

export type { Auth, Connection } from './connection.js';

const plugin: SourcePlugin<Connection> = { check, run };

export default plugin;
