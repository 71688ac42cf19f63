import { hostname } from 'node:os';
import type { Redis } from 'ioredis';
import type { Signal, SignalQueue } from './kv.js';
import { ANSWER_MS, answered } from './redis-connection.js';

export const GROUP = 'agents';
/** Bounds how long a half-open connection goes undetected. */
const BLOCK_MS = 5_000;
/** Per script, so that none blocks Redis for long. */
export const CHANGES_MAX = 500;

/*
 * Scripts, not ioredis pipelines: through young-generation garbage collections a dead pipeline
 * retains the next one, and full collections, with pauses of milliseconds, become several times as
 * frequent.
 * KEYS[1] stream; ARGV texts, or the group and ids.
 */
const PUSH = `for _, text in ipairs(ARGV) do redis.call('xadd', KEYS[1], '*', 't', text) end`;
const DONE = `
redis.call('xack', KEYS[1], unpack(ARGV))
redis.call('xdel', KEYS[1], unpack(ARGV, 2))`;

type StreamEntry = [id: string, fields: string[]];

export async function acknowledge(
  redis: Redis,
  key: string,
  tickets: readonly string[],
): Promise<void> {
  for (let k = 0; k < tickets.length; k += CHANGES_MAX)
    await answered(redis, redis.eval(DONE, 1, key, GROUP, ...tickets.slice(k, k + CHANGES_MAX)));
}

/** A stream with one consumer group. Done entries are deleted: its length is the queue depth. */
export function redisQueue(
  redis: Redis,
  {
    key,
    takeOverMs,
    connectBlocking,
    done,
  }: {
    key: string;
    takeOverMs: number;
    connectBlocking: () => Redis;
    done(key: string, tickets: readonly string[]): void;
  },
): SignalQueue {
  const consumer = `${hostname()}:${process.pid}`;
  let blocking: Redis | undefined;
  let takeOverAtMs = 0;

  /** Takes the signals of dead agents, once per takeover period. */
  async function takeOver(limit: number): Promise<Signal[]> {
    const nowMs = performance.now();
    if (nowMs < takeOverAtMs) return [];
    takeOverAtMs = nowMs + takeOverMs;
    const claiming = redis.xautoclaim(key, GROUP, consumer, takeOverMs, '0', 'COUNT', limit);
    const [, entries] = (await answered(redis, claiming)) as [string, (StreamEntry | null)[]];
    if (entries.length === limit) takeOverAtMs = 0;
    // Skip deleted entries, which Redis 6 returns as null.
    return entries.flatMap((entry) => (entry?.[1] ? signalOf(entry) : []));
  }

  async function pullFrom(
    connection: Redis,
    limit: number,
    signal: AbortSignal,
  ): Promise<Signal[]> {
    while (!signal.aborted) {
      try {
        const abandoned = await takeOver(limit);
        if (abandoned.length > 0) return abandoned;
        const blockMs = Math.min(BLOCK_MS, takeOverMs);
        const reading = connection.xreadgroup(
          'GROUP',
          GROUP,
          consumer,
          'COUNT',
          limit,
          'BLOCK',
          blockMs,
          'STREAMS',
          key,
          '>',
        );
        const answer = (await answered(connection, reading, blockMs + ANSWER_MS)) as
          [key: string, entries: StreamEntry[]][] | null;
        const entries = answer?.[0]?.[1];
        if (entries?.length) return entries.map(signalOf);
      } catch (error) {
        if (signal.aborted) break;
        // The group is missing if the stream is new or Redis was flushed, possibly during the
        // blocking read.
        if (!/NOGROUP|UNBLOCKED/.test(String(error))) throw error;
        await answered(redis, redis.xgroup('CREATE', key, GROUP, '0', 'MKSTREAM')).catch(
          (e: unknown) => {
            if (!String(e).includes('BUSYGROUP')) throw e;
          },
        );
      }
    }
    return [];
  }

  return {
    async push(texts) {
      if (texts.length === 1)
        return void (await answered(redis, redis.xadd(key, '*', 't', texts[0]!)));
      for (let k = 0; k < texts.length; k += CHANGES_MAX)
        await answered(redis, redis.eval(PUSH, 1, key, ...texts.slice(k, k + CHANGES_MAX)));
    },
    async pull(limit, signal) {
      if (signal.aborted) return [];
      const connection = (blocking ??= connectBlocking());
      const abort = () => {
        blocking = undefined;
        connection.disconnect();
      };
      signal.addEventListener('abort', abort);
      try {
        if (connection.status !== 'ready') await connected(connection, signal);
        return await pullFrom(connection, limit, signal);
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },
    done: async (tickets) => done(key, tickets),
    depth: () => answered(redis, redis.xlen(key)),
    async load() {
      const results = await answered(redis, redis.pipeline().xlen(key).xpending(key, GROUP).exec());
      const [length, pending] = results ?? [];
      if (length?.[0]) throw length[0];
      // Ignore a missing group, because the first pull creates it.
      if (pending?.[0] && !/NOGROUP/.test(pending[0].message)) throw pending[0];
      const all = Number(length?.[1] ?? 0);
      // An entry may be acknowledged between the two counts.
      const pulled = Math.min(
        all,
        pending?.[0] ? 0 : Number((pending?.[1] as [number] | undefined)?.[0] ?? 0),
      );
      return { waiting: all - pulled, pulled };
    },
  };
}

function signalOf([ticket, fields]: StreamEntry): Signal {
  // An entry id is its time in epoch milliseconds, a dash and a number:
  // https://redis.io/docs/latest/develop/data-types/streams/#entry-ids
  return { ticket, text: fields[1] ?? '', pushedAtMs: parseInt(ticket, 10) };
}

/** Rejects after `BLOCK_MS`. */
function connected(redis: Redis, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => settle(() => reject(new Error('KV is not connected'))),
      BLOCK_MS,
    );
    const ready = () => settle(resolve);
    const settle = (end: () => void) => {
      clearTimeout(timer);
      redis.off('ready', ready);
      signal.removeEventListener('abort', ready);
      end();
    };
    redis.on('ready', ready);
    signal.addEventListener('abort', ready);
  });
}
