import { hostname } from 'node:os';
import { Redis, type RedisOptions } from 'ioredis';
import type { Kv, KvSettings, QueueName, Signal, SignalQueue } from './kv.js';

const PREFIX = 'gateway:';
const GROUP = 'agents';
/** A blocking read returns this often, so that a connection that died without a word is noticed. */
const BLOCK_MS = 5_000;
/** A signal that is held this long without being done is taken over. */
const TAKE_OVER_MS = 10_000;

/*
 * A bucket of one second's worth, refilled by Redis' own clock so that agents with wrong clocks share it fairly.
 * KEYS[1] bucket; ARGV rate per second, wanted. Returns { granted, wait in ms }.
 */
const TAKE_TOKENS = `
local rate, wanted = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local state = redis.call('hmget', KEYS[1], 'tokens', 'at')
local tokens = math.min(rate, (tonumber(state[1]) or rate) + (now - (tonumber(state[2]) or now)) / 1000 * rate)
local granted = math.min(wanted, math.floor(tokens))
redis.call('hset', KEYS[1], 'tokens', tostring(tokens - granted), 'at', tostring(now))
redis.call('pexpire', KEYS[1], 10000)
local wait = 0
if granted == 0 then wait = math.ceil((1 - tokens) / rate * 1000) end
return { granted, wait }`;

type StreamEntry = [id: string, fields: string[]];

/** KV on Redis 6.2 or newer. */
export class RedisKv implements Kv {
  readonly #redis: Redis;
  readonly #options: RedisOptions;
  readonly #onError: (error: Error) => void;
  readonly #blocking: Redis[] = [];

  constructor(settings: KvSettings, onError: (error: Error) => void) {
    this.#onError = onError;
    this.#options = {
      host: settings.host,
      port: settings.port,
      ...(settings.username ? { username: settings.username } : {}),
      ...(settings.password ? { password: settings.password } : {}),
      db: Number(settings.database || 0),
      ...(settings.scheme === 'rediss' ? { tls: {} } : {}),
      // A command that cannot be sent fails at once: the way of a message does not wait for KV.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      connectTimeout: 5_000,
      retryStrategy: (times) => Math.min(100 * 2 ** Math.min(times, 6), 5_000),
    };
    this.#redis = this.#connect();
  }

  queue(name: QueueName): SignalQueue {
    return new RedisQueue(this.#redis, () => this.#blockingConnection(), PREFIX + name);
  }

  async takeTokens(bucket: string, ratePerSecond: number, wanted: number): Promise<{ granted: number; waitMs: number }> {
    const [granted, waitMs] = (await this.#redis.eval(TAKE_TOKENS, 1, `${PREFIX}rate:${bucket}`, ratePerSecond, wanted)) as [number, number];
    return { granted, waitMs };
  }

  async ping(): Promise<void> {
    await this.#redis.ping();
  }

  close(): Promise<void> {
    for (const connection of [this.#redis, ...this.#blocking]) connection.disconnect();
    return Promise.resolve();
  }

  #connect(): Redis {
    const redis = new Redis(this.#options);
    redis.on('error', this.#onError);
    return redis;
  }

  /** A blocking read holds its connection, so each queue that is pulled has one of its own. */
  #blockingConnection(): Redis {
    const redis = this.#connect();
    this.#blocking.push(redis);
    return redis;
  }
}

/**
 * A stream with one consumer group. Entries are deleted when done, so the length of the stream is what is not done.
 */
class RedisQueue implements SignalQueue {
  readonly #redis: Redis;
  readonly #openBlocking: () => Redis;
  readonly #key: string;
  readonly #consumer = `${hostname()}:${process.pid}`;
  #blocking: Redis | undefined;
  #takeOverAtMs = 0;

  constructor(redis: Redis, openBlocking: () => Redis, key: string) {
    this.#redis = redis;
    this.#openBlocking = openBlocking;
    this.#key = key;
  }

  async push(texts: readonly string[]): Promise<void> {
    const pipeline = this.#redis.pipeline();
    for (const text of texts) pipeline.xadd(this.#key, '*', 't', text);
    const results = await pipeline.exec();
    const failed = results?.find(([error]) => error)?.[0];
    if (failed) throw failed;
  }

  async pull(limit: number, signal: AbortSignal): Promise<Signal[]> {
    const connection = (this.#blocking ??= this.#openUntil(signal));
    if (connection.status !== 'ready') await connected(connection, signal);
    while (!signal.aborted) {
      const abandoned = await this.#takeOver(limit);
      if (abandoned.length > 0) return abandoned;
      try {
        const answer = (await connection.xreadgroup('GROUP', GROUP, this.#consumer, 'COUNT', limit, 'BLOCK', BLOCK_MS, 'STREAMS', this.#key, '>')) as
          | [key: string, entries: StreamEntry[]][]
          | null;
        const entries = answer?.[0]?.[1];
        if (entries?.length) return entries.map(signalOf);
      } catch (error) {
        if (signal.aborted) break;
        // The stream is new, or KV was emptied.
        if (!String(error).includes('NOGROUP')) throw error;
        await this.#redis.xgroup('CREATE', this.#key, GROUP, '0', 'MKSTREAM').catch((e: unknown) => {
          if (!String(e).includes('BUSYGROUP')) throw e;
        });
      }
    }
    return [];
  }

  /** A read that blocks ends only with its connection. */
  #openUntil(signal: AbortSignal): Redis {
    const connection = this.#openBlocking();
    signal.addEventListener('abort', () => connection.disconnect(), { once: true });
    return connection;
  }

  async done(tickets: readonly string[]): Promise<void> {
    if (tickets.length === 0) return;
    const results = await this.#redis
      .pipeline()
      .xack(this.#key, GROUP, ...tickets)
      .xdel(this.#key, ...tickets)
      .exec();
    const failed = results?.find(([error]) => error)?.[0];
    if (failed) throw failed;
  }

  depth(): Promise<number> {
    return this.#redis.xlen(this.#key);
  }

  /** What a dead agent held. Looked for once per period, not at every pull. */
  async #takeOver(limit: number): Promise<Signal[]> {
    const nowMs = performance.now();
    if (nowMs < this.#takeOverAtMs) return [];
    this.#takeOverAtMs = nowMs + TAKE_OVER_MS;
    try {
      const [, entries] = (await this.#redis.xautoclaim(this.#key, GROUP, this.#consumer, TAKE_OVER_MS, '0', 'COUNT', limit)) as [string, StreamEntry[]];
      if (entries.length === limit) this.#takeOverAtMs = 0;
      return entries.filter((entry) => entry[1]).map(signalOf);
    } catch (error) {
      if (!String(error).includes('NOGROUP')) throw error;
      return [];
    }
  }
}

function signalOf([ticket, fields]: StreamEntry): Signal {
  return { ticket, text: fields[1] ?? '' };
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
