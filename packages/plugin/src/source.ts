import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The lifecycle of a source plugin.
 *
 * 1. The registry reads the manifest, without importing the plugin.
 * 2. A source is created over the API: its connection is validated against the manifest's JSON
 *    Schema, its secrets are sealed, and `check` is called once.
 * 3. An agent calls `run` with the opened connection. The plugin connects, reports `reading`, reads
 *    in broker order, and calls `handle` for each message without waiting for earlier ones.
 * 4. `handle` settles with an outcome. Only then, and only if `acknowledges(outcome)`, may the
 *    message be acknowledged. The plugin does not decide on outcomes; it never parses, skips or
 *    logs a body. With `context.lag`, it reports about once a second the unread messages of each
 *    partition, and null for a partition that it stops reading and for all at the end. Lag never
 *    throttles. A plugin with `watch` reports lag there instead.
 * 5. `context.signal` aborts when the source is changed or disabled or the agent drains. The plugin
 *    hands over no more messages, waits for unsettled ones, acknowledges as allowed, and closes its
 *    connections; `run` resolves within ten seconds after the last message has settled. The wait
 *    needs no limit: core settles all messages while it drains, at worst with `later`.
 * 6. `run` rejects when the broker is unreachable or rejects the plugin. Core backs off (capped,
 *    jittered) and calls it again, so the plugin does not retry connecting, beyond short retries of
 *    its client library. Messages that settle later are not acknowledged and cause no error.
 * 7. Agents share the readers of a source. `run` follows their number through `context.onWorkers`;
 *    otherwise it is ended and called again.
 * 8. `run` is called again after its end, and concurrently for several sources: state belongs in
 *    the call. Connection and settings must not be changed.
 *
 * `sourceConformance` of `@gateway/plugin-conformance` tests these rules.
 */
export interface SourcePlugin<
  Connection = Record<string, unknown>,
  Settings = Readonly<Record<string, unknown>>,
> {
  /**
   * Checks within ten seconds that the queue or topic exists and is readable, and disconnects. May
   * resolve with advice for the operator.
   * @throws `PluginError` that names the failure and the field to change; the server's response
   *   belongs in `said`
   */
  check(connection: Connection, context: CheckContext<Settings>): Promise<Advice | void>;

  /** Reads until `context.signal` aborts, as described above. */
  run(connection: Connection, handle: Handle, context: SourceContext<Settings>): Promise<void>;

  /**
   * Optional. Queries the broker every few seconds until `context.signal` aborts, without reading
   * messages. Core calls it alongside `run`, and while `run` fails or the source is paused, so that
   * an idle source has a lag. Rejects when the broker cannot be queried; core calls it again.
   */
  watch?(connection: Connection, context: WatchContext<Settings>): Promise<void>;
}

/** Entered by core while a plugin works: connections are limited to `source.allowed_networks`. */
export const guardedWork = new AsyncLocalStorage<object | undefined>();

/**
 * Runs work with unguarded connections. Only for addresses from the process environment, such as a
 * cloud metadata address for credentials; never for addresses from a connection or a server.
 */
export function asProcess<T>(work: () => T): T {
  return guardedWork.run(undefined, work);
}

export interface Message {
  /**
   * The broker position: stable across redeliveries, unique within a source, without control
   * characters. Kafka: `topic/partition/offset`. SQS: the message id.
   */
  readonly coordinates: string;
  /** Broker time in epoch milliseconds; stable across redeliveries. */
  readonly timestamp: number;
  /** The bytes as received. */
  readonly body: Uint8Array;
  /** Headers or attributes by their original names; binary values are omitted or base64. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * `later`: not accepted because the agent drains; must not be acknowledged, so the broker
 * redelivers it. Other outcomes are committed in Postgres or need no commit (`dropped`).
 */
export type Outcome = 'accepted' | 'duplicate' | 'dropped' | 'quarantined' | 'later';

/** True if the message must be acknowledged. */
export function acknowledges(outcome: Outcome): boolean {
  return outcome !== 'later';
}

/**
 * Hands a message to core. Never rejects. Settles after the commit, in any order. It does not
 * settle while the gateway cannot accept (Postgres down, ingest rate reached): the window fills and
 * the plugin stops reading. This is the back-pressure.
 */
export type Handle = (message: Message) => Promise<Outcome>;

export interface CheckContext<Settings = Readonly<Record<string, unknown>>> {
  /** The manifest's rows without the prefix `source.<name>.`, nested at dots. */
  readonly settings: Settings;
  /** Aborts when the caller stops waiting. */
  readonly signal: AbortSignal;
  /** Readers requested by the source, over all agents. Undefined in older gateways. */
  readonly workers?: number;
}

/** Something works but should be changed. */
export interface Advice {
  readonly message: string;
  readonly fix: string;
}

export interface SourceContext<Settings = Readonly<Record<string, unknown>>> {
  /** The same settings as in `CheckContext`. */
  readonly settings: Settings;
  /** Constant, and the same in every agent. */
  readonly sourceId: string;
  /** Aborts when the plugin must stop reading and settle. */
  readonly signal: AbortSignal;
  /** Maximum unsettled messages per partition (topics) or worker (queues). 1 is strict lockstep. */
  readonly window: number;
  /** This agent's readers of the source: members of the consumer group, or pollers of the queue. */
  readonly workers: number;
  /**
   * Calls back with the new number of readers. The plugin starts or stops the difference and leaves
   * the others alone. Without a callback, core restarts `run`. Optional, as in
   * `context.onWorkers?.(…)`.
   */
  onWorkers?(follow: (workers: number) => void): void;
  /**
   * The client's name at the broker, for operators: `gateway-<host>-<pid>-<end of the source id>`.
   * Unique per process and source, constant across calls of `run`. Append to it where connections
   * must differ, as for workers. Derive names that outlive the process from `sourceId`.
   */
  readonly clientId: string;
  readonly log: PluginLog;
  /**
   * Reports to health: `reading` once connected, with a sentence if an operator should change
   * something; `failing` with a sentence while the broker is down. Cheap; call it on change.
   */
  report(state: 'connecting' | 'reading' | 'failing', reason?: string): void;
  /**
   * Reports a partition's lag (`""` for a queue): messages after the last acknowledged one or, if
   * the broker cannot tell, after the last one read by this agent. A non-negative integer, about
   * once a second; null while unknown, when the partition is no longer read here, and before `run`
   * ends. Undefined for a plugin with `watch`, which need not query the broker here. Optional:
   * `context.lag?.(…)` works with every gateway.
   */
  lag?(partition: string, messages: number | null, offsets?: PartitionOffsets): void;
  /**
   * Reports messages deleted by the broker before they were read, for example by retention: once
   * per gap, as an upper bound. Excludes those deleted before reading began, and offsets without a
   * message. Report 0 when reading of a partition begins, to start its series. Optional:
   * `context.lost?.(…)` works with every gateway.
   */
  lost?(partition: string, messages: number): void;
}

/** Offsets in the broker's notation. */
export interface PartitionOffsets {
  /** The next message to read. */
  readonly position: string;
  /** The next message to be produced. */
  readonly end: string;
}

export interface WatchContext<Settings = Readonly<Record<string, unknown>>> extends Pick<
  SourceContext<Settings>,
  'settings' | 'sourceId' | 'signal' | 'clientId' | 'log'
> {
  /** Readers requested by the source, over all agents. Undefined in older gateways. */
  readonly workers?: number;
  /** Reports lag, as in `SourceContext`; null for a partition that is gone. */
  lag(partition: string, messages: number | null, offsets?: PartitionOffsets): void;
  /**
   * Shows advice in health while messages are read; null if there is none. Cheap; call it every
   * time.
   */
  advise(advice: string | null): void;
}

/** A structured log. */
export interface PluginLog {
  debug(fields: object, sentence: string): void;
  info(fields: object, sentence: string): void;
  warn(fields: object, sentence: string): void;
  error(fields: object, sentence: string): void;
}

/**
 * Maximum unsettled bytes of a reader (group member or poller), in addition to `context.window`:
 * while Postgres is down, a window of large messages could take a gigabyte.
 */
export const IN_FLIGHT_BYTES = 16 * 1024 * 1024;

/** Maximum unsettled bytes of all readers. */
export const AGENT_IN_FLIGHT_BYTES = 256 * 1024 * 1024;

let bytesOfAgent = 0;

/**
 * The unsettled messages of a reader, with the limits of reader and agent:
 *
 * ```js
 * const inFlight = new InFlight(context.window);
 * // while inFlight.hasRoom:
 * const settled = inFlight.open(message);
 * handle(message).finally(settled);
 * ```
 */
export class InFlight {
  readonly #most: number;
  #messages = 0;
  #bytes = 0;
  readonly #onIdle: (() => void)[] = [];

  /** @param most messages; `IN_FLIGHT_BYTES` and `AGENT_IN_FLIGHT_BYTES` limit their bytes */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#messages;
  }

  /** An empty reader always has capacity, so stalled readers do not stop it. */
  get hasRoom(): boolean {
    if (this.#messages === 0) return true;
    return (
      this.#messages < this.#most &&
      this.#bytes < IN_FLIGHT_BYTES &&
      bytesOfAgent < AGENT_IN_FLIGHT_BYTES
    );
  }

  /** Counts a message. Call the returned function once, when it settles. */
  open(message: Pick<Message, 'body' | 'headers'>): () => void {
    const bytes = messageBytes(message);
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

function messageBytes({ body, headers }: Pick<Message, 'body' | 'headers'>): number {
  let bytes = body.byteLength;
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0);
  return bytes;
}
