import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { resolveConfig, type FlagValues, type Resolved } from '@gateway/core/config';
import { envOf, type SettingsTable } from '@gateway/core/settings';
import { writePrivate, type Folder } from './folder.js';
import { LOOPBACK } from './ports.js';
import { POSTGRES_DATABASE, POSTGRES_USER } from './postgres.js';
import { Problem } from './problem.js';

type Tree = { readonly [key: string]: unknown };

/** Keys that `gateway dev` decides. Neither flag nor environment may change them: a variable that points at production would have it migrated. */
const DECIDED = /^(encryption_key|database\..+|kv\..+|server\.http\..+|delivery\.allowed_networks)$/;

/** Ports of the processes' parts. */
export interface Ports {
  readonly api: number;
  readonly agent: number;
  readonly postgres: number;
}

/** Flags of settings that the command does not take. */
export function isDecided(key: string): boolean {
  return DECIDED.test(key);
}

/** The secrets of this folder: those it has, or new ones. */
export function secretsOf(folder: Folder): { readonly encryptionKey: string; readonly password: string } {
  const { encryption_key: key, database } = fileContent(folder) as { encryption_key?: string; database?: { password?: string } };
  return { encryptionKey: key ?? randomBytes(32).toString('base64'), password: database?.password ?? randomBytes(24).toString('base64url') };
}

/**
 * Writes the configuration file of this folder, and resolves the settings from flags, environment and that file. Settings that a person added to the
 * file stay.
 */
export function resolveSettings(
  folder: Folder,
  { ports, flags, rows, encryptionKey, password }: { ports: Ports; flags: FlagValues; rows: SettingsTable; encryptionKey: string; password: string },
): Resolved {
  const decided: Tree = {
    encryption_key: encryptionKey,
    server: { http: { bind: LOOPBACK, port: ports.api, agent_port: ports.agent } },
    database: { host: LOOPBACK, port: ports.postgres, username: POSTGRES_USER, password, database: POSTGRES_DATABASE },
    kv: { type: 'in-memory' },
    delivery: { allowed_networks: ['127.0.0.0/8', '::1/128'] },
  };
  writePrivate(folder.config, merged(fileContent(folder), decided));
  const env = { ...process.env };
  for (const [key, row] of Object.entries(rows)) if (isDecided(key)) delete env[envOf(key, row)];
  return resolveConfig({ command: 'dev', flags, env, file: `./${relative('.', folder.config)}`, rows });
}

function fileContent({ config }: Folder): Tree {
  try {
    return JSON.parse(readFileSync(config, 'utf8')) as Tree;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new Problem(`${config} cannot be read: ${(cause as Error).message}`, { fix: 'mend it, or start anew with --fresh', cause });
  }
}

function merged(into: Tree, over: Tree): Tree {
  const result: Record<string, unknown> = { ...into };
  for (const [key, value] of Object.entries(over)) result[key] = isTree(value) && isTree(into[key]) ? merged(into[key], value) : value;
  return result;
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
