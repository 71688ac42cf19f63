import type pg from 'pg';
import type { DayToWrite } from '../archive/index.js';
import { isExpired, DAY_MS, type Cutoffs } from './cutoffs.js';
import { readExpiredEvents, someRowsStay, type ExpiredEvents } from './expired-events.js';

/** Where retention copies events before it deletes them. */
export interface Archive {
  /** Adds a project's day. Rejects if the archive cannot be written. */
  write(day: DayToWrite): Promise<void>;
  /** Days after which retention no longer waits for an archive that cannot be written. */
  readonly maxDelayDays: number;
}

/** The days that a run of retention could not archive. */
export interface NotArchived {
  /** Expired days that are kept. */
  readonly waiting: readonly string[];
  /** Days of projects that were deleted without a copy. */
  readonly lost: readonly { readonly projectId: string; readonly day: string }[];
  /** Why the archive could not be written. */
  readonly error: unknown;
}

type Client = Pick<pg.PoolClient, 'query'>;

/**
 * Archives what a run of retention is about to delete. After a failure, it tries no more in this
 * run.
 */
export class ArchiveFirst implements NotArchived {
  readonly #waiting = new Set<string>();
  readonly lost: { readonly projectId: string; readonly day: string }[] = [];
  error: unknown;
  #isLong = false;
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

  /** Returns whether a day must be kept as it is, because the archive fails. */
  keeps(day: string): boolean {
    if (this.error === undefined || this.#isOverdue(undefined, day)) return false;
    this.#waiting.add(day);
    return true;
  }

  /**
   * Archives the events of a project's day, and returns whether their rows written before the time
   * may be deleted. They stay while any row of the day is unfinished or newer: a part of a day that
   * is archived early would lack its outcome.
   */
  async saveFinished(events: ExpiredEvents, before: Date): Promise<boolean> {
    return !(await someRowsStay(this.client, events, before)) && (await this.save(events, before));
  }

  /**
   * Archives the events of a project's day, and returns whether they may be deleted. Events of a
   * deleted project are not archived.
   *
   * @param before all events written before this time are among those of the day
   */
  async save(events: ExpiredEvents, before: Date): Promise<boolean> {
    const { archive, cutoffs, signal } = this.options;
    const { projectId, day } = events;
    if (cutoffs.deletedProjects.has(projectId)) return true;
    if (this.error === undefined) {
      try {
        await archive.write({
          projectId,
          day,
          writtenBefore: before,
          pages: (since) => readExpiredEvents(this.client, events, since),
        });
        if (!this.#hasSucceeded) await this.client.query('delete from archive_failure');
        this.#hasSucceeded = true;
        return true;
      } catch (error) {
        if (signal?.aborted) return false;
        this.error = error;
        this.#isLong = await this.#recordFailure(error as Error);
      }
    }
    if (!this.#isOverdue(projectId, day)) {
      this.#waiting.add(day);
      return false;
    }
    this.lost.push({ projectId, day });
    return true;
  }

  /** Records the failure, and returns whether it has lasted for `maxDelayDays`. */
  async #recordFailure({ message }: Error): Promise<boolean> {
    const { rows } = await this.client.query<{ is_long: boolean }>(
      `insert into archive_failure (reason) values ($1)
       on conflict (singleton) do update set reason = excluded.reason, failed_at = now()
       returning since <= now() - $2 * interval '1 day' as is_long`,
      [message, this.options.archive.maxDelayDays],
    );
    return rows[0]!.is_long;
  }

  /**
   * Whether the archive has failed for so long that a day is deleted without a copy. Only days that
   * expired as long ago are, so that the disk holds at most `maxDelayDays` more than without an archive.
   */
  #isOverdue(projectId: string | undefined, day: string): boolean {
    const { archive, cutoffs } = this.options;
    const expiresAs = new Date(Date.parse(day) + archive.maxDelayDays * DAY_MS).toISOString();
    return this.#isLong && isExpired(cutoffs, projectId, expiresAs);
  }
}

export interface ArchiveFailure {
  readonly since: Date;
  readonly reason: string;
}

/** Returns since when and why the archive cannot be written, or undefined if it can. No lock. */
export async function readArchiveFailure(pool: Client): Promise<ArchiveFailure | undefined> {
  const { rows } = await pool.query<ArchiveFailure>('select since, reason from archive_failure');
  return rows[0];
}
