import { hostname } from 'node:os';
import type { Redis } from 'ioredis';
import {
  TAKE_OVER_MS,
  type Kv,
  type KvSettings,
  type MapChange,
  type MapName,
  type QueueLoad,
  type QueueName,
  type SharedMap,
  type Signal,
  type SignalQueue,
} from './kv.js';
import { MemoryKv } from './memory-kv.js';
import { redisConnector } from './redis-connection.js';
import { withReason } from './redis-errors.js';

const PREFIX = 'gateway:';
const GROUP = 'agents';
/** A blocking read returns this often, so that a connection that died without a word is noticed. */
const BLOCK_MS = 5_000;
/** A connection that does not answer within this, beside what a blocking read blocks, is dead although nobody has closed it. */
const ANSWER_MS = 2_000;
/** What a ping has written is gone after this. */
const PING_MS = 10_000;

/*
 * A bucket, refilled by Redis' own clock so that agents with wrong clocks share it fairly.
 * That clock may be set back, and a number turned into a text by Lua keeps 14 digits, too few for microseconds since 1970: time never runs
 * backwards here, and its digits are asked for.
 * KEYS[1] bucket; ARGV rate per second, wanted, capacity. Returns { granted, wait in ms }.
 */
const TAKE_TOKENS = `
local rate, wanted, capacity = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local state = redis.call('hmget', KEYS[1], 'tokens', 'at')
local elapsed = math.max(0, now - (tonumber(state[2]) or now))
local tokens = math.min(capacity, (tonumber(state[1]) or capacity) + elapsed / 1000 * rate)
local granted = math.min(wanted, math.floor(tokens))
redis.call('hset', KEYS[1], 'tokens', string.format('%.6f', tokens - granted), 'at', string.format('%.3f', now))
redis.call('pexpire', KEYS[1], math.max(10000, math.ceil(capacity / rate * 1000)))
local wait = 0
if granted == 0 then wait = math.ceil((1 - tokens) / rate * 1000) end
return { granted, wait }`;

/* All entries of a map with the time in ms. KEYS[1] hash. */
const READ_MAP = `
local time = redis.call('time')
return { tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), redis.call('hgetall', KEYS[1]) }`;

/*
 * Changes entries that are as they were thought to be. A text begins with = and nothing is the empty string, so that the two are told apart.
 * KEYS[1] hash; ARGV field, from, to, and so on. Returns 1 for each change that was made, else 0.
 */
const CHANGE_MAP = `
local made = {}
for k = 1, #ARGV, 3 do
  local field, from, to = ARGV[k], ARGV[k + 1], ARGV[k + 2]
  local found = redis.call('hget', KEYS[1], field)
  local same = (found and '=' .. found or '') == from
  if same and to == '' then redis.call('hdel', KEYS[1], field) end
  if same and to ~= '' then redis.call('hset', KEYS[1], field, string.sub(to, 2)) end
  made[#made + 1] = same and 1 or 0
end
return made`;
/** Changes of one script, so that no other command waits for long. */
const CHANGES_MAX = 500;

type StreamEntry = [id: string, fields: string[]];

/** KV on Redis 6.2 or newer: one server, one that Sentinels watch, or a Cluster. */
export class RedisKv implements Kv {
  readonly #redis: Redis;
  readonly #connect: () => Redis;
  readonly #takeOverMs: number;
  readonly #blocking = new Set<Redis>();

  constructor(settings: KvSettings, onError: (error: Error) => void, { takeOverMs = TAKE_OVER_MS } = {}) {
    this.#takeOverMs = takeOverMs;
    this.#connect = redisConnector(settings, onError);
    this.#redis = this.#connect();
  }

  queue(name: QueueName): SignalQueue {
    return new RedisQueue(this.#redis, this.#blockingConnections, PREFIX + name, this.#takeOverMs);
  }

  map(name: MapName): SharedMap {
    return new RedisMap(this.#redis, `${PREFIX}map:${name}`);
  }

  async takeTokens(
    bucket: string,
    ratePerSecond: number,
    wanted: number,
    capacity = ratePerSecond,
  ): Promise<{ granted: number; waitMs: number }> {
    const taking = this.#redis.eval(TAKE_TOKENS, 1, `${PREFIX}rate:${bucket}`, ratePerSecond, wanted, capacity);
    const [granted, waitMs] = (await answered(this.#redis, taking)) as [number, number];
    return { granted, waitMs };
  }

  async get(name: string): Promise<string | undefined> {
    return (await answered(this.#redis, this.#redis.get(PREFIX + name))) ?? undefined;
  }

  async set(name: string, text: string, { ttlMs, ifAbsent = false }: { ttlMs: number; ifAbsent?: boolean }): Promise<void> {
    const key = PREFIX + name;
    await answered(this.#redis, ifAbsent ? this.#redis.set(key, text, 'PX', ttlMs, 'NX') : this.#redis.set(key, text, 'PX', ttlMs));
  }

  async ping(): Promise<void> {
    // A write: a Redis whose memory is full, or that has become a replica, answers a PING as ever and is of no use to us.
    await answered(this.#redis, this.#redis.set(`${PREFIX}ping`, '1', 'PX', PING_MS));
  }

  info(): Promise<string> {
    return answered(this.#redis, this.#redis.info());
  }

  close(): Promise<void> {
    for (const connection of [this.#redis, ...this.#blocking]) connection.disconnect();
    return Promise.resolve();
  }

  /** A blocking read holds its connection and ends only with it, so each queue that is pulled has one of its own. */
  readonly #blockingConnections: BlockingConnections = {
    open: () => {
      const redis = this.#connect();
      this.#blocking.add(redis);
      return redis;
    },
    close: (redis) => {
      this.#blocking.delete(redis);
      redis.disconnect();
    },
  };
}

interface BlockingConnections {
  open(): Redis;
  close(redis: Redis): void;
}

class RedisMap implements SharedMap {
  readonly #redis: Redis;
  readonly #key: string;

  constructor(redis: Redis, key: string) {
    this.#redis = redis;
    this.#key = key;
  }

  async all(): Promise<{ nowMs: number; entries: ReadonlyMap<string, string> }> {
    const [nowMs, flat] = (await answered(this.#redis, this.#redis.eval(READ_MAP, 1, this.#key))) as [number, string[]];
    const entries = new Map<string, string>();
    for (let k = 0; k < flat.length; k += 2) entries.set(flat[k]!, flat[k + 1]!);
    return { nowMs, entries };
  }

  async change(changes: readonly MapChange[]): Promise<boolean[]> {
    const made: boolean[] = [];
    for (let k = 0; k < changes.length; k += CHANGES_MAX) {
      const texts = changes.slice(k, k + CHANGES_MAX).flatMap(({ field, from, to }) => [field, textOrNothing(from), textOrNothing(to)]);
      const answer = (await answered(this.#redis, this.#redis.eval(CHANGE_MAP, 1, this.#key, ...texts))) as number[];
      for (const one of answer) made.push(one === 1);
    }
    return made;
  }
}

function textOrNothing(text: string | undefined): string {
  return text === undefined ? '' : `=${text}`;
}

/**
 * A stream with one consumer group. Entries are deleted when done, so the length of the stream is what is not done.
 */
class RedisQueue implements SignalQueue {
  readonly #redis: Redis;
  readonly #connections: BlockingConnections;
  readonly #key: string;
  readonly #takeOverMs: number;
  readonly #consumer = `${hostname()}:${process.pid}`;
  #blocking: Redis | undefined;
  #takeOverAtMs = 0;

  constructor(redis: Redis, connections: BlockingConnections, key: string, takeOverMs: number) {
    this.#redis = redis;
    this.#connections = connections;
    this.#key = key;
    this.#takeOverMs = takeOverMs;
  }

  async push(texts: readonly string[]): Promise<void> {
    const pipeline = this.#redis.pipeline();
    for (const text of texts) pipeline.xadd(this.#key, '*', 't', text);
    throwFailed(await answered(this.#redis, pipeline.exec()));
  }

  async pull(limit: number, signal: AbortSignal): Promise<Signal[]> {
    if (signal.aborted) return [];
    const connection = (this.#blocking ??= this.#connections.open());
    const abort = () => {
      this.#blocking = undefined;
      this.#connections.close(connection);
    };
    signal.addEventListener('abort', abort);
    try {
      if (connection.status !== 'ready') await connected(connection, signal);
      return await this.#pullFrom(connection, limit, signal);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async #pullFrom(connection: Redis, limit: number, signal: AbortSignal): Promise<Signal[]> {
    while (!signal.aborted) {
      try {
        const abandoned = await this.#takeOver(limit);
        if (abandoned.length > 0) return abandoned;
        const blockMs = Math.min(BLOCK_MS, this.#takeOverMs);
        const reading = connection.xreadgroup('GROUP', GROUP, this.#consumer, 'COUNT', limit, 'BLOCK', blockMs, 'STREAMS', this.#key, '>');
        const answer = (await answered(connection, reading, blockMs + ANSWER_MS)) as [key: string, entries: StreamEntry[]][] | null;
        const entries = answer?.[0]?.[1];
        if (entries?.length) return entries.map(signalOf);
      } catch (error) {
        if (signal.aborted) break;
        // The stream is new, or KV was emptied, perhaps while the read was blocked.
        if (!/NOGROUP|UNBLOCKED/.test(String(error))) throw error;
        await answered(this.#redis, this.#redis.xgroup('CREATE', this.#key, GROUP, '0', 'MKSTREAM')).catch((e: unknown) => {
          if (!String(e).includes('BUSYGROUP')) throw e;
        });
      }
    }
    return [];
  }

  async done(tickets: readonly string[]): Promise<void> {
    if (tickets.length === 0) return;
    const pipeline = this.#redis
      .pipeline()
      .xack(this.#key, GROUP, ...tickets)
      .xdel(this.#key, ...tickets);
    throwFailed(await answered(this.#redis, pipeline.exec()));
  }

  depth(): Promise<number> {
    return answered(this.#redis, this.#redis.xlen(this.#key));
  }

  async load(): Promise<QueueLoad> {
    const results = await answered(this.#redis, this.#redis.pipeline().xlen(this.#key).xpending(this.#key, GROUP).exec());
    const [length, pending] = results ?? [];
    if (length?.[0]) throw length[0];
    // Nobody has pulled yet: there is no group, or no stream.
    if (pending?.[0] && !/NOGROUP/.test(pending[0].message)) throw pending[0];
    const all = Number(length?.[1] ?? 0);
    // An entry that somebody else acknowledged between the two counts may be in the one and not in the other.
    const pulled = Math.min(all, pending?.[0] ? 0 : Number((pending?.[1] as [number] | undefined)?.[0] ?? 0));
    return { waiting: all - pulled, pulled };
  }

  /** What a dead agent held. Looked for once per period, not at every pull. */
  async #takeOver(limit: number): Promise<Signal[]> {
    const nowMs = performance.now();
    if (nowMs < this.#takeOverAtMs) return [];
    this.#takeOverAtMs = nowMs + this.#takeOverMs;
    const claiming = this.#redis.xautoclaim(this.#key, GROUP, this.#consumer, this.#takeOverMs, '0', 'COUNT', limit);
    const [, entries] = (await answered(this.#redis, claiming)) as [string, (StreamEntry | null)[]];
    if (entries.length === limit) this.#takeOverAtMs = 0;
    // Redis 6 answers with nothing in the place of an entry that was deleted meanwhile.
    return entries.flatMap((entry) => (entry?.[1] ? signalOf(entry) : []));
  }
}

/** The answer of a command; when none comes, the connection is replaced and the command fails. */
async function answered<T>(redis: Redis, command: Promise<T>, withinMs = ANSWER_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      redis.disconnect(true);
      reject(new Error(`KV did not answer within ${withinMs} ms`));
    }, withinMs);
  });
  try {
    return await Promise.race([command, late]);
  } catch (error) {
    throw withReason(redis, error);
  } finally {
    clearTimeout(timer);
  }
}

function throwFailed(results: [error: Error | null, result: unknown][] | null): void {
  const failed = results?.find(([error]) => error)?.[0];
  if (failed) throw failed;
}

function signalOf([ticket, fields]: StreamEntry): Signal {
  // https://redis.io/docs/latest/develop/data-types/streams/#entry-ids: the time, a dash, and a number.
  return { ticket, text: fields[1] ?? '', pushedAtMs: parseInt(ticket, 10) };
}

/** Resolves when the connection is ready or the signal aborts; rejects when it stays away for a block. */
function connected(redis: Redis, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(() => reject(new Error('KV is not connected'))), BLOCK_MS);
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

/**
 * Opens KV; connects in the background, so that a gateway starts and works (more slowly) while KV is away.
 *
 * @throws GatewayError `tls_file` when a file of `kv.tls` cannot be used
 */
export function openKv(settings: KvSettings, onError: (error: Error) => void): Kv {
  return settings.type === 'in-memory' ? new MemoryKv() : new RedisKv(settings, onError);
}
