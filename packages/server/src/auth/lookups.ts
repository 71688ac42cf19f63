import { createHmac, timingSafeEqual } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import {
  findApiKey,
  findProject,
  organisationsOfUser,
  type OrganisationRow,
  type ProjectRow,
  type StoredApiKey,
} from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import type { PatientKv } from '../health/kv-fallback.js';

/**
 * What each request looks up to know who asks and for what, from a cache before Postgres. What is not there is never cached: a key that was just made
 * works at once.
 */
export interface Lookups {
  apiKey(mask: string): Promise<StoredApiKey | undefined>;
  organisations(userId: string): Promise<OrganisationRow[]>;
  project(id: string): Promise<ProjectRow | undefined>;
  /** To be called after a write that changes a project or revokes keys, before the write is answered. */
  forget(changed: { readonly project: string; readonly masks?: readonly string[] }): Promise<void>;
}

/** What is kept in memory may be as it was before somebody else changed it for so long. */
const OWN_MS = 1_000;
/** Life of an entry in KV: so long a change may stay unseen that could not be told there. */
const SHARED_MS = 30_000;

const SIGNATURE_BYTES = 32;
/** In the place of what has changed. */
const CHANGED = 'changed';

/**
 * Keeps what was found in memory for a moment, so that not each request waits for KV, and before Postgres asks KV, where the servers share it. A change is
 * seen at once by the server that has made it, and by the others when their moment is over.
 *
 * @param kv where the servers share; without it each asks Postgres once in a moment
 * @param key entries in KV are signed with it: who may write KV can make no API key there, and hand no project to another
 * @param ownMs 0 keeps nothing in memory
 */
export function cachedLookups({
  database: { knex },
  kv,
  key,
  ownMs = OWN_MS,
}: {
  database: Pick<Database, 'knex'>;
  kv: PatientKv | undefined;
  key: Buffer;
  ownMs?: number;
}): Lookups {
  /** In the order of their ends. A lookup under way is there too: whoever asks meanwhile waits for the same answer. */
  const own = new Map<string, { readonly value: Promise<unknown>; readonly untilMs: number }>();
  /** What has changed here, with the time until which KV may have an entry of before: it may have been away when it was told. */
  const changedUntilMs = new Map<string, number>();

  function cached<T>(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const nowMs = performance.now();
    const known = own.get(name);
    if (known && known.untilMs > nowMs) return known.value as Promise<T | undefined>;
    forgetEnded(own, nowMs, ({ untilMs }) => untilMs);
    const value = shared(name, load);
    own.set(name, { value, untilMs: nowMs + ownMs });
    const drop = () => {
      if (own.get(name)?.value === value) own.delete(name);
    };
    value.then((found) => found ?? drop(), drop);
    return value;
  }

  async function shared<T>(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    if (!kv || (changedUntilMs.get(name) ?? 0) > performance.now()) return load();
    const found = await kv.ask((it) => it.get(name));
    const text = found?.answer;
    const known = text === undefined ? undefined : (valueOf(name, text, key) as T | undefined);
    if (known !== undefined) return known;
    const loaded = await load();
    // A text that is there all the same marks a change, and stays.
    if (found && loaded !== undefined && text === undefined) {
      const entry = entryOf(name, loaded, { key, untilMs: Date.now() + SHARED_MS });
      void kv.ask((it) => it.set(name, entry, { ttlMs: SHARED_MS, ifAbsent: true }));
    }
    return loaded;
  }

  return {
    apiKey: (mask) => cached(keyName(mask), () => findApiKey(knex, mask)),
    organisations: async (userId) => (await cached(`cache:organisations:${userId}`, () => organisationsOfUser(knex, userId))) ?? [],
    project: (id) => cached(projectName(id), () => findProject(knex, id)),
    async forget({ project, masks = [] }) {
      const names = [projectName(project), ...masks.map(keyName)];
      for (const name of names) own.delete(name);
      if (!kv) return;
      const nowMs = performance.now();
      forgetEnded(changedUntilMs, nowMs, (untilMs) => untilMs);
      for (const name of names) {
        changedUntilMs.delete(name);
        changedUntilMs.set(name, nowMs + SHARED_MS);
      }
      // Not deleted but marked for as long as an entry lives: a read that began before the change may come to its end, and to its entry, after it.
      await Promise.all(names.map((name) => kv.ask((it) => it.set(name, CHANGED, { ttlMs: SHARED_MS }))));
    },
  };
}

/** Of a map in the order of the ends, what is over. */
function forgetEnded<T>(map: Map<string, T>, nowMs: number, endOf: (value: T) => number): void {
  for (const [name, value] of map) {
    if (endOf(value) > nowMs) return;
    map.delete(name);
  }
}

const projectName = (id: string) => `cache:project:${id}`;
const keyName = (mask: string) => `cache:key:${mask}`;

/**
 * The value with its name and its end, and a signature over the three: an entry is good under its own name alone, and not beyond its time. Signed and not
 * encrypted: entries hold no secret, and at the rate of a cache the random nonces of AES-GCM would come to repeat.
 */
function entryOf(name: string, value: unknown, { key, untilMs }: { key: Buffer; untilMs: number }): string {
  const bytes = serialize({ name, untilMs, value });
  return Buffer.concat([signature(bytes, key), bytes]).toString('base64');
}

/** Undefined for what was not signed with this key, for this name, or is over. */
function valueOf(name: string, text: string, key: Buffer): unknown {
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

function signature(bytes: Buffer, key: Buffer): Buffer {
  return createHmac('sha256', key).update(bytes).digest();
}
