import { randomBytes } from 'node:crypto';
import { relative } from 'node:path';
import { isObject } from '@gateway/core/json';
import { resolveConfig, type FlagValues, type Resolved } from '@gateway/core/config';
import { envOf, type SettingsTable } from '@gateway/core/config';
import { isDecided } from './decided.js';
import { readPrivate, writePrivate, type Folder } from './folder.js';
import { LOOPBACK, type Ports } from './ports.js';
import { POSTGRES_DATABASE, POSTGRES_USER } from './postgres.js';

type Tree = { readonly [key: string]: unknown };

export interface Secrets {
  readonly encryptionKey: string;
  /** Of Postgres. */
  readonly password: string;
}

/** The secrets of this folder: those it has, else new ones. */
export function secretsOf(folder: Folder): Secrets & { readonly areNew: boolean } {
  const { encryption_key: key, database } = fileContent(folder) as { encryption_key?: string; database?: { password?: string } };
  if (key && database?.password) return { encryptionKey: key, password: database.password, areNew: false };
  return { encryptionKey: randomBytes(32).toString('base64'), password: randomBytes(24).toString('base64url'), areNew: true };
}

/**
 * Writes the configuration file of this folder, and resolves the settings from flags, environment and that file. Settings that a person added to the
 * file stay.
 */
export function resolveSettings(
  { folder, secrets }: { readonly folder: Folder; readonly secrets: Secrets },
  { ports, flags, rows }: { ports: Ports; flags: FlagValues; rows: SettingsTable },
): Resolved {
  const decided: Tree = {
    encryption_key: secrets.encryptionKey,
    root_path: '',
    server: {
      http: { bind: LOOPBACK, port: ports.api, agent_port: ports.agent, ssl: false },
      auth: { api_keys: [], basic: [], native: true },
    },
    database: { host: LOOPBACK, port: ports.postgres, username: POSTGRES_USER, password: secrets.password, database: POSTGRES_DATABASE },
    kv: { type: 'in-memory' },
    delivery: { allowed_networks: ['127.0.0.0/8', '::1/128'] },
  };
  writePrivate(folder.config, merged(fileContent(folder), decided));
  const env = { ...process.env };
  for (const [key, row] of Object.entries(rows)) if (isDecided(key)) delete env[envOf(key, row)];
  return resolveConfig({ command: 'dev', flags, env, file: `./${relative('.', folder.config)}`, rows });
}

function fileContent({ config }: Folder): Tree {
  return readPrivate(config, 'mend it, or start anew with --fresh');
}

function merged(into: Tree, over: Tree): Tree {
  const result: Record<string, unknown> = { ...into };
  for (const [key, value] of Object.entries(over)) result[key] = isObject(value) && isObject(into[key]) ? merged(into[key], value) : value;
  return result;
}
