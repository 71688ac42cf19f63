import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { findApiKey, findProject, type ProjectRow, type StoredApiKey } from '@gateway/store/config';
import { organisationsOfUser, type Membership } from '@gateway/store/people';
import { KV_VERSIONS } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { KvFallback } from '../health/kv-fallback.js';

/**
 * Caches the records that authenticate a request. Missing keys too, in memory: masks are random, so
 * no client uses a key before it exists.
 */
export interface RecordCache {
  apiKey(mask: string): Promise<StoredApiKey | undefined>;
  organisations(userId: string): Promise<Membership[]>;
  project(id: string): Promise<ProjectRow | undefined>;
  /**
   * Call it before the response, after a write that changes a project or users' organisations, or
   * revokes keys.
   */
  forget(changed: {
    readonly project?: string;
    readonly masks?: readonly string[];
    readonly users?: readonly string[];
  }): Promise<void>;
}

const MEMORY_MS = 1_000;
const RECORDS_MAX = 10_000;
/** Longest age of an entry, and so of a change that could not be written to KV. */
const KV_MS = 30_000;

const SIGNATURE_BYTES = 32;
const CHANGED = 'changed';

/**
 * Caches records for `memoryMs` in memory, and in KV, if given, which servers share. A server sees
 * its own changes immediately, others' after `memoryMs`. `key` signs entries: write access to KV
 * must not grant access to the API.
 */
export function recordCache(
  { knex }: Pick<Database, 'knex'>,
  {
    kv,
    key,
    memoryMs = MEMORY_MS,
  }: { kv: KvFallback | undefined; key: KeyObject; memoryMs?: number },
): RecordCache {
  /** Ordered by expiry. Concurrent callers share running lookups. */
  const memory = new Map<string, { readonly value: Promise<unknown>; readonly untilMs: number }>();
  /**
   * Kept until older entries in KV have expired: the mark of the change may not have reached KV.
   */
  const changed = new Map<string, { readonly untilMs: number }>();

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
    // An invalid entry marks a change or is another release's, and remains.
    if (found && loaded !== undefined && text === undefined) {
      const entry = entryOf(name, loaded, { key, untilMs: Date.now() + KV_MS });
      void kv.ask((it) => it.set(name, entry, { ttlMs: KV_MS, ifAbsent: true }));
    }
    return loaded;
  }

  return {
    apiKey: (mask) => cached(keyName(mask), () => findApiKey(knex, mask), { keepsMissing: true }),
    organisations: async (userId) =>
      (await cached(organisationsName(userId), () => organisationsOfUser(knex, userId))) ?? [],
    project: (id) => cached(projectName(id), () => findProject(knex, id)),
    async forget({ project, masks = [], users = [] }) {
      const names = [
        ...(project === undefined ? [] : [projectName(project)]),
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
      // Marked, not deleted: a read that began before the change could write its entry afterwards.
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
 * Signed with name, expiry and version, so other releases reject it. Not encrypted: entries hold no
 * secret, and at this rate the random nonces of AES-GCM would repeat.
 */
function entryOf(
  name: string,
  value: unknown,
  { key, untilMs }: { key: KeyObject; untilMs: number },
): string {
  const bytes = serialize({ name, untilMs, value });
  return Buffer.concat([signature(bytes, key), bytes]).toString('base64');
}

/** Returns undefined for expired entries and other keys, versions or names. */
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
    // A newer Node wrote it.
    return undefined;
  }
}

function signature(bytes: Buffer, key: KeyObject): Buffer {
  return createHmac('sha256', key).update(`record ${KV_VERSIONS.record}\n`).update(bytes).digest();
}
