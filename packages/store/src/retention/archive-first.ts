import type pg from 'pg';
import { isGatewayError } from '@gateway/core/errors';
import type { DayToWrite } from './archive.js';
import type { Cutoffs } from './cutoffs.js';
import { readExpiredEvents, someRowsStay, type ExpiredEvents } from './expired-events.js';

export interface Archive {
  /** Rejects if the archive cannot be written. */
  write(day: DayToWrite): Promise<void>;
  /** Days before this one (`2026-01-31`) are deleted if they cannot be archived. */
  readonly giveUpBefore: string | undefined;
}

export interface NotArchived {
  /** Expired days that are kept. */
  readonly waiting: readonly string[];
  /** Days of projects that were deleted without a copy. */
  readonly lost: readonly { readonly projectId: string; readonly day: string }[];
  /** Why the archive, or the days of a project, could not be written. */
  readonly error: unknown;
}

type Client = Pick<pg.PoolClient, 'query'>;

/**
 * After a failure, it tries no more in this run, except that an object that cannot be read stops
 * the days of its project alone.
 */
export class ArchiveFirst implements NotArchived {
  readonly #waiting = new Set<string>();
  readonly lost: { readonly projectId: string; readonly day: string }[] = [];
  /** For all days. */
  #failure: Error | undefined;
  /** For days of these projects. */
  readonly #broken = new Map<string, Error>();
  #hasSucceeded = false;

  constructor(
    private readonly client: Client,
    private readonly options: {
      readonly archive: Archive;
      readonly cutoffs: Cutoffs;
      readonly signal: AbortSignal | undefined;
    },
  ) {}

  get waiting(): readonly string[] {
    return [...this.#waiting].sort();
  }

  get error(): unknown {
    return this.#failure ?? [...this.#broken.values()][0];
  }

  /** The day must be kept as it is, because the archive fails. */
  keeps(day: string): boolean {
    if (!this.#failure || this.#isGivenUp(day)) return false;
    this.#waiting.add(day);
    return true;
  }

  /**
   * Whether rows written before the time may be deleted. They stay while any row of the day is
   * unfinished or newer: a part of a day that is archived early would lack its outcome.
   */
  async saveFinished(events: ExpiredEvents, before: Date): Promise<boolean> {
    return !(await someRowsStay(this.client, events, before)) && (await this.save(events, before));
  }

  /**
   * Whether they may be deleted. Events of a deleted project are not archived.
   *
   * @param before all events written before this time are among those of the day
   */
  async save(events: ExpiredEvents, before: Date): Promise<boolean> {
    const { archive, cutoffs, signal } = this.options;
    const { projectId, day } = events;
    if (cutoffs.deletedProjects.has(projectId)) return true;
    if (!this.#failure) {
      try {
        await archive.write({
          projectId,
          day,
          writtenBefore: before,
          pages: (since) => readExpiredEvents(this.client, events, since),
        });
        this.#hasSucceeded = true;
        return true;
      } catch (error) {
        if (signal?.aborted) return false;
        if (isGatewayError(error, 'archive_broken')) this.#broken.set(projectId, error);
        else this.#failure = error as Error;
        await this.#recordFailure();
      }
    }
    if (!this.#isGivenUp(day)) {
      this.#waiting.add(day);
      return false;
    }
    this.lost.push({ projectId, day });
    return true;
  }

  /** Forgets an earlier failure if all days could be archived. */
  async end(): Promise<void> {
    if (this.#hasSucceeded && this.error === undefined)
      await this.client.query('delete from archive_failure');
  }

  async #recordFailure(): Promise<void> {
    const errors = this.#failure ? [this.#failure] : [...this.#broken.values()];
    await this.client.query(
      // Citus calls no function in the update of a conflict.
      `insert into archive_failure (reason, failed_at) values ($1, now())
       on conflict (singleton) do update
       set reason = excluded.reason, failed_at = excluded.failed_at`,
      [errors.map(({ message }) => message).join('\n')],
    );
  }

  #isGivenUp(day: string): boolean {
    const { giveUpBefore } = this.options.archive;
    return giveUpBefore !== undefined && day < giveUpBefore;
  }
}

export interface ArchiveFailure {
  readonly since: Date;
  readonly reason: string;
  readonly isOfProject: boolean;
}

/**
 * Undefined if its days can be archived. The reason of a broken object begins with its key, which
 * names its project. No lock.
 */
export async function readArchiveFailure(
  pool: Client,
  projectId: string,
): Promise<ArchiveFailure | undefined> {
  const { rows } = await pool.query<ArchiveFailure>(
    `select since, reason, is_of_project as "isOfProject"
       from (select *, reason ~ '^(shard=[^/]*/)?project=' as is_of_project from archive_failure) f
      where not is_of_project or position('project=' || $1 in reason) > 0`,
    [projectId],
  );
  const [failure] = rows;
  if (!failure?.isOfProject) return failure;
  const ofProject = failure.reason.split('\n').find((it) => it.includes(`project=${projectId}`));
  return { ...failure, reason: ofProject! };
}
