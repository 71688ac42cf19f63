import type { OngoingFailure } from '@gateway/core/process';

/**
 * The stages of an agent, drawn in ARCHITECTURE.md. Broker messages pass the first three stages,
 * `transformer` only if their source has a function. Posted events pass only `eventWriter`; messages of
 * HTTP sources first pass a pipeline and a transformer of their own. Deliveries pass `scheduler` and
 * one of the last two stages.
 *
 * A message remains with its broker or HTTP client until its commit, which writes its deliveries to
 * Postgres. When an agent's lease ends, other agents send the deliveries that it had claimed. Only
 * the result of a request exists in memory alone; if it is lost, the request is repeated.
 *
 * Several states can hold at the same time:
 *
 * - **Running.** A stage processes its backlog, and projects take turns. Events are routed in their
 *   commit and sent from memory.
 * - **At capacity.** The agent holds `delivery.max_outstanding` deliveries, or
 *   `max_outstanding_bytes`. Each project waits up to a quarter of a second before a commit; without
 *   room its events are then left pending. Sources stop reading when their windows are full.
 * - **Postgres is down.** Stages retry their batches, sources stop reading, and HTTP clients get
 *   errors. Requests still start while the lease lasts.
 * - **Without a lease.** No request starts, because other agents may have claimed the deliveries.
 * - **KV is down.** Rate limits and circuit breakers are local to each agent, and the heartbeat
 *   finds pending events.
 * - **Draining.** Nothing is read or claimed. Running work ends, and waiting deliveries return to
 *   Postgres. Near the deadline, retries stop.
 */
interface StageRow {
  readonly part:
    'pipeline' | 'transformer' | 'eventWriter' | 'scheduler' | 'attemptWriter' | 'releaser';
  /** Without `src`, such as `ingest/pipeline`. */
  readonly file: string;
  readonly until: string;
  readonly waitsFor: readonly string[];
  /** For items left at the end of a drain. */
  readonly left:
    | 'stays with its broker'
    | 'stays with its broker, or is answered with 503'
    | 'is recovered by other agents';
  /** Failed work is retried until the stage is stopped. */
  readonly repeats?: true;
}

// Two lines per row keep the source readable as a table.
// prettier-ignore
export const stages = [
  { part: 'pipeline', file: 'ingest/pipeline', until: 'it is decoded, and parsed unless a function changes it', left: 'stays with its broker',
    waitsFor: ['`instance_ingest_rate`', '`limits.events_per_second`', '`limits.event_loop_ms`'] },
  { part: 'transformer', file: 'ingest/transform/transformer', until: 'its function has returned', left: 'stays with its broker', repeats: true,
    waitsFor: ['`transform.processes`', 'commits of what functions of its project returned'] },
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
export type RepeatingStages = Readonly<
  Record<Repeating['part'], { stop(): void; readonly failing?: OngoingFailure | undefined }>
>;

const repeating = stages
  .filter((row): row is Repeating => 'repeats' in row)
  .map(({ part }) => part);

/** Near the deadline of a drain, failed work is not retried any more. */
export function stopAtDeadline(parts: RepeatingStages): void {
  for (const part of repeating) parts[part].stop();
}

export function failingStages(parts: RepeatingStages): OngoingFailure[] {
  return repeating.flatMap((part) => parts[part].failing ?? []);
}
