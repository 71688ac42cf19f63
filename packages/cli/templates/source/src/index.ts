import type { SourcePlugin } from '@gateway/plugin';
import { check } from './check.js';
import type { Connection, Settings } from './connection.js';
import { run } from './run.js';

const plugin: SourcePlugin<Connection, Settings> = { check, run };

export default plugin;
