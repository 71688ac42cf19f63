import type pg from 'pg';
import { withAdvisoryLock, withConnection } from '../postgres/advisory-lock.js';
import { COUNTS_LOCK, vacuumDeltas } from './count-deltas.js';
import { readQueueSample, type QueueSample } from './queue-sample.js';
import type { Querier } from '../postgres/connection.js';

export interface SampleTime {
  /** Seconds; positive even if Postgres' clock was set back: the next sample becomes due. */
  readonly age: number;
  readonly seconds: number;
}

export interface StoredSample extends SampleTime {
  readonly takenAt: string;
  /** Null: the caller has it already. */
  readonly sample: QueueSample | null;
}

const TIMES = 'abs(extract(epoch from now() - taken_at))::float8 as age, seconds';

/**
 * Returns the last sample; undefined without one in this version's format. Its body is omitted if
 * taken at `known`.
 */
export async function lastSample(
  client: Querier,
  known: string | undefined,
): Promise<StoredSample | undefined> {
  const { rows } = await client.query<SampleTime & { takenAt: string; body: string | null }>({
    name: 'last-sample',
    text: `select ${TIMES}, taken_at::text as "takenAt", case when taken_at::text is distinct from $1 then body end as body from metric_samples`,
    values: [known ?? null],
  });
  const [row] = rows;
  if (!row) return undefined;
  const { body, ...time } = row;
  if (body === null) return { ...time, sample: null };
  const { words, ...sample } = JSON.parse(body) as QueueSample & { readonly words?: unknown };
  // The previous version stores numbers that refer to `words`.
  return words === undefined ? { ...time, sample } : undefined;
}

interface Taking {
  /** Called again under the lock. */
  readonly isDue: (last: SampleTime | undefined) => boolean;
  readonly timeoutMs: number;
  readonly countsMax: number;
  readonly signal?: AbortSignal;
}

/**
 * Takes and stores a sample for all processes, unless another one does or did. After a failure, the
 * last one remains.
 */
export async function takeSample(
  pool: pg.Pool,
  { isDue, timeoutMs, countsMax, signal }: Taking,
): Promise<void> {
  const work = async (client: pg.PoolClient) => {
    const { rows } = await client.query<SampleTime>({
      name: 'last-sample-time',
      text: `select ${TIMES} from metric_samples`,
    });
    if (!isDue(rows[0])) return;
    const startedAtMs = performance.now();
    await client.query(
      `begin isolation level repeatable read; set local statement_timeout = ${timeoutMs}`,
    );
    const read = (beside: pg.PoolClient) =>
      readQueueSample(client, beside, { timeoutMs, countsMax });
    // A pool of one connection has no second one.
    const sample = await (pool.options.max < 2
      ? read(client)
      : withSnapshot(pool, client, { timeoutMs, signal }, read));
    await client.query({
      name: 'store-sample',
      text: `insert into metric_samples (taken_at, seconds, body) values (now(), $1, $2)
             on conflict (singleton) do update set taken_at = excluded.taken_at, seconds = excluded.seconds, body = excluded.body`,
      values: [(performance.now() - startedAtMs) / 1000, JSON.stringify(sample)],
    });
    await client.query('commit');
    await vacuumDeltas(pool, client);
  };
  await withAdvisoryLock(pool, COUNTS_LOCK, work, signal);
}

/**
 * Runs `work` with a second connection on the same snapshot. A parallel query would start a worker
 * that opens every partition again.
 */
async function withSnapshot<T>(
  pool: pg.Pool,
  client: pg.PoolClient,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal | undefined },
  work: (other: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const { rows } = await client.query<{ snapshot: string }>(
    'select pg_export_snapshot() as snapshot',
  );
  const begin = `begin isolation level repeatable read read only; set transaction snapshot '${rows[0]!.snapshot}'; set local statement_timeout = ${timeoutMs}`;
  const reading = async (other: pg.PoolClient) => {
    await other.query(begin);
    const result = await work(other);
    await other.query('commit');
    return result;
  };
  return withConnection(pool, reading, signal);
}
