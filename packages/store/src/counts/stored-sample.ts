import type pg from 'pg';
import { withAdvisoryLock, withTransaction } from '../postgres/advisory-lock.js';
import { COUNTS_LOCK, vacuumDeltas } from './count-deltas.js';
import { readQueueSample, type QueueSample } from './queue-sample.js';
import type { Querier } from '../postgres/connection.js';
import { controlBeside, type Planes } from '../postgres/planes.js';
import type { Replicas } from '../postgres/replicas.js';

export interface SampleTime {
  /** In seconds. Positive even if the Postgres clock was set back, so that the next becomes due. */
  readonly age: number;
  readonly seconds: number;
}

export interface StoredSample extends SampleTime {
  readonly takenAt: string;
  /** Null if the caller already has the sample. */
  readonly sample: QueueSample | null;
}

const TIMES = 'abs(extract(epoch from now() - taken_at))::float8 as age, seconds';

/** Omits the sample if it was taken at `known`. */
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
  return { ...time, sample: body === null ? null : (JSON.parse(body) as QueueSample) };
}

interface Taking {
  /** Checked again under the lock, because another process may have taken a sample. */
  readonly isDue: (last: SampleTime | undefined) => boolean;
  readonly timeoutMs: number;
  readonly countsMax: number;
  /** Counts what waits on a replica, if given. */
  readonly read?: Replicas['read'] | undefined;
  readonly signal?: AbortSignal;
}

/**
 * For all processes, unless another one is doing so or has just done so. After a failure, the last
 * sample remains.
 */
export async function takeSample(
  planes: Planes,
  { isDue, timeoutMs, countsMax, read: onAReplica, signal }: Taking,
): Promise<void> {
  const { data } = planes;
  const work = async (client: pg.PoolClient) => {
    const { rows } = await client.query<SampleTime>({
      name: 'last-sample-time',
      text: `select ${TIMES} from metric_samples`,
    });
    if (!isDue(rows[0])) return;
    const startedAtMs = performance.now();
    const limit = `set local statement_timeout = ${timeoutMs}`;
    await client.query(`begin isolation level repeatable read; ${limit}`);
    const control = controlBeside(planes, client);
    const read = (beside: pg.PoolClient) =>
      readQueueSample(client, beside, { control, timeoutMs, countsMax });
    const readOn = (pool: pg.Pool, snapshot = '') => {
      const begin = `begin isolation level repeatable read read only; ${snapshot}${limit}`;
      return withTransaction(pool, read, { begin, signal });
    };
    const onPrimary = async () => {
      // A pool of one connection has no second one.
      if (data.options.max < 2) return read(client);
      // A second connection with the same snapshot is cheaper than a parallel query, whose worker
      // would open every partition again.
      const { rows } = await client.query<{ snapshot: string }>(
        'select pg_export_snapshot() as snapshot',
      );
      return readOn(data, `set transaction snapshot '${rows[0]!.snapshot}'; `);
    };
    const onReplica = (its: Planes) => readOn(its.data);
    const sample = await (onAReplica ? onAReplica(onReplica, onPrimary) : onPrimary());
    await client.query({
      name: 'store-sample',
      text: `insert into metric_samples (taken_at, seconds, body) values (now(), $1, $2)
             on conflict (singleton) do update set taken_at = excluded.taken_at, seconds = excluded.seconds, body = excluded.body`,
      values: [(performance.now() - startedAtMs) / 1000, JSON.stringify(sample)],
    });
    await client.query('commit');
    await vacuumDeltas(data, client);
  };
  await withAdvisoryLock(data, COUNTS_LOCK, work, signal);
}
