import type { Redis } from 'ioredis';
import { TAKE_OVER_MS } from './kv.js';
import type { Kv, KvSettings, QueueName, SharedMap, SignalQueue } from './kv.js';
import { MemoryKv } from './memory-kv.js';
import { answered, redisConnector } from './redis-connection.js';
import { acknowledge, CHANGES_MAX, GROUP, redisQueue } from './redis-queue.js';

const PREFIX = 'gateway:';
const PING_MS = 10_000;

/*
 * A token bucket, refilled by Redis' clock: agents with wrong clocks share it fairly. Elapsed time
 * is never negative, even if that clock is set back. Lua formats numbers with 14 digits, too few
 * for microseconds since 1970.
 * KEYS[1] bucket; ARGV rate per second, wanted, capacity. Returns { granted, wait in ms, left }.
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
return { granted, wait, math.floor(tokens - granted) }`;

/* All entries of a map and the time in ms. KEYS[1] hash. */
const READ_MAP = `
local time = redis.call('time')
return { tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), redis.call('hgetall', KEYS[1]) }`;

/* Some entries of a map, the number of all, and the time in ms. KEYS[1] hash; ARGV fields. */
const READ_SOME = `
local time = redis.call('time')
local texts = {}
for k = 1, #ARGV do texts[k] = redis.call('hget', KEYS[1], ARGV[k]) end
return { tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), redis.call('hlen', KEYS[1]), texts }`;

/*
 * Compare-and-set of entries. A text is sent with a leading =, no entry as the empty string.
 * KEYS[1] hash; ARGV field, from, to, and so on. Returns 1 for each applied change, else 0.
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

/*
 * Runs every kind of command that the gateway uses, to detect a restrictive ACL early. Redis 7.0
 * and older do not name the command that a script may not call.
 * KEYS a string, a hash, a stream, in one slot; ARGV the group.
 */
const TRY_ALL = `
local refused
local function try(name, ...)
  local got = redis.pcall(name, ...)
  local failed = type(got) == 'table' and got.err
  if failed and not refused and not string.find(failed, 'BUSYGROUP') then refused = redis.error_reply(failed .. " (the '" .. name .. "' command)") end
  return failed and '0-0' or got
end
try('time')
try('set', KEYS[1], '1', 'px', 10000)
try('get', KEYS[1])
try('mget', KEYS[1])
try('hset', KEYS[2], 'a', '1')
try('hget', KEYS[2], 'a')
try('hmget', KEYS[2], 'a')
try('hgetall', KEYS[2])
try('pexpire', KEYS[2], 10000)
try('hdel', KEYS[2], 'a')
try('xgroup', 'create', KEYS[3], ARGV[1], '$', 'mkstream')
local id = try('xadd', KEYS[3], '*', 't', '')
try('xreadgroup', 'group', ARGV[1], 'ping', 'count', 10, 'streams', KEYS[3], '>')
try('xautoclaim', KEYS[3], ARGV[1], 'ping', 600000, '0', 'count', 1)
try('xpending', KEYS[3], ARGV[1])
try('xlen', KEYS[3])
try('xack', KEYS[3], ARGV[1], id)
try('xdel', KEYS[3], id)
try('pexpire', KEYS[3], 60000)
return refused`;
const TRIED = ['{ping}', '{ping}:map', '{ping}:queue'].map((name) => PREFIX + name);

/** Done signals are acknowledged together. */
const DONE_MS = 50;
/** Per MGET, so that it does not block Redis for long. */
const NAMES_MAX = 1_000;

/** Redis 6.2 or later: a single server, Sentinels or a Cluster. */
export class RedisKv implements Kv {
  readonly #redis: Redis;
  readonly #connect: () => Redis;
  readonly #takeOverMs: number;
  readonly #blocking = new Set<Redis>();
  /** Tickets to acknowledge, by queue key. */
  readonly #done = new Map<string, string[]>();

  constructor(
    settings: KvSettings,
    onError: (error: Error) => void,
    { takeOverMs = TAKE_OVER_MS } = {},
  ) {
    this.#takeOverMs = takeOverMs;
    this.#connect = redisConnector(settings, onError);
    this.#redis = this.#connect();
  }

  queue(name: QueueName): SignalQueue {
    return redisQueue(this.#redis, {
      key: PREFIX + name,
      takeOverMs: this.#takeOverMs,
      connectBlocking: this.#connectBlocking,
      done: this.#finish,
    });
  }

  map(name: 'breakers'): SharedMap {
    return redisMap(this.#redis, `${PREFIX}map:${name}`);
  }

  async takeTokens(
    bucket: string,
    ratePerSecond: number,
    wanted: number,
    capacity = ratePerSecond,
  ) {
    const taking = this.#redis.eval(
      TAKE_TOKENS,
      1,
      `${PREFIX}rate:${bucket}`,
      ratePerSecond,
      wanted,
      capacity,
    );
    const [granted, waitMs, left] = (await answered(this.#redis, taking)) as [
      number,
      number,
      number,
    ];
    return { granted, left, waitMs };
  }

  async get(name: string): Promise<string | undefined> {
    return (await answered(this.#redis, this.#redis.get(PREFIX + name))) ?? undefined;
  }

  async getAll(names: readonly string[]): Promise<(string | undefined)[]> {
    const texts: (string | null)[] = [];
    for (let k = 0; k < names.length; k += NAMES_MAX) {
      const keys = names.slice(k, k + NAMES_MAX).map((name) => PREFIX + name);
      texts.push(...(await answered(this.#redis, this.#redis.mget(keys))));
    }
    return texts.map((text) => text ?? undefined);
  }

  async set(
    name: string,
    text: string,
    { ttlMs, ifAbsent = false }: { ttlMs: number; ifAbsent?: boolean },
  ): Promise<void> {
    const key = PREFIX + name;
    await answered(
      this.#redis,
      ifAbsent
        ? this.#redis.set(key, text, 'PX', ttlMs, 'NX')
        : this.#redis.set(key, text, 'PX', ttlMs),
    );
  }

  async ping(): Promise<void> {
    // Redis answers PING even if it is a replica or out of memory.
    await answered(this.#redis, this.#redis.set(`${PREFIX}ping`, '1', 'PX', PING_MS));
    await answered(this.#redis, this.#redis.eval(TRY_ALL, TRIED.length, ...TRIED, GROUP));
  }

  info(): Promise<string> {
    return answered(this.#redis, this.#redis.info());
  }

  async close(): Promise<void> {
    await this.#acknowledge();
    for (const connection of [this.#redis, ...this.#blocking]) connection.disconnect();
  }

  readonly #finish = (key: string, tickets: readonly string[]): void => {
    if (tickets.length === 0) return;
    if (this.#done.size === 0) setTimeout(() => void this.#acknowledge(), DONE_MS).unref();
    const known = this.#done.get(key);
    if (known) known.push(...tickets);
    else this.#done.set(key, [...tickets]);
  };

  /** Never rejects: unacknowledged signals are pulled again, and agents find their work done. */
  async #acknowledge(): Promise<void> {
    const done = [...this.#done];
    this.#done.clear();
    await Promise.allSettled(done.map(([key, tickets]) => acknowledge(this.#redis, key, tickets)));
  }

  /** A blocking read occupies its connection, and ends early only if that is closed. */
  readonly #connectBlocking = (): Redis => {
    const redis = this.#connect();
    this.#blocking.add(redis);
    redis.once('end', () => this.#blocking.delete(redis));
    return redis;
  };
}

function redisMap(redis: Redis, key: string): SharedMap {
  return {
    async all() {
      const [nowMs, flat] = (await answered(redis, redis.eval(READ_MAP, 1, key))) as [
        number,
        string[],
      ];
      const entries = new Map<string, string>();
      for (let k = 0; k < flat.length; k += 2) entries.set(flat[k]!, flat[k + 1]!);
      return { nowMs, entries };
    },
    async some(fields) {
      const reading = redis.eval(READ_SOME, 1, key, ...fields);
      const [nowMs, size, texts] = (await answered(redis, reading)) as [
        number,
        number,
        (string | null)[],
      ];
      const entries = texts.flatMap((it, k) => (it === null ? [] : [[fields[k]!, it] as const]));
      return { nowMs, size, entries: new Map(entries) };
    },
    async change(changes) {
      const made: number[] = [];
      for (let k = 0; k < changes.length; k += CHANGES_MAX) {
        const texts = changes
          .slice(k, k + CHANGES_MAX)
          .flatMap(({ field, from, to }) => [field, textOrNothing(from), textOrNothing(to)]);
        made.push(
          ...((await answered(redis, redis.eval(CHANGE_MAP, 1, key, ...texts))) as number[]),
        );
      }
      return made.map((one) => one === 1);
    },
  };
}

const textOrNothing = (text: string | undefined) => (text === undefined ? '' : `=${text}`);

/**
 * Connects in the background: the gateway starts even if KV is down.
 * @throws GatewayError `tls_file`
 */
export function openKv(settings: KvSettings, onError: (error: Error) => void): Kv {
  return settings.type === 'in-memory' ? new MemoryKv() : new RedisKv(settings, onError);
}

/** For up to `ms`, because commands fail at once until KV has connected in the background. */
export async function retryKv<T>(request: () => Promise<T>, ms: number): Promise<T> {
  const untilMs = performance.now() + ms;
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (performance.now() >= untilMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
