import { relative } from 'node:path';
import { envOf, resolveConfig, type FlagValues, type Resolved, type SettingsTable } from '@gateway/core/config';
import { isObject } from '@gateway/core/json';
import { isFixed } from './flags.js';
import { LOOPBACK, type Ports } from './services/ports.js';
import { POSTGRES_DATABASE, POSTGRES_USER } from './services/postgres.js';
import { readConfigFile, writePrivate, type DevState } from './state.js';

type Tree = Readonly<Record<string, unknown>>;

/** Writes `.gateway/gateway.json`, keeping settings that the user has added, and resolves the settings from flags, environment and that file. */
export function resolveSettings({ files, secrets }: DevState, { numbers }: Ports, flags: FlagValues, rows: SettingsTable): Resolved {
  const fixed: Tree = {
    encryption_key: secrets.encryptionKey,
    root_path: '',
    server: {
      http: { bind: LOOPBACK, port: numbers.api, agent_port: numbers.agent, ssl: false },
      auth: { api_keys: [], basic: [], native: true },
    },
    database: {
      host: LOOPBACK,
      port: numbers.postgres,
      username: POSTGRES_USER,
      password: secrets.password,
      database: POSTGRES_DATABASE,
    },
    kv: { type: 'in-memory' },
    delivery: { allowed_networks: ['127.0.0.0/8', '::1/128'] },
  };
  writePrivate(files.config, merged(readConfigFile(files), fixed));
  const env = { ...process.env };
  for (const [key, row] of Object.entries(rows)) if (isFixed(key)) delete env[envOf(key, row)];
  return resolveConfig({ command: 'dev', flags, env, file: `./${relative('.', files.config)}`, rows });
}

function merged(base: Tree, over: Tree): Tree {
  const values = Object.entries(over).map(([key, value]) => {
    const before = base[key];
    return [key, isObject(value) && isObject(before) ? merged(before, value) : value];
  });
  return { ...base, ...Object.fromEntries(values) } as Tree;
}
