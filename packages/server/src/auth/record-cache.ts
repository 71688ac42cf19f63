import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { findApiKey, findProject, type ProjectRow, type StoredApiKey } from '@gateway/store/config';
import { organisationsOfUser, type Membership } from '@gateway/store/people';
import { KV_VERSIONS } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import type { KvFallback } from '../health/kv-fallback.js';

/** Caches the records that authenticate a request. Of missing ones only keys are cached, in memory: their masks are random, so no one asks for a key before it exists. */
export interface RecordCache {
  apiKey(mask: string): Promise<StoredApiKey | undefined>;
  organisations(userId: string): Promise<Membership[]>;
  project(id: string): Promise<ProjectRow | undefined>;
  /** Call it after a write that changes a project or the organisations of users, or revokes keys, before the response. */
  forget(changed: { readonly project?: string; readonly masks?: readonly string[]; readonly users?: readonly string[] }): Promise<void>;
}

const MEMORY_MS = 1_000;
/** In memory; the oldest are dropped beyond it. */
const RECORDS_MAX = 10_000;
/** Longest age of an entry in KV, and so of a change that could not be written there. */
const KV_MS = 30_000;

const SIGNATURE_BYTES = 32;
/** Replaces the entry of a changed record. */
const CHANGED = 'changed';

/**
 * Caches records in memory for a moment, and in KV, if given, which the servers share. A server sees its own changes at once, those of others after that moment.
 * `key` signs entries in KV, so that write access to KV does not grant access to the API.
 */
export function recordCache(
  { knex }: Pick<Database, 'knex'>,
  { kv, key, memoryMs = MEMORY_MS }: { kv: KvFallback | undefined; key: KeyObject; memoryMs?: number },
): RecordCache {
  /** Ordered by expiry. Includes lookups that are still running: concurrent callers share them. */
  const memory = new Map<string, { readonly value: Promise<unknown>; readonly untilMs: number }>();
  /** Records changed by this server, until no older entry can be left in KV: the mark of the change may not have reached it. */
  const changed = new Map<string, { readonly untilMs: number }>();

  function cached<T>(name: string, load: () => Promise<T | undefined>, { keepsMissing = false } = {}): Promise<T | undefined> {
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

  async function shared<T>(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    if (!kv || (changed.get(name)?.untilMs ?? 0) > performance.now()) return load();
    const found = await kv.ask((it) => it.get(name));
    const text = found?.answer;
    const known = text === undefined ? undefined : (valueOf(name, text, key) as T | undefined);
    if (known !== undefined) return known;
    const loaded = await load();
    // An invalid entry that exists marks a change, or is that of a server of another release, and stays.
    if (found && loaded !== undefined && text === undefined) {
      const entry = entryOf(name, loaded, { key, untilMs: Date.now() + KV_MS });
      void kv.ask((it) => it.set(name, entry, { ttlMs: KV_MS, ifAbsent: true }));
    }
    return loaded;
  }

  return {
    apiKey: (mask) => cached(keyName(mask), () => findApiKey(knex, mask), { keepsMissing: true }),
    organisations: async (userId) => (await cached(organisationsName(userId), () => organisationsOfUser(knex, userId))) ?? [],
    project: (id) => cached(projectName(id), () => findProject(knex, id)),
    async forget({ project, masks = [], users = [] }) {
      const names = [...(project === undefined ? [] : [projectName(project)]), ...masks.map(keyName), ...users.map(organisationsName)];
      for (const name of names) memory.delete(name);
      if (!kv) return;
      const nowMs = performance.now();
      forgetExpired(changed, nowMs);
      for (const name of names) {
        changed.delete(name);
        changed.set(name, { untilMs: nowMs + KV_MS });
      }
      // Marked, not deleted: a read that began before the change may otherwise write its entry after it.
      await Promise.all(names.map((name) => kv.ask((it) => it.set(name, CHANGED, { ttlMs: KV_MS }))));
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

/** Signed with its name, expiry and version: a server of another release takes it for invalid. Not encrypted: entries hold no secret, and at this rate the random nonces of AES-GCM would repeat. */
function entryOf(name: string, value: unknown, { key, untilMs }: { key: KeyObject; untilMs: number }): string {
  const bytes = serialize({ name, untilMs, value });
  return Buffer.concat([signature(bytes, key), bytes]).toString('base64');
}

/** Undefined for an entry with another key, version or name, or that has expired. */
function valueOf(name: string, text: string, key: KeyObject): unknown {
  const all = Buffer.from(text, 'base64');
  const bytes = all.subarray(SIGNATURE_BYTES);
  if (all.length <= SIGNATURE_BYTES || !timingSafeEqual(all.subarray(0, SIGNATURE_BYTES), signature(bytes, key))) return undefined;
  try {
    const entry = deserialize(bytes) as { name: string; untilMs: number; value: unknown };
    return entry.name === name && entry.untilMs > Date.now() ? entry.value : undefined;
  } catch {
    // Written by a newer Node.
    return undefined;
  }
}

function signature(bytes: Buffer, key: KeyObject): Buffer {
  return createHmac('sha256', key).update(`record ${KV_VERSIONS.record}\n`).update(bytes).digest();
}
