import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The lifecycle of a source plugin.
 *
 * 1. The registry reads the manifest without importing the plugin.
 * 2. A source is created over the API. Its connection is validated against the manifest's JSON
 *   Schema, its secrets are sealed, and `check` is called once.
 * 3. An agent calls `run` with the opened connection. The plugin connects, reports `reading`, reads
 *   in broker order, and calls `handle` for each message without waiting for earlier ones.
 * 4. `handle` settles with an outcome. Only then, and only if `acknowledges(outcome)` is true, may
 *   the message be acknowledged. The plugin does not decide on outcomes, and never parses, skips or
 *   logs a body. If there is a `context.lag`, the plugin reports the unread messages of each
 *   partition about once a second, and null for a partition that it stops reading and for all
 *   partitions at the end. The lag never throttles reading. A plugin with `watch` reports the lag
 *   there instead.
 * 5. `context.signal` aborts when the source is changed or disabled, or when the agent drains. The
 *   plugin then passes no more messages to `handle`, waits for unsettled ones, acknowledges them as
 *   allowed, and closes its connections. `run` resolves within ten seconds after the last message
 *   has settled. The wait needs no limit: core settles all messages while it drains, at worst with
 *   `later`.
 * 6. `run` rejects when the broker is unreachable or rejects the plugin. Core calls it again after
 *   a capped back-off with jitter, so the plugin does not retry connecting, except for short
 *   retries of its client library. Messages that settle later are not acknowledged and cause no
 *   error.
 * 7. Agents share the readers of a source. `run` follows the number of its readers through
 *   `context.onWorkers`; otherwise it is ended and called again.
 * 8. `run` is called again after it has ended, and concurrently for several sources, so state
 *   belongs in the call. The connection and the settings must not be changed.
 *
 * Tested by `sourceConformance` of `@gateway/plugin-conformance`.
 */
export interface SourcePlugin<
  Connection = Record<string, unknown>,
  Settings = Readonly<Record<string, unknown>>,
> {
  /**
   * Checks within ten seconds that the queue or topic exists and is readable, and disconnects. May
   * resolve with advice for the operator.
   * @throws `PluginError` with the failure and the field to change; the server's response belongs
   *   in `said`
   */
  check(connection: Connection, context: CheckContext<Settings>): Promise<Advice | void>;

  /** Reads messages until `context.signal` aborts, as described above. */
  run(connection: Connection, handle: Handle, context: SourceContext<Settings>): Promise<void>;

  /**
   * Queries the broker every few seconds until `context.signal` aborts, without reading messages.
   * Core calls it alongside `run`, and also while `run` fails or the source is paused, so that an
   * idle source reports its lag too. If the broker cannot be queried, it rejects and is called
   * again.
   */
  watch?(connection: Connection, context: WatchContext<Settings>): Promise<void>;

  /**
   * Moves where the source is read from, or with `context.isDryRun` tells what a move would do. Core
   * stops the readers first. Their broker may notice late, so the plugin waits for up to 20 seconds
   * until it accepts the new positions. All partitions move, or it rejects with a `PluginError`.
   */
  seek?(connection: Connection, context: SeekContext<Settings>): Promise<readonly PartitionMove[]>;
}

/**
 * The async context that core enters while a plugin works. Connections opened in it are limited to
 * `source.allowed_networks`.
 */
export const guardedWork = new AsyncLocalStorage<object | undefined>();

/**
 * Runs work whose connections are not limited to `source.allowed_networks`. Use it only for
 * addresses from the process environment, such as a cloud metadata address for credentials, never
 * for addresses from a connection or a server.
 */
export function asProcess<T>(work: () => T): T {
  return guardedWork.run(undefined, work);
}

export interface Message {
  /**
   * The position of the message at its broker: stable across redeliveries, unique within a source,
   * without control characters. For Kafka `topic/partition/offset`, for SQS the message id.
   */
  readonly coordinates: string;
  /** The broker's time for the message in epoch milliseconds, stable across redeliveries. */
  readonly timestamp: number;
  /** The bytes of the message as received. */
  readonly body: Uint8Array;
  /**
   * Headers or attributes that the producer sent, by their original names. Binary values are omitted
   * or base64-encoded.
   */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The key by which the broker partitions or orders messages, and null for a message without one.
   * Undefined if the broker has no keys.
   */
  readonly key?: Uint8Array | null | undefined;
  /**
   * The media type of the body, such as `contentTypeOf(headers)`. Decides how core decodes the body;
   * by default, it is JSON.
   */
  readonly contentType?: string | undefined;
  /**
   * The broker's own attributes of the message, by their original names. Unlike `coordinates`, they
   * may change when the message is redelivered.
   */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /** The query of the request that brought the message. Repeated parameters are joined with `, `. */
  readonly query?: Readonly<Record<string, string>> | undefined;
  /**
   * Messages of a source with the same key are the same message. Its events carry the key, with
   * their ordinal, unless they have keys of their own. At most 400 characters.
   */
  readonly idempotencyKey?: string | null | undefined;
}

/** The content type among the headers, in any case. */
export function contentTypeOf(headers: Message['headers']): string | undefined {
  for (const name in headers)
    if (name.length === 12 && name.toLowerCase() === 'content-type') return headers[name];
  return undefined;
}

/**
 * The outcome of a message. `later` means that it was not accepted because the agent is draining.
 * It must not be acknowledged, so that the broker redelivers it. The other outcomes are committed
 * in Postgres or, like `dropped`, need no commit.
 */
export type Outcome = 'accepted' | 'duplicate' | 'dropped' | 'quarantined' | 'later';

/** Returns whether a message with this outcome must be acknowledged. */
export function acknowledges(outcome: Outcome): boolean {
  return outcome !== 'later';
}

/**
 * Passes a message to core. The promise never rejects, and settles after the commit, in any order.
 * For back-pressure, it stays pending while the gateway cannot accept messages, because Postgres is
 * down or the ingest rate is reached: the window fills and the plugin stops reading.
 */
export type Handle = (message: Message) => Promise<Outcome>;

export interface CheckContext<Settings = Readonly<Record<string, unknown>>> {
  /**
   * The settings declared in the manifest, without the `source.<name>.` prefix and nested by dotted
   * key.
   */
  readonly settings: Settings;
  /** Aborts when the caller stops waiting. */
  readonly signal: AbortSignal;
  /**
   * The number of readers requested for the source, across all agents. Undefined in older gateways.
   */
  readonly workers?: number;
}

/** Advice about something that works but should be changed. */
export interface Advice {
  readonly message: string;
  readonly fix: string;
}

export interface SourceContext<Settings = Readonly<Record<string, unknown>>> {
  /** As in `CheckContext`. */
  readonly settings: Settings;
  /** Constant, and the same in every agent. */
  readonly sourceId: string;
  /** Aborts when the plugin must stop reading and wait until its messages have settled. */
  readonly signal: AbortSignal;
  /**
   * The maximum number of unsettled messages per partition of a topic, or per worker of a queue.
   * With 1, each message waits until the previous one has settled.
   */
  readonly window: number;
  /**
   * The number of readers of the source in this agent: members of the consumer group or pollers of
   * the queue.
   */
  readonly workers: number;
  /**
   * Registers a callback that receives a new number of readers. The plugin starts or stops only the
   * difference. Without a callback, core restarts `run`. Optional, so call
   * `context.onWorkers?.(…)`.
   */
  onWorkers?(follow: (workers: number) => void): void;
  /**
   * The client's name at the broker, for operators: `gateway-<host>-<pid>-<end of the source id>`.
   * Unique per process and source, and constant across calls of `run`. Append to it where
   * connections need different names, such as for workers. Derive names that outlive the process
   * from `sourceId`.
   */
  readonly clientId: string;
  readonly log: PluginLog;
  /**
   * Reports the state of the source to health: `reading` once connected, with a sentence if an
   * operator should change something; `failing` with a sentence while the broker is down. Cheap, so
   * call it on every change.
   */
  report(state: 'connecting' | 'reading' | 'failing', reason?: string): void;
  /**
   * Reports the lag of a partition, named `""` for a queue: the number of messages after the last
   * acknowledged one or, if the broker does not report it, after the last one read by this agent.
   * Report a non-negative integer about once a second. Report null while the lag is unknown, when
   * the partition is no longer read here, and before `run` ends. Undefined for a plugin with
   * `watch`, and optional, so call `context.lag?.(…)`.
   */
  lag?(partition: string, messages: number | null, offsets?: PartitionOffsets): void;
  /**
   * Reports messages that the broker deleted before they were read, such as by retention. Report
   * each gap once, with an upper bound on its number of messages. Exclude messages deleted before
   * reading began, and offsets without a message. Report 0 when reading of a partition begins, to
   * start its series. Optional, so call `context.lost?.(…)`.
   */
  lost?(partition: string, messages: number): void;
  /** Returns what earlier runs recorded. Call before reading; rejects while Postgres is unreachable. */
  readBefore?(): Promise<ReadBefore>;
  /**
   * Records that all messages before a position are settled. The name must be that of the partition
   * among all that the connection may name. Cheap; stored within seconds.
   */
  record?(name: string, position: string): void;
}

/**
 * The positions that a source has reached, beyond what the broker keeps. The broker may
 * forget positions, and their messages may be read again after their events have been deleted, so
 * that they are no longer recognised as duplicates.
 */
export interface ReadBefore {
  /** The positions given to `record`, by its names. */
  readonly positions: ReadonlyMap<string, string>;
  /**
   * The events of messages before this time, in epoch milliseconds, have been deleted. -Infinity if
   * none are.
   */
  keptSinceMs(): number;
}

/** Where to read from: the oldest message, after the newest, a time, or a position by partition. */
export type SeekTarget =
  | 'earliest'
  | 'latest'
  | { readonly timeMs: number }
  | { readonly positions: Readonly<Record<string, string>> };

export interface SeekContext<
  Settings = Readonly<Record<string, unknown>>,
> extends CheckContext<Settings> {
  readonly sourceId: string;
  readonly clientId: string;
  readonly to: SeekTarget;
  readonly isDryRun: boolean;
  /** Also messages whose events have been deleted are to be delivered again. */
  readonly isRedelivering: boolean;
  readonly before: ReadBefore;
}

/** The move of a partition. */
export interface PartitionMove {
  /** As in `SourceContext.lag`. */
  readonly partition: string;
  /** The position of the next message before; null if there was none. */
  readonly from: string | null;
  readonly to: string;
  /** Messages between the two, which are read again. */
  readonly again: number;
  /**
   * How many of these were read before and have no events any more, because they are older than the
   * retention: they are passed over, or delivered again if `isRedelivering`. Their times may be out
   * of order, so it is an estimate.
   */
  readonly expired: number;
  /** Messages between the two that will not be read. */
  readonly skipped: number;
  /** Replaces what `record` was given. */
  readonly record: { readonly name: string; readonly position: string };
}

/** The offsets of a partition, in the broker's notation. */
export interface PartitionOffsets {
  /** The offset of the next message to read. */
  readonly position: string;
  /** The offset of the next message to be produced. */
  readonly end: string;
}

export interface WatchContext<Settings = Readonly<Record<string, unknown>>> extends Pick<
  SourceContext<Settings>,
  'settings' | 'sourceId' | 'signal' | 'clientId' | 'log'
> {
  /**
   * The number of readers requested for the source, across all agents. Undefined in older gateways.
   */
  readonly workers?: number;
  /** Reports the lag of a partition as in `SourceContext`, or null once it no longer exists. */
  lag(partition: string, messages: number | null, offsets?: PartitionOffsets): void;
  /** Shows advice in health while messages are read; null clears it. Call after every query. */
  advise(advice: string | null): void;
}

/** A structured log: fields and a sentence per line. */
export interface PluginLog {
  debug(fields: object, sentence: string): void;
  info(fields: object, sentence: string): void;
  warn(fields: object, sentence: string): void;
  error(fields: object, sentence: string): void;
}

/**
 * The maximum number of unsettled bytes per reader (a group member or poller), in addition to
 * `context.window`, because a window of large messages could take a gigabyte while Postgres is
 * down. Every message counts as `MESSAGE_BYTES_MIN` at least, so it is also a maximum of 4,096
 * messages.
 */
export const IN_FLIGHT_BYTES = 16 * 1024 * 1024;

/** The maximum number of unsettled bytes of all readers in an agent. */
export const AGENT_IN_FLIGHT_BYTES = 256 * 1024 * 1024;

/** A reader may hold this much whatever others hold, so that their backlogs do not stop it. */
const READER_BYTES = 256 * 1024;

/** For what a small message needs besides its bytes, from the plugin to its commit. */
const MESSAGE_BYTES_MIN = 4 * 1024;

let bytesOfAgent = 0;

/**
 * Counts a reader's unsettled messages against the limits of the reader and the agent. Open a
 * message only while `hasRoom` is true:
 *
 * ```js
 * const inFlight = new InFlight(context.window);
 * const settled = inFlight.open(message);
 * handle(message).finally(settled);
 * ```
 */
export class InFlight {
  readonly #most: number;
  #messages = 0;
  #bytes = 0;
  readonly #onIdle: (() => void)[] = [];

  /**
   * Creates the counter of one reader.
   *
   * @param most the maximum number of messages, or Infinity; bytes are limited by
   *   `IN_FLIGHT_BYTES` and `AGENT_IN_FLIGHT_BYTES`
   */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#messages;
  }

  /** Whether another message may be opened. */
  get hasRoom(): boolean {
    return (
      this.#messages < this.#most &&
      this.#bytes < (bytesOfAgent < AGENT_IN_FLIGHT_BYTES ? IN_FLIGHT_BYTES : READER_BYTES)
    );
  }

  /** Counts a message. Call the returned function once the message has settled. */
  open(message: SizedMessage): () => void {
    const bytes = Math.max(MESSAGE_BYTES_MIN, messageBytes(message));
    this.#count(1, bytes);
    return () => {
      this.#count(-1, -bytes);
      if (this.#messages === 0) for (const idle of this.#onIdle.splice(0)) idle();
    };
  }

  /** Resolves when every message has settled. */
  async idle(): Promise<void> {
    if (this.#messages > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #count(messages: number, bytes: number): void {
    this.#messages += messages;
    this.#bytes += bytes;
    bytesOfAgent += bytes;
  }
}

type SizedMessage = Pick<Message, 'body' | 'headers' | 'key' | 'attributes'>;

function messageBytes({ body, headers, key, attributes }: SizedMessage): number {
  let bytes = body.byteLength + (key?.byteLength ?? 0);
  for (const texts of [headers, attributes])
    for (const name in texts) bytes += name.length + (texts[name]?.length ?? 0);
  return bytes;
}
