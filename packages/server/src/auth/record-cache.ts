import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { findApiKey, findProject, type ProjectRow, type StoredApiKey } from '@gateway/store/config';
import { organisationsOfUser, type Membership } from '@gateway/store/people';
import type { IntakeConfig } from '@gateway/ingest/routing/config-cache';
import type { Project } from '@gateway/ingest/routing/project';
import { type KvFallback, KV_VERSIONS } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';

/**
 * Records that authenticate requests. Missing keys are cached too, but only in memory: masks are
 * random, so no client uses a key before it exists.
 */
export interface RecordCache {
  apiKey(mask: string): Promise<StoredApiKey | undefined>;
  organisations(userId: string): Promise<Membership[]>;
  project(id: string): Promise<ProjectRow | undefined>;
  /**
   * Call after a write that changes a project or users' organisations, or revokes keys, and before
   * the response.
   */
  forget(changed: {
    readonly project?: string;
    readonly masks?: readonly string[];
    readonly users?: readonly string[];
  }): Promise<void>;
}

const MEMORY_MS = 1_000;
const RECORDS_MAX = 10_000;
/** A change that could not be written to KV takes effect after at most this time. */
const KV_MS = 30_000;

const SIGNATURE_BYTES = 32;
const CHANGED = 'changed';

/**
 * Keeps records in memory for `memoryMs`, and in `kv`, shared by all servers. A server sees its own
 * changes immediately, and those of others within `memoryMs`. Entries in KV are signed with `key`:
 * write access to KV must not grant access to the API.
 *
 * @param database its `knex` is loaded on first use: an agent that gets no posts starts without it
 * @param options.configCache the record of a project is kept as long as its configuration is
 *   current, so that many projects cost no more than one
 */
export function recordCache(
  database: Pick<Database, 'knex'>,
  {
    kv,
    key,
    configCache,
    memoryMs = MEMORY_MS,
  }: {
    kv: KvFallback | undefined;
    key: KeyObject;
    configCache?: Pick<IntakeConfig, 'isCurrent' | 'projects'>;
    memoryMs?: number;
  },
): RecordCache {
  /** Ordered by expiry. Concurrent callers share a running lookup. */
  const memory = new Map<string, { readonly value: Promise<unknown>; readonly untilMs: number }>();
  /**
   * Not read from KV until older entries there have expired, because the change may not have been
   * marked in KV.
   */
  const changed = new Map<string, { readonly untilMs: number }>();

  /**
   * Each record of a project was read after its configuration, so it is not older. `currentAtMs` is
   * when the configuration was last current.
   */
  const ofConfig = new WeakMap<
    Project,
    { readonly value: Promise<ProjectRow | undefined>; currentAtMs: number }
  >();

  async function project(id: string): Promise<ProjectRow | undefined> {
    const nowMs = performance.now();
    const config = configCache?.projects.get(id);
    const known = config && ofConfig.get(config);
    const lookUp = () => cached(projectName(id), () => findProject(database.knex, id));
    if (!config || !configCache?.isCurrent(id)) {
      // While Postgres is unavailable, the record is valid as long as one in KV.
      if (!known || nowMs - known.currentAtMs > KV_MS) return lookUp();
      return lookUp().catch(() => known.value);
    }
    if (known) {
      known.currentAtMs = nowMs;
      return known.value;
    }
    const value = findProject(database.knex, id).catch(() => {
      if (ofConfig.get(config)?.value === value) ofConfig.delete(config);
      return lookUp();
    });
    ofConfig.set(config, { value, currentAtMs: nowMs });
    return value;
  }

  function cached<T>(
    name: string,
    load: () => Promise<T | undefined>,
    { keepsMissing = false } = {},
  ): Promise<T | undefined> {
    const nowMs = performance.now();
    const known = memory.get(name);
    if (known && known.untilMs > nowMs) return known.value as Promise<T | undefined>;
    forgetExpired(memory, nowMs);
    const value = shared(name, load);
    memory.set(name, { value, untilMs: nowMs + memoryMs });
    const [oldest] = memory.keys();
    if (memory.size > RECORDS_MAX && oldest !== undefined) memory.delete(oldest);
    const drop = () => {
      if (memory.get(name)?.value === value) memory.delete(name);
    };
    value.then((found) => found ?? (keepsMissing || drop()), drop);
    return value;
  }

  async function shared<T>(
    name: string,
    load: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    if (!kv || (changed.get(name)?.untilMs ?? 0) > performance.now()) return load();
    const found = await kv.ask((it) => it.get(name));
    const text = found?.answer;
    const known = text === undefined ? undefined : (valueOf(name, text, key) as T | undefined);
    if (known !== undefined) return known;
    const loaded = await load();
    // An invalid entry marks a change or belongs to another release. It is not overwritten.
    if (found && loaded !== undefined && text === undefined) {
      const entry = entryOf(name, loaded, { key, untilMs: Date.now() + KV_MS });
      void kv.ask((it) => it.set(name, entry, { ttlMs: KV_MS, ifAbsent: true }));
    }
    return loaded;
  }

  return {
    apiKey: (mask) =>
      cached(keyName(mask), () => findApiKey(database.knex, mask), { keepsMissing: true }),
    organisations: async (userId) =>
      (await cached(organisationsName(userId), () => organisationsOfUser(database.knex, userId))) ??
      [],
    project,
    async forget({ project: id, masks = [], users = [] }) {
      const config = id === undefined ? undefined : configCache?.projects.get(id);
      if (config) ofConfig.delete(config);
      const names = [
        ...(id === undefined ? [] : [projectName(id)]),
        ...masks.map(keyName),
        ...users.map(organisationsName),
      ];
      for (const name of names) memory.delete(name);
      if (!kv) return;
      const nowMs = performance.now();
      forgetExpired(changed, nowMs);
      for (const name of names) {
        changed.delete(name);
        changed.set(name, { untilMs: nowMs + KV_MS });
      }
      // Marked instead of deleted: a read that began before the change could write its entry
      // afterwards.
      await Promise.all(
        names.map((name) => kv.ask((it) => it.set(name, CHANGED, { ttlMs: KV_MS }))),
      );
    },
  };
}

function forgetExpired(map: Map<string, { readonly untilMs: number }>, nowMs: number): void {
  for (const [name, { untilMs }] of map) {
    if (untilMs > nowMs) return;
    map.delete(name);
  }
}

const projectName = (id: string) => `cache:project:${id}`;
const organisationsName = (userId: string) => `cache:organisations:${userId}`;
const keyName = (mask: string) => `cache:key:${mask}`;

/**
 * The signature covers the name, the expiry and the version, so other releases reject the entry.
 * Not encrypted: it contains no secret, and at this rate the random nonces of AES-GCM would repeat.
 */
function entryOf(
  name: string,
  value: unknown,
  { key, untilMs }: { key: KeyObject; untilMs: number },
): string {
  const bytes = serialize({ name, untilMs, value });
  return Buffer.concat([signature(bytes, key), bytes]).toString('base64');
}

/** Undefined if the entry has expired or has another key, version or name. */
function valueOf(name: string, text: string, key: KeyObject): unknown {
  const all = Buffer.from(text, 'base64');
  const bytes = all.subarray(SIGNATURE_BYTES);
  if (
    all.length <= SIGNATURE_BYTES ||
    !timingSafeEqual(all.subarray(0, SIGNATURE_BYTES), signature(bytes, key))
  )
    return undefined;
  try {
    const entry = deserialize(bytes) as { name: string; untilMs: number; value: unknown };
    return entry.name === name && entry.untilMs > Date.now() ? entry.value : undefined;
  } catch {
    // Written by a newer version of Node, whose format can be unreadable here.
    return undefined;
  }
}

function signature(bytes: Buffer, key: KeyObject): Buffer {
  return createHmac('sha256', key).update(`record ${KV_VERSIONS.record}\n`).update(bytes).digest();
}
