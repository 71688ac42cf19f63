import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The lifecycle of a source plugin.
 *
 * 1. The registry reads the manifest. Nothing of the plugin is imported yet.
 * 2. A source record of this kind is created over the API: its connection is validated against the JSON Schema that the manifest names, its secret fields
 *    are sealed, and `check` is called once.
 * 3. An agent calls `run` with the opened connection. The plugin connects, reports `reading`, reads messages in the order of the broker and calls `handle`
 *    for each without waiting for the previous one to settle.
 * 4. `handle` settles with an outcome. Only then may the message be acknowledged, and only if `acknowledges(outcome)`. The plugin never decides what happens
 *    to a message; it never parses, skips or logs a body.
 *    If `context.lag` is given, the plugin reports about once a second how many messages of each partition it has not read yet, and null for a partition that
 *    it no longer reads and for every partition at the end. Lag never throttles anything. A plugin with `watch` reports its lag there, not in `run`.
 * 5. `context.signal` aborts when the source is changed or disabled or the agent drains: the plugin hands over no more messages, waits for the unsettled ones,
 *    acknowledges what may be acknowledged and closes its connections; `run` resolves within ten seconds after the last message has settled. The wait for
 *    messages needs no limit: core settles each of them while it drains, at worst with `later`.
 * 6. `run` rejects when the broker is unreachable or rejects the plugin: core waits (capped, jittered) and calls `run` again. A plugin has no retry loop around
 *    connecting; the short retries of its client library are fine. Messages may settle after that: nothing is acknowledged for them, and nothing is thrown.
 * 7. Agents share the readers of a source. `run` follows a change of their number through `context.onWorkers`; otherwise it is ended and called again.
 * 8. `run` is called again after it has ended, and several times at once for several sources: a plugin keeps its state in the call. It changes neither the
 *    connection nor the settings.
 *
 * `sourceConformance` of `@gateway/plugin-conformance` tests these rules.
 */
export interface SourcePlugin<Connection = Record<string, unknown>, Settings = Readonly<Record<string, unknown>>> {
  /**
   * Opens the connection, checks that the queue or topic exists and may be read, and closes it again, within ten seconds. May resolve with what an operator
   * should change although it can be read.
   * @throws `PluginError` that names what failed and which field to change; what the server said belongs into `said`
   */
  check(connection: Connection, context: CheckContext<Settings>): Promise<Advice | void>;

  /** Reads until `context.signal` aborts. See the steps above. */
  run(connection: Connection, handle: Handle, context: SourceContext<Settings>): Promise<void>;

  /**
   * Optional. Asks the broker about the source every few seconds until `context.signal` aborts, reading no message. Core calls it beside `run`, also while `run`
   * fails and while the source is paused, so that a source that stands still has a lag. Rejects when the broker cannot be asked; core calls it again.
   */
  watch?(connection: Connection, context: WatchContext<Settings>): Promise<void>;
}

/** Entered by core while a plugin works: the address of each connection is checked, and must be in a network that `source.allowed_networks` lets sources reach. */
export const guardedWork = new AsyncLocalStorage<object | undefined>();

/**
 * Runs work whose connections are not guarded: for what the environment of the process names, such as the metadata address of a cloud that gives the credentials
 * of the machine; never for an address that a connection or a server names.
 */
export function asProcess<T>(work: () => T): T {
  return guardedWork.run(undefined, work);
}

/** One message of a broker. */
export interface Message {
  /**
   * The position of the message in its broker: the same on every redelivery, distinct for distinct messages of a source, without control
   * characters. Kafka: `topic/partition/offset`. SQS: the message id.
   */
  readonly coordinates: string;
  /** The broker's own time of the message in epoch milliseconds; unchanged on redelivery. */
  readonly timestamp: number;
  /** The bytes as received. */
  readonly body: Uint8Array;
  /** Headers or attributes of the broker message, under their names as received; binary values are omitted or base64. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What became of a message. `later`: it was not accepted because the agent is draining; it must not be acknowledged, and the broker delivers it again.
 * Every other outcome is committed in Postgres, or needs no commit (`dropped`).
 */
export type Outcome = 'accepted' | 'duplicate' | 'dropped' | 'quarantined' | 'later';

/** True when a message with this outcome is to be acknowledged to the broker. */
export function acknowledges(outcome: Outcome): boolean {
  return outcome !== 'later';
}

/**
 * Hands one message to core. Never rejects. Settles after the commit, in any order. While the gateway cannot accept (Postgres down,
 * ingest rate reached) it does not settle, so the plugin's window fills and the plugin stops reading: that is the back-pressure.
 */
export type Handle = (message: Message) => Promise<Outcome>;

export interface CheckContext<Settings = Readonly<Record<string, unknown>>> {
  /** The plugin's own settings: the rows of its manifest by the part of their keys after `source.<name>.`, nested at dots. */
  readonly settings: Settings;
  /** Aborts when the caller no longer waits. */
  readonly signal: AbortSignal;
  /** Readers that the source asks for, over all agents. Undefined if the gateway is older. */
  readonly workers?: number;
}

/** Something that works and should be changed: what is the case, and what to do, in sentences. */
export interface Advice {
  readonly message: string;
  readonly fix: string;
}

export interface SourceContext<Settings = Readonly<Record<string, unknown>>> {
  /** The plugin's own settings, as in `CheckContext`. */
  readonly settings: Settings;
  /** Id of the source record: never changes, the same in every agent. */
  readonly sourceId: string;
  /** Aborts when the plugin must stop reading and settle. */
  readonly signal: AbortSignal;
  /** Messages that may be unsettled at a time, per partition (topics) or per worker (queues). 1 is strict lockstep. */
  readonly window: number;
  /** Readers that this agent runs for the source, its share of those of all agents: members of the consumer group, or pollers of the queue. */
  readonly workers: number;
  /**
   * Calls back with the new number when this agent is to run more or fewer readers. The plugin starts or stops some, and leaves the others alone. Core ends
   * the `run` of a plugin that does not ask, and calls it anew. Optional, as in `context.onWorkers?.(…)`.
   */
  onWorkers?(follow: (workers: number) => void): void;
  /**
   * A name for this client at the broker, where operators see it: `gateway-<host>-<pid>-<end of the source id>`. It is unique per process and source and the
   * same in every call of `run`; another process has another one. Append to it where connections must differ, such as those of several workers. Name what
   * must outlive the process after `sourceId`.
   */
  readonly clientId: string;
  readonly log: PluginLog;
  /**
   * Reports the state to health: `reading` once connected, with a sentence if an operator should change something although messages are read; `failing` with a
   * sentence while the broker is down. Cheap; call it on change.
   */
  report(state: 'connecting' | 'reading' | 'failing', reason?: string): void;
  /**
   * Reports the lag of a partition (`""` for a queue): how many messages the broker has behind the last acknowledged one, or, if it cannot tell, behind the last
   * one that this agent has read. A non-negative integer, about once a second per partition; null while it is unknown, for a partition that is no longer read
   * here, and for each before `run` ends. Undefined for a plugin with `watch`: then the broker need not be asked here. Optional for a plugin;
   * `context.lag?.(…)` works with every gateway.
   */
  lag?(partition: string, messages: number | null, offsets?: PartitionOffsets): void;
  /**
   * Reports messages that the broker deleted before this source read them, such as by retention, once for each gap: how many of a partition at most. Not for what
   * was deleted before a source began to read, nor for offsets that hold no message. 0 when reading of a partition begins, so that its series starts at zero.
   * Optional for a plugin; `context.lost?.(…)` works with every gateway.
   */
  lost?(partition: string, messages: number): void;
}

/** Places in a partition, in the words of the broker. */
export interface PartitionOffsets {
  /** Of the next message to be read. */
  readonly position: string;
  /** Of the next message to be produced. */
  readonly end: string;
}

export interface WatchContext<Settings = Readonly<Record<string, unknown>>> extends Pick<
  SourceContext<Settings>,
  'settings' | 'sourceId' | 'signal' | 'clientId' | 'log'
> {
  /** Readers that the source asks for, over all agents. Undefined if the gateway is older. */
  readonly workers?: number;
  /** Reports the lag of a partition as `lag` of `SourceContext` does; null for a partition that is gone. */
  lag(partition: string, messages: number | null, offsets?: PartitionOffsets): void;
  /** Shows in health what an operator should change although messages are read, in sentences; null when there is nothing. Cheap; call it every time. */
  advise(advice: string | null): void;
}

/** A structured log: the object first, then the sentence. */
export interface PluginLog {
  debug(fields: object, sentence: string): void;
  info(fields: object, sentence: string): void;
  warn(fields: object, sentence: string): void;
  error(fields: object, sentence: string): void;
}

/**
 * Bytes that a reader (a member of a consumer group, a poller of a queue) may have unsettled before it stops reading, in addition to `context.window`: while
 * Postgres is down, a window of large messages would be a gigabyte.
 */
export const IN_FLIGHT_BYTES = 16 * 1024 * 1024;

/** The same of all readers of the agent together. */
export const AGENT_IN_FLIGHT_BYTES = 256 * 1024 * 1024;

let bytesOfAgent = 0;

/**
 * The messages that a reader has handed over and that have not settled, for the limits of the reader and of the agent:
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

  /** How many messages have not settled. */
  get size(): number {
    return this.#messages;
  }

  /** Whether another message may be handed over. A reader that holds nothing always has room, so that others that stand still do not stop it. */
  get hasRoom(): boolean {
    if (this.#messages === 0) return true;
    return this.#messages < this.#most && this.#bytes < IN_FLIGHT_BYTES && bytesOfAgent < AGENT_IN_FLIGHT_BYTES;
  }

  /** Counts a message that is handed over. Call the returned function once, when it has settled. */
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

/** The memory that a message holds until it settles, in bytes. */
function messageBytes({ body, headers }: Pick<Message, 'body' | 'headers'>): number {
  let bytes = body.byteLength;
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0);
  return bytes;
}
