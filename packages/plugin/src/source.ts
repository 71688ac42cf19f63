/**
 * The life of a source plugin.
 *
 * 1. The registry reads the manifest. Nothing of the plugin is imported yet.
 * 2. A source record of this kind is created over the API: its connection is validated against the JSON Schema that the
 *    manifest names, its secret fields are sealed, and `check` is called once to see that the broker answers.
 * 3. An agent calls `run` with the opened connection. The plugin connects, says so with `context.report('reading')`, reads messages in
 *    the order of the broker and calls `handle` for each, without waiting for the previous one to settle.
 * 4. `handle` settles with an outcome. Only then may the message be acknowledged, and only if `acknowledges(outcome)`.
 *    The plugin never decides what happens to a message; it never parses, skips or logs a body.
 *    Where `context.lag` is there, the plugin tells how many messages of each partition it has not read yet, about once a second; a partition that it no longer
 *    reads, and every partition at the end, is forgotten with null. Nothing is throttled by it, and where it is not there nobody wants to know.
 * 5. `context.signal` aborts when the source is changed, disabled, or the agent drains: the plugin hands nothing over any more, waits for what it has
 *    handed over, acknowledges what may be acknowledged, closes its connections, and `run` resolves, within ten seconds after the last message has
 *    settled. It need not bound the wait for messages: core settles every one in the time that it has for draining, with `later` at worst.
 * 6. `run` rejects when the broker cannot be reached or refuses: core waits (capped, jittered) and calls `run` again. A plugin has no retry loop
 *    of its own around connecting; what its client library does by itself for a moment is fine. Messages may settle after that: nothing is
 *    acknowledged for them any more, and nothing is thrown.
 * 7. `run` is called again after it has ended, and several times at once for several sources: a plugin keeps what it knows in the call. It changes
 *    neither the connection nor the settings that it was given.
 *
 * The rules of `sourceConformance` say the same one by one.
 */
export interface SourcePlugin<Connection = Record<string, unknown>, Settings = Readonly<Record<string, unknown>>> {
  /**
   * Opens the connection, looks whether the queue or topic exists and may be read, and closes it again.
   * Throws a `PluginError` that names what failed and which field to change. Takes at most ten seconds.
   */
  check(connection: Connection, context: CheckContext<Settings>): Promise<void>;

  /** Reads until `context.signal` aborts. See the steps above. */
  run(connection: Connection, handle: Handle, context: SourceContext<Settings>): Promise<void>;
}

/**
 * One message of a broker.
 */
export interface Message {
  /**
   * Where the message stands in its broker: the same on every redelivery, distinct for distinct messages of a source, without control
   * characters. Kafka: `topic/partition/offset`. SQS: the message id.
   */
  readonly coordinates: string;
  /** The broker's own time of the message in epoch milliseconds; unchanged on redelivery. */
  readonly timestamp: number;
  /** The bytes as they came. */
  readonly body: Uint8Array;
  /** Headers or attributes of the broker message, under their names as they came; binary values are left out or base64. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What became of a message. `later` means that it was not accepted (the agent is draining): it must not be acknowledged, the broker
 * will deliver it again. Every other outcome is committed in Postgres (or is a decision that needs no commit, `dropped`).
 */
export type Outcome = 'accepted' | 'duplicate' | 'dropped' | 'quarantined' | 'later';

/** True when a message with this outcome is to be acknowledged to the broker. */
export function acknowledges(outcome: Outcome): boolean {
  return outcome !== 'later';
}

/**
 * Hands one message to core. Never rejects. Settles after the commit, in any order; while the gateway cannot accept (Postgres away,
 * ingest rate reached) it simply does not settle, so the plugin's window fills and the plugin stops reading: that is the back-pressure.
 */
export type Handle = (message: Message) => Promise<Outcome>;

export interface CheckContext<Settings = Readonly<Record<string, unknown>>> {
  /** The plugin's own settings: the rows of its manifest by the part of their keys after `source.<name>.`, nested at dots. */
  readonly settings: Settings;
  /** Aborts when the caller no longer waits. */
  readonly signal: AbortSignal;
}

export interface SourceContext<Settings = Readonly<Record<string, unknown>>> {
  /** The plugin's own settings, as in `CheckContext`. */
  readonly settings: Settings;
  /** Id of the source record: it never changes, and is the same in every agent. */
  readonly sourceId: string;
  /** Aborts when the plugin has to stop reading and settle. */
  readonly signal: AbortSignal;
  /** Messages that may be handed over and unsettled at a time, per partition (topics) or per worker (queues). 1 is strict lockstep. */
  readonly window: number;
  /** Readers that this agent runs for the source: members of the consumer group, or pollers of the queue. */
  readonly workers: number;
  /** A name for this client at the broker, unique per process and source. */
  readonly clientId: string;
  readonly log: PluginLog;
  /** Tells health how it stands: `reading` when connected, `failing` with a sentence while the broker is away. Cheap; call on change. */
  report(state: 'connecting' | 'reading' | 'failing', reason?: string): void;
  /**
   * Tells the metrics how many messages of a partition (`""` of a queue) the broker has and this agent has not read: a whole number, not negative. Call it about
   * once a second, at most, per partition; with null for a partition that is no longer read here, and for each before `run` ends. Undefined when nobody looks: then
   * nothing needs to be counted, and the broker need not be asked. A plugin may leave it alone; `context.lag?.(…)` works with every gateway.
   */
  lag?(partition: string, messages: number | null): void;
}

/** A structured log: the object first, then the sentence. */
export interface PluginLog {
  debug(fields: object, sentence: string): void;
  info(fields: object, sentence: string): void;
  warn(fields: object, sentence: string): void;
  error(fields: object, sentence: string): void;
}
