import { clip } from '@gateway/core/json';
import { newId } from '@gateway/core/events';
import type { Log } from '@gateway/core/logging';
import { repeat } from '@gateway/core/process';
import {
  KINDS_MAX,
  OTHER_KIND,
  readFailingEndpoints,
  recordFailures,
  resolveIssues,
  type EndpointSuccess,
  type FailureGroup,
} from '@gateway/store/counts';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';

const FLUSH_MS = 2_000;
/** The number of flushes per read of the endpoints that fail in all agents. */
const FLUSHES_PER_READ = 5;
/** The maximum number of groups between two flushes. Further failures are not counted. */
const GROUPS_MAX = 10_000;
/** The share of a project in `GROUPS_MAX`. */
const PROJECT_GROUPS_MAX = 1_000;
const ERROR_CHARACTERS_MAX = 500;

type Group = { -readonly [Key in keyof FailureGroup]: FailureGroup[Key] };
interface IssueCounterOptions {
  readonly database: Pick<Database, 'pool'>;
  readonly log: Log;
}

type Counted = Pick<
  AttemptRecord,
  'projectId' | 'id' | 'endpointId' | 'requestedAtMs' | 'code' | 'errorClass' | 'detail'
>;

/**
 * Counts failed attempts by endpoint and kind of error in memory, and adds them to the issues in
 * Postgres every two seconds. A success at an endpoint with an issue resolves it. A killed agent
 * loses the counts since the last flush, and no deliveries.
 */
export class IssueCounter {
  #endpoints = new Map<string, Map<string, Group>>();
  /** The groups of each project since the last flush. */
  #ofProject = new Map<string, number>();
  #size = 0;
  #succeeded = new Map<string, EndpointSuccess>();
  /** Endpoints with an unresolved issue, of which this agent reports successes. */
  #failing = new Set<string>();
  #flushes = 0;
  #stop: (() => Promise<void>) | undefined;

  constructor(private readonly options: IssueCounterOptions) {}

  start(): void {
    this.#stop = repeat(
      async () => {
        await this.flush();
        if (this.#flushes++ % FLUSHES_PER_READ === 0) await this.#readFailing();
        return FLUSH_MS;
      },
      {
        retryMs: 2 * FLUSH_MS,
        failed: (error, isFirst) => {
          if (isFirst)
            this.options.log.warn(
              { error },
              'Could not record the issues of endpoints; failures are counted in memory until then.',
            );
        },
      },
    );
  }

  recorded(attempts: readonly Counted[]): void {
    for (const attempt of attempts) {
      if (attempt.errorClass !== null) this.#fail(attempt);
      else if (this.#failing.size > 0 && this.#failing.has(attempt.endpointId))
        this.#succeed({ ...attempt, atMs: attempt.requestedAtMs });
    }
  }

  /** Writes what was counted. If that fails, it stays in memory for the next flush. */
  async flush(): Promise<void> {
    const { pool } = this.options.database;
    if (this.#size > 0) {
      const groups = [...this.#endpoints.values()].flatMap((kinds) => [...kinds.values()]);
      this.#forget();
      try {
        await recordFailures(pool, groups);
      } catch (error) {
        for (const group of groups) this.#add(group);
        throw error;
      }
    }
    if (this.#succeeded.size === 0) return;
    const successes = [...this.#succeeded.values()];
    this.#succeeded = new Map();
    try {
      await resolveIssues(pool, successes);
    } catch (error) {
      for (const success of successes) this.#succeed(success);
      throw error;
    }
  }

  /** Writes what was counted for a last time, without an error if Postgres is away. */
  async close(): Promise<void> {
    await this.#stop?.();
    await this.flush().catch(() => undefined);
  }

  #fail({ projectId, id, endpointId, requestedAtMs, code, errorClass, detail }: Counted) {
    const kind = errorClass === 'status' ? `http_${code}` : errorClass!;
    const known = this.#endpoints.get(endpointId)?.get(kind);
    if (known && known.lastAtMs >= requestedAtMs) {
      known.failures++;
      known.firstAtMs = Math.min(known.firstAtMs, requestedAtMs);
      return;
    }
    this.#add({
      projectId,
      endpointId,
      kind,
      issueId: known?.issueId ?? newId(),
      failures: 1,
      firstAtMs: requestedAtMs,
      lastAtMs: requestedAtMs,
      deliveryId: id,
      httpStatus: code,
      error: clip(detail ?? '', ERROR_CHARACTERS_MAX, ''),
    });
  }

  /** Adds a group to that of its endpoint and kind. The newer of both is the sample. */
  #add(group: FailureGroup): void {
    const { projectId, endpointId } = group;
    let kinds = this.#endpoints.get(endpointId);
    const kind =
      kinds && kinds.size >= KINDS_MAX && !kinds.has(group.kind) ? OTHER_KIND : group.kind;
    const known = kinds?.get(kind);
    if (known) {
      const [failures, firstAtMs] = [known.failures, Math.min(known.firstAtMs, group.firstAtMs)];
      if (group.lastAtMs >= known.lastAtMs) Object.assign(known, group, { kind });
      known.failures = failures + group.failures;
      known.firstAtMs = firstAtMs;
      return;
    }
    const ofProject = this.#ofProject.get(projectId) ?? 0;
    if (this.#size >= GROUPS_MAX || ofProject >= PROJECT_GROUPS_MAX) return;
    if (!kinds) this.#endpoints.set(endpointId, (kinds = new Map<string, Group>()));
    kinds.set(kind, { ...group, kind });
    this.#size++;
    this.#ofProject.set(projectId, ofProject + 1);
    this.#failing.add(endpointId);
  }

  #succeed({ projectId, endpointId, atMs }: EndpointSuccess): void {
    const known = this.#succeeded.get(endpointId);
    if (!known || known.atMs < atMs)
      this.#succeeded.set(endpointId, { projectId, endpointId, atMs });
  }

  #forget(): void {
    this.#endpoints = new Map();
    this.#ofProject = new Map();
    this.#size = 0;
  }

  async #readFailing(): Promise<void> {
    const failing = new Set(await readFailingEndpoints(this.options.database.pool));
    for (const endpointId of this.#endpoints.keys()) failing.add(endpointId);
    this.#failing = failing;
  }
}
