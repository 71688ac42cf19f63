import { backoffMs, type OngoingFailure } from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import {
  ATTEMPT_NUMBER_MAX,
  type AttemptRecord,
  recordAttempts,
  recordOrderedAttempts,
} from '@gateway/store/deliveries';
import type { KeyTurn } from '@gateway/store/ordering';
import { rejectsContent } from '@gateway/store/postgres';
import type { AgentContext } from '../config/agent-context.js';
import type { AgentLease } from '../model/lease.js';
import { attemptFields } from '../telemetry/debug-log.js';
import type { DueTimes } from './due-times.js';
import type { DeliveriesInFlight } from './in-flight.js';

const BATCH_MAX = 500;
/**
 * The maximum number of characters of response bodies and transformed data in a batch, because a
 * write copies them several times.
 */
const BATCH_BODIES_MAX = 2_000_000;
/**
 * The time that attempts wait for a batch. It adds no latency to requests, but requests made during
 * it are repeated if the process is killed. A shorter time costs more statements wherever few
 * attempts arrive in it: at a low rate, with several shards, or with many agents.
 */
const LINGER_MS = 32;

export interface AttemptObserver {
  /**
   * Called once attempts are recorded or dropped.
   *
   * @param isOurs whether this agent still owned the delivery, in which case no other agent counts
   *   its completion
   */
  recorded(attempts: readonly AttemptRecord[], isOurs: (attempt: AttemptRecord) => boolean): void;
}

interface AttemptWriterOptions extends Pick<AgentContext, 'database' | 'log' | 'measure'> {
  readonly lease: Pick<AgentLease, 'agentId'>;
  readonly inFlight: Pick<DeliveriesInFlight, 'recorded'>;
  readonly dueTimes: Pick<DueTimes, 'add'>;
  readonly observers: readonly AttemptObserver[];
  readonly writers: number;
  /** For an agent that claims no first attempts. */
  readonly turned?: ((turns: readonly KeyTurn[]) => Promise<void>) | undefined;
}

/** Records attempts in batches, with retries, and then frees the capacity of their deliveries. */
export class AttemptWriter {
  readonly #stage: Stage<AttemptRecord>;
  /** Without waiting for a batch, because the next delivery of the key waits. */
  readonly #ordered: Stage<AttemptRecord>;
  readonly #bare = new WeakSet<AttemptRecord>();

  constructor(private readonly options: AttemptWriterOptions) {
    const recording = {
      concurrency: options.writers,
      capacity: BATCH_BODIES_MAX,
      sizeOf,
      failed: (error: unknown, attempts: readonly AttemptRecord[]) =>
        options.log.warn(
          { error, attempts: attempts.length },
          'Could not record delivery attempts; retrying.',
        ),
      backoffMs: (failures: number) => backoffMs(failures, { capMs: 5_000 }),
      refuses: rejectsContent,
      replace: (attempt: AttemptRecord, error: Error) => this.#strip(attempt, error),
      ended: (attempts: readonly AttemptRecord[]) => this.#tell(attempts),
    };
    this.#stage = new Stage<AttemptRecord>({
      ...recording,
      linger: { ms: LINGER_MS, items: BATCH_MAX },
      work: (attempts) => this.#record(attempts),
    });
    this.#ordered = new Stage<AttemptRecord>({
      ...recording,
      work: (attempts) => this.#recordOrdered(attempts),
    });
  }

  get failing(): OngoingFailure | undefined {
    return this.#stage.failing ?? this.#ordered.failing;
  }

  push(attempt: AttemptRecord): void {
    (attempt.onEnd ? this.#ordered : this.#stage).push(attempt);
  }

  async settled(): Promise<void> {
    await Promise.all([this.#stage.settled(), this.#ordered.settled()]);
  }

  /** Stops retrying and drops unrecorded attempts. Other agents recover their deliveries. */
  stop(): void {
    this.#stage.stop();
    this.#ordered.stop();
  }

  async #record(batch: readonly AttemptRecord[]): Promise<void> {
    const { database, measure } = this.options;
    const startedAtMs = measure ? performance.now() : 0;
    await recordAttempts(database.pool, batch);
    measure?.step('record', startedAtMs);
    measure?.batch('record', batch.length);
  }

  async #recordOrdered(batch: readonly AttemptRecord[]): Promise<void> {
    const { database, dueTimes, turned } = this.options;
    const turns = await recordOrderedAttempts(database.pool, batch);
    for (const { projectId } of turns) dueTimes.add(projectId, 0);
    if (turns.length > 0) await turned?.(turns);
  }

  #tell(batch: readonly AttemptRecord[]): void {
    const { lease, inFlight, dueTimes, observers } = this.options;
    // After a stop, or if the delivery was claimed under a former agent id, another agent may own
    // it and count its completion.
    const isOurs = (attempt: AttemptRecord) =>
      attempt.agentId === lease.agentId && !this.#stage.isStopped;
    for (const { projectId, dueInMs } of batch)
      if (dueInMs !== null) dueTimes.add(projectId, dueInMs);
    for (const observer of observers) observer.recorded(batch, isOurs);
    inFlight.recorded(batch);
  }

  /**
   * Returns the attempt without the values that Postgres may have rejected, or undefined if it was
   * rejected even without them.
   */
  #strip(attempt: AttemptRecord, error: Error): AttemptRecord | undefined {
    const { log } = this.options;
    if (this.#bare.has(attempt)) {
      log.error({ error, ...attemptFields(attempt) }, 'A delivery attempt cannot be recorded.');
      return undefined;
    }
    log.error(
      { error, ...attemptFields(attempt) },
      'Postgres rejected a delivery attempt; recorded it without details and ended its delivery.',
    );
    const bare = bareAttempt(attempt, error);
    this.#bare.add(bare);
    return bare;
  }
}

/**
 * Returns the share of `BATCH_BODIES_MAX` that an attempt takes. The minimum limits a batch to
 * `BATCH_MAX` attempts.
 */
function sizeOf({ responseBody, transformedData }: AttemptRecord): number {
  return Math.max(
    BATCH_BODIES_MAX / BATCH_MAX,
    (responseBody?.length ?? 0) + (transformedData?.length ?? 0),
  );
}

function bareAttempt(attempt: AttemptRecord, error: Error): AttemptRecord {
  const delivered = attempt.status === 'success';
  return {
    ...attempt,
    number: Math.min(attempt.number, ATTEMPT_NUMBER_MAX),
    detail: null,
    responseHeaders: null,
    responseBody: null,
    transformedData: undefined,
    status: delivered ? 'success' : 'failure',
    dueInMs: null,
    reason: delivered
      ? null
      : `The attempt could not be recorded as it was: ${error.message}. The retry policy of the endpoint may be at fault.`,
  };
}
