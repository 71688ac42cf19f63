import type { Failing } from '@gateway/core/process';

/**
 * What an agent holds, and when it waits. A message passes the rows of `stages` from the first to the last; ARCHITECTURE.md draws them.
 *
 * Until its commit a message belongs to its broker, or to the HTTP client that waits for the answer: the agent may lose it at any time. From the commit on its
 * deliveries belong to the agent that claimed them, in Postgres, and to other agents when its lease ends. So nothing that an agent holds is the only copy.
 *
 * The agent is always in one of these modes:
 *
 * - **Running.** A stage takes what waits as soon as it may, projects in turn. Events are routed in their commit, and sent from memory.
 * - **Short of room.** `delivery.max_outstanding` deliveries, or their bytes, are held. Commits wait while deliveries end; if none ends for half a second, events
 *   are committed as pending, and any agent routes them. Sources stop reading when their windows are full.
 * - **Postgres is away.** `commit`, `record` and `release` repeat their batch and take no other in its place. Sources stop reading; requests go on until the lease
 *   ends; HTTP clients get an error at once.
 * - **Without a lease.** Nothing is sent until a heartbeat succeeds: other agents may have taken the deliveries.
 * - **KV is away.** Rates and breakers are this agent's own; pending events are found by the heartbeat.
 * - **Draining.** Nothing is read or claimed. What is under way ends; what waits for a request returns to Postgres. Near the deadline the stages with
 *   `atDeadline` stop.
 */
export interface StageRow {
  /** The part of the agent that is this stage. */
  readonly part: 'pipeline' | 'transformer' | 'eventWriter' | 'scheduler' | 'attemptWriter' | 'releaser';
  /** When an item has passed. */
  readonly until: string;
  /** What an item waits for. */
  readonly waitsFor: readonly string[];
  /** What becomes of items that have not passed at the deadline of a drain; undefined: the stage waits for its requests. */
  readonly atDeadline?: 'stays with its broker' | 'is recovered by other agents';
}

export const stages = [
  { part: 'pipeline', until: 'it is parsed', waitsFor: ['instance_ingest_rate', 'limits.events_per_second', 'limits.event_loop_ms'] },
  {
    part: 'transformer',
    until: 'its function has returned',
    waitsFor: ['transform.processes', 'output of its project that waits for commits', 'a pause that is being decided'],
    atDeadline: 'stays with its broker',
  },
  {
    part: 'eventWriter',
    until: 'it is committed',
    waitsFor: ['limits.events_per_second', 'room for the deliveries of a busy project', 'Postgres'],
    atDeadline: 'stays with its broker',
  },
  {
    part: 'scheduler',
    until: 'the endpoint has answered',
    waitsFor: ['consumer_pool_size', 'the rate limit of its endpoint', 'the circuit breaker of its endpoint', 'limits.event_loop_ms'],
  },
  { part: 'attemptWriter', until: 'the attempt is recorded', waitsFor: ['Postgres'], atDeadline: 'is recovered by other agents' },
  { part: 'releaser', until: 'it is due for other agents', waitsFor: ['Postgres'], atDeadline: 'is recovered by other agents' },
] as const satisfies readonly StageRow[];

type Repeating = Extract<(typeof stages)[number], { readonly atDeadline: string }>;
/** The parts that repeat their work while it fails. */
export type RepeatingStages = Readonly<Record<Repeating['part'], { stop(): void; readonly failing?: Failing | undefined }>>;

const repeating = stages.filter((row): row is Repeating => 'atDeadline' in row).map(({ part }) => part);

/** Stops what would be repeated: the deadline of a drain is near. */
export function stopAtDeadline(parts: RepeatingStages): void {
  for (const part of repeating) parts[part].stop();
}

/** The failures of work that is being repeated. */
export function failingStages(parts: RepeatingStages): Failing[] {
  return repeating.flatMap((part) => parts[part].failing ?? []);
}
