import { randomBytes } from 'node:crypto';
import { resolveConfig } from '#core/config/config';
import type { Config } from '#core/config/settings';
import { isGatewayError, type ErrorCode } from '#core/errors/errors';
import { silentLog, type Log } from '#core/logging/log';
import { activate, type ActivatedPlugins, type ActiveSource } from '#core/plugins/activation';
import { discover } from '#core/plugins/discovery';
import { readLicence } from '#core/plugins/licence';
import type { SourcePlugin } from '@gateway/plugin';
import { startServer } from '@gateway/server';
import { bootstrapUser, type BootstrappedUser } from '#store/people/users';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { migratedDatabase } from '../store/migrated.js';
import { connectionOf } from '../support/database.js';
import { testShard } from '../support/shard.js';
import { within } from '../support/until.js';
import { undescribed } from './described.js';
import { openedOnShard, withQueuesOfShard } from './on-shard.js';

/** The result of `JSON.parse`, which tests access without checks. */
type Parsed = ReturnType<JSON['parse']>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: {
    status: boolean;
    message: string;
    data: Parsed;
    code?: string;
    fix?: string;
    errors?: { field: string; sentence: string }[];
    conflict?: string;
    request_id?: string;
  };
}

/**
 * A control plane on a private database. With TEST_SHARD in the environment, its projects are on
 * that shard.
 */
export interface Api {
  readonly url: string;
  readonly config: Config;
  readonly db: Awaited<ReturnType<typeof migratedDatabase>>;
  readonly kv: Kv;
  readonly owner: BootstrappedUser;
  /**
   * Sends a request with the owner's personal key, or another (null: none). `/api/v1` is optional
   * in paths of the API.
   */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The repository's plugins, activated with these settings, and source plugins of the test. */
export async function activated(
  sources: Readonly<Record<string, ActiveSource>> = {},
  file: Record<string, unknown> = {},
  pluginsDir?: string,
): Promise<ActivatedPlugins> {
  const discovery = discover({ root: new URL('../..', import.meta.url).pathname, pluginsDir });
  const resolved = resolveConfig({ env: {}, file, rows: discovery.rows });
  const licence = readLicence({ token: undefined, publicKey: undefined });
  const plugins = await activate({
    discovery,
    resolved,
    licence,
    serviceName: 'gateway-server',
    log: silentLog,
  });
  return { ...plugins, sources: new Map([...plugins.sources, ...Object.entries(sources)]) };
}

export function sourceOf(
  connectionSchema: Record<string, unknown>,
  check: SourcePlugin['check'],
): ActiveSource {
  const plugin: SourcePlugin = {
    check,
    run: () => Promise.reject(new Error('the server runs no source')),
  };
  return {
    manifest: { kind: 'source', name: 'test', module: '' },
    connectionSchema,
    settings: {},
    load: () => Promise.resolve(plugin),
  };
}

export const encryptionKey = randomBytes(32).toString('base64');

export function configOf(db: { url: string }, file: Record<string, unknown> = {}): Config {
  return resolveConfig({
    env: {},
    file: {
      encryption_key: encryptionKey,
      ...file,
      server: { http: { port: 0, bind: '127.0.0.1' }, ...(file['server'] as object | undefined) },
      database: { ...connectionOf(db.url), ...(file['database'] as object | undefined) },
    },
  }).config;
}

export async function startApi({
  sources,
  file,
  log = silentLog,
  metered,
  kv = new MemoryKv(),
  pluginsDir,
}: {
  sources?: Readonly<Record<string, ActiveSource>>;
  file?: Record<string, unknown>;
  log?: Log;
  metered?: Pick<ActivatedPlugins, 'meter' | 'metrics'>;
  kv?: Kv;
  pluginsDir?: string;
} = {}): Promise<Api> {
  const control = await migratedDatabase();
  const db = testShard ? await openedOnShard(control, testShard) : control;
  const owner = await bootstrapUser(db.knex, {
    email: 'owner@example.com',
    firstName: 'o',
    lastName: 'w',
  });
  const config = configOf(db, file);
  const plugins = { ...(await activated(sources, file, pluginsDir)), ...metered };
  const server = await startServer({ config, plugins, log, kv });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    config,
    db,
    kv: testShard ? withQueuesOfShard(kv, testShard) : kv,
    owner,
    async call(method, path, body, { key = owner.api_key.key, headers = {} } = {}) {
      const response = await fetch(
        url + (/^\/(projects|organisations|instance|shards)/.test(path) ? '/api/v1' : '') + path,
        {
          method,
          headers: {
            ...(key === null ? {} : { authorization: `Bearer ${key}` }),
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
          signal: AbortSignal.timeout(30_000),
          ...(body === undefined
            ? {}
            : {
                body: (typeof body === 'string' || Buffer.isBuffer(body)
                  ? body
                  : JSON.stringify(body)) as string,
              }),
        },
      );
      const text = await response.text();
      const json = /json/.test(response.headers.get('content-type') ?? '')
        ? (JSON.parse(text) as Answer['body'])
        : ({} as Answer['body']);
      const { pathname } = new URL(response.url);
      const problem = pathname.startsWith(config.root_path)
        ? undescribed(method, pathname.slice(config.root_path.length), response.status, json)
        : undefined;
      if (problem) throw new Error(problem);
      return { status: response.status, headers: response.headers, text, body: json };
    },
    async close() {
      await server.close();
      await kv.close();
      await db.close();
    },
  };
}

/** Creates a project. Returns the path of its routes, its id and its key. */
export async function makeProject(
  api: Api,
  fields: Record<string, unknown> = {},
): Promise<{ path: string; id: string; key: string }> {
  const { body } = await api.call('POST', '/projects', { name: 'orders', ...fields });
  return { path: `/projects/${body.data.uid}`, id: body.data.uid, key: body.data.api_key.key };
}

export function mistakes({ body }: Answer): string[] {
  return (body.errors ?? []).map(({ field, sentence }) => `${field} ${sentence}`);
}

/** Starts a server that must refuse. Returns the error. */
export async function refusal(config: Config, code: ErrorCode): Promise<Error & { fix: string }> {
  try {
    const started = await within(
      startServer({ config, plugins: await activated(), log: silentLog }),
      30_000,
      'the server to refuse',
    );
    await started.close();
  } catch (error) {
    if (!isGatewayError(error, code)) throw error;
    return error;
  }
  throw new Error(`it started; expected ${code}`);
}
