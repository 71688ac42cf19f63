import { hostAndPort, type Config } from '@gateway/core/config';
import { databaseReason, isGatewayError } from '@gateway/core/errors';
import { oneAtATime, withTimeout } from '@gateway/core/process';
import type pg from 'pg';
import { openDatabase, type Database } from './database.js';
import { bothPlanes, type Planes } from './planes.js';
import { sqlState } from './sqlstate.js';

/** A replica that takes longer counts as unavailable. */
const ANSWER_MS = 700;
const PRIMARY_ANSWER_MS = 2_000;
/** Ten minutes of positions of the primary, if it is checked each second. */
const POSITIONS_MAX = 600;

/** In the write-ahead log, as reached by the primary at a time. */
interface Position {
  readonly lsn: bigint;
  readonly atMs: number;
}

export interface ReplicaState {
  readonly address: string;
  /** The greatest possible age of its data. Undefined until it is known. */
  readonly lagSeconds: number | undefined;
  /** Why reads go to the primary instead. */
  readonly problem: string | null;
}

interface Replica {
  readonly address: string;
  readonly database: Database;
  /** Slow reads must not occupy the connection of the checks. */
  readonly checks: Database;
  /** Begins no earlier than the call. Never rejects. */
  readonly check: () => Promise<void>;
  /** Ends the waiting reads. */
  readonly reads: Set<(error: LeftOut) => void>;
  /** It has everything that the primary had committed at this time. */
  currentAtMs: number | undefined;
  /** Why it cannot be read. A lag is not among the reasons. */
  fault: string | null;
  isExcluded: boolean;
}

/** The replica was excluded during a read. */
class LeftOut extends Error {}

interface Given {
  readonly settings: Config['database'];
  readonly poolSize: number;
  readonly name: string;
  /** A read ran on this replica, or on `primary`. */
  readonly onRead?: (server: string) => void;
  /** A replica is excluded for a reason or, with null, in use again. */
  readonly onChange?: (replica: string, reason: string | null) => void;
}

const IDENTITY = '(select system_identifier::text from pg_control_system()) as system';
const PRIMARY = `select (pg_current_wal_lsn() - '0/0')::text as lsn, ${IDENTITY}`;
const REPLICA = `select case when pg_is_in_recovery() then (pg_last_wal_replay_lsn() - '0/0')::text end as lsn, ${IDENTITY}`;

/**
 * Read replicas (`database.replicas`) for reads that need not see the latest commits.
 *
 * Each check notes how far the primary has written, and then how far each replica has replayed. A
 * replica that has replayed a noted position has all data committed before that time. This bounds
 * its lag without comparing clocks, an idle primary causes none, and a replica that lost its
 * connection to the primary falls behind like one that is slow.
 *
 * Each read checks its replica too, on another connection at the same time: one that hangs or was
 * promoted costs a read less than a second.
 */
export class Replicas {
  readonly #primary: Planes;
  readonly #replicas: readonly Replica[];
  readonly #given: Given;
  #positions: Position[] = [];
  #system: string | undefined;
  #turn = 0;

  /** The pools connect on first use. Call `check` before reads and each second. */
  constructor(primary: Pick<Database, 'pool'>, given: Given) {
    const { settings, poolSize, name } = given;
    this.#given = given;
    this.#primary = bothPlanes(primary);
    this.#replicas = settings.replicas.map((address) => {
      const place = { ...settings, ...hostAndPort(address) };
      const replica: Replica = {
        address,
        database: openDatabase(place, { poolSize, name }),
        checks: openDatabase(place, { poolSize: 1, name }),
        check: oneAtATime(() => this.#checkOne(replica)),
        reads: new Set(),
        currentAtMs: undefined,
        fault: null,
        isExcluded: false,
      };
      return replica;
    });
  }

  get databases(): readonly Database[] {
    return this.#replicas.map(({ database }) => database);
  }

  get states(): readonly ReplicaState[] {
    return this.#replicas.map((replica) => {
      const lagSeconds =
        replica.currentAtMs === undefined
          ? undefined
          : (performance.now() - replica.currentAtMs) / 1000;
      return { address: replica.address, lagSeconds, problem: this.#problemOf(replica) };
    });
  }

  /**
   * On a replica that is at most `database.max_replica_lag_seconds` behind. If there is none, or it
   * fails, runs `onPrimary`, by default the same work.
   */
  readonly read = async <T>(work: (planes: Planes) => Promise<T>, onPrimary = work): Promise<T> => {
    const current = this.#replicas.filter((replica) => this.#problemOf(replica) === null);
    const replica = current[this.#turn++ % current.length];
    if (replica) {
      try {
        const result = await this.#readFrom(replica, work);
        this.#given.onRead?.(replica.address);
        return result;
      } catch (error) {
        if (!isFaultOfServer(error)) throw error;
        if (!(error instanceof LeftOut)) this.#fail(replica, error);
      }
    }
    if (this.#replicas.length > 0) this.#given.onRead?.('primary');
    return onPrimary(this.#primary);
  };

  /** Never rejects. */
  async check(): Promise<void> {
    const atMs = performance.now();
    const asking = askPosition(this.#primary.data, PRIMARY, PRIMARY_ANSWER_MS);
    const primary = await asking.catch(() => undefined);
    this.#system = primary?.system ?? this.#system;
    if (primary?.lsn) {
      const lsn = BigInt(primary.lsn);
      // After a failover, positions of the former primary mean nothing.
      if (lsn < (this.#positions.at(-1)?.lsn ?? 0n)) this.#positions = [];
      this.#positions.push({ lsn, atMs });
      if (this.#positions.length > POSITIONS_MAX) this.#positions.shift();
    }
    await Promise.all(this.#replicas.map((replica) => replica.check()));
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#replicas.flatMap(({ database, checks }) => [database.close(), checks.close()]),
    );
  }

  /** Rejects as soon as the replica is excluded, without waiting for work that hangs. */
  #readFrom<T>(replica: Replica, work: (planes: Planes) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      replica.reads.add(reject);
      void Promise.all([work(bothPlanes(replica.database)), replica.check()])
        .then(([result]) => resolve(result), reject)
        .finally(() => replica.reads.delete(reject));
    });
  }

  async #checkOne(replica: Replica): Promise<void> {
    try {
      const asking = askPosition(replica.checks.pool, REPLICA, ANSWER_MS);
      const answer = await withTimeout(asking, ANSWER_MS);
      replica.fault =
        answer.lsn === null
          ? `${replica.address} is not a replica`
          : this.#system !== undefined && answer.system !== this.#system
            ? `${replica.address} is a replica of another Postgres`
            : null;
      const replayed = BigInt(answer.lsn ?? 0);
      const reached = this.#positions.findLast(({ lsn }) => lsn <= replayed);
      if (replica.fault === null && reached) replica.currentAtMs = reached.atMs;
    } catch (error) {
      this.#fail(replica, error);
    }
    if (replica.fault !== null) for (const end of replica.reads) end(new LeftOut(replica.fault));
    this.#report(replica);
  }

  #fail(replica: Replica, error: unknown): void {
    const place = { ...this.#given.settings, ...hostAndPort(replica.address) };
    replica.fault = databaseReason(error, place).reason;
    this.#report(replica);
  }

  #problemOf({ address, currentAtMs, fault }: Replica): string | null {
    if (fault !== null) return fault;
    const max = this.#given.settings.max_replica_lag_seconds;
    if (currentAtMs !== undefined && performance.now() - currentAtMs <= max * 1000) return null;
    return `${address} is more than ${max} s behind the primary`;
  }

  #report(replica: Replica): void {
    const reason = this.#problemOf(replica);
    const isExcluded = reason !== null;
    if (isExcluded !== replica.isExcluded) this.#given.onChange?.(replica.address, reason);
    replica.isExcluded = isExcluded;
  }
}

async function askPosition(
  pool: pg.Pool,
  text: string,
  withinMs: number,
): Promise<{ readonly lsn: string | null; readonly system: string }> {
  const { rows } = await pool.query<{ lsn: string | null; system: string }>({
    text,
    query_timeout: withinMs,
  });
  return rows[0]!;
}

/**
 * Another server may answer: the connection failed, or the server is out of resources, shuts down,
 * or cancelled the statement because it conflicted with the replay.
 */
function isFaultOfServer(error: unknown): boolean {
  if (isGatewayError(error)) return false;
  const code = sqlState(error);
  return code === undefined || /^(08|40|53|57P|58)/.test(code);
}
