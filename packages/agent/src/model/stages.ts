import type { Failing } from '@gateway/core/process';

/**
 * What an agent holds, and when it waits. ARCHITECTURE.md draws it. Messages of brokers pass the first three `stages`, `transformer` only with a function;
 * events over HTTP `eventWriter` alone; deliveries `scheduler`, and then one of the last two.
 *
 * Until its commit a message is with its broker, or with the HTTP client that waits for the answer. From the commit on its deliveries are in Postgres; when the
 * lease of an agent ends, others send what it had claimed. Only the result of a request is in memory alone; if it is lost, the request is repeated.
 *
 * Several of these may be true at once:
 *
 * - **Running.** A stage takes what waits as soon as it may, projects in turn. Events are routed in their commit, and sent from memory.
 * - **Short of room.** `delivery.max_outstanding` deliveries, or their bytes, are held. Commits wait while attempts are recorded; if none is for half a second,
 *   events are left pending. Sources stop reading when their windows are full.
 * - **Postgres is away.** Stages that wait for it repeat their batches; sources stop reading; HTTP clients get errors; requests begin while the lease lasts.
 * - **Without a lease.** No request begins until a heartbeat succeeds: other agents may have taken the deliveries.
 * - **KV is away.** Rates and breakers are this agent's own; the heartbeat finds pending events.
 * - **Draining.** Nothing is read or claimed. What is under way ends; what waits for a request returns to Postgres. Near the deadline repeating stops.
 */
interface StageRow {
  /** The part of the agent that is this stage. */
  readonly part: 'pipeline' | 'transformer' | 'eventWriter' | 'scheduler' | 'attemptWriter' | 'releaser';
  /** Its module, from the folder of the package. */
  readonly file: string;
  /** When a message, an event or a delivery has passed it. */
  readonly until: string;
  readonly waitsFor: readonly string[];
  /** What becomes of items that have not passed when a drain ends. */
  readonly left: 'stays with its broker' | 'stays with its broker, or is answered with 503' | 'is recovered by other agents';
  /** The stage repeats work that fails, until it is stopped. */
  readonly repeats?: true;
}

/** ARCHITECTURE.md has them as a table. */
// Two lines a row, so that the table reads as one.
// prettier-ignore
export const stages = [
  { part: 'pipeline', file: 'ingest/pipeline', until: 'it is decoded, and parsed unless a function changes it', left: 'stays with its broker',
    waitsFor: ['`instance_ingest_rate`', '`limits.events_per_second`', '`limits.event_loop_ms`'] },
  { part: 'transformer', file: 'ingest/transform/transformer', until: 'its function has returned', left: 'stays with its broker', repeats: true,
    waitsFor: ['`transform.processes`', 'commits of what functions of its project returned', 'the decision whether its source is paused'] },
  { part: 'eventWriter', file: 'ingest/commit/event-writer', until: 'it is committed', left: 'stays with its broker, or is answered with 503', repeats: true,
    waitsFor: ['`limits.events_per_second`', 'room for deliveries', 'Postgres'] },
  { part: 'scheduler', file: 'agent/delivery/scheduler', until: 'its endpoint has answered', left: 'is recovered by other agents',
    waitsFor: ['`consumer_pool_size`', 'rate limit, concurrency and circuit breaker of its endpoint', '`limits.event_loop_ms`'] },
  { part: 'attemptWriter', file: 'agent/delivery/attempt-writer', until: 'its attempt is recorded', left: 'is recovered by other agents', repeats: true,
    waitsFor: ['Postgres'] },
  { part: 'releaser', file: 'agent/delivery/release-deliveries', until: 'it is back in Postgres without an attempt', left: 'is recovered by other agents', repeats: true,
    waitsFor: ['Postgres'] },
] as const satisfies readonly StageRow[];

type Repeating = Extract<(typeof stages)[number], { readonly repeats: true }>;
/** The parts that repeat their work while it fails. */
export type RepeatingStages = Readonly<Record<Repeating['part'], { stop(): void; readonly failing?: Failing | undefined }>>;

const repeating = stages.filter((row): row is Repeating => 'repeats' in row).map(({ part }) => part);

/** Stops what would be repeated: the deadline of a drain is near. */
export function stopAtDeadline(parts: RepeatingStages): void {
  for (const part of repeating) parts[part].stop();
}

/** The failures of work that is being repeated. */
export function failingStages(parts: RepeatingStages): Failing[] {
  return repeating.flatMap((part) => parts[part].failing ?? []);
}
