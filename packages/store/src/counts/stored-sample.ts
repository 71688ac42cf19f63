import type pg from 'pg';
import { COUNTS_LOCK, vacuumDeltas } from './apply-deltas.js';
import { withAdvisoryLock, withConnection } from '../postgres/advisory-lock.js';
import { readQueueSample, type QueueSample } from './queue-sample.js';

/** When a sample was taken. */
export interface SampleTime {
  /** How long ago, in seconds; positive also when the clock of Postgres was set back since, so that the next one is due. */
  readonly age: number;
  /** How long that took, in seconds. */
  readonly seconds: number;
}

/** The last sample of the instance, whichever process took it. */
export interface StoredSample extends SampleTime {
  /** Names it. */
  readonly takenAt: string;
  /** Null: the reader has it already. */
  readonly sample: QueueSample | null;
}

const TIMES = 'abs(extract(epoch from now() - taken_at))::float8 as age, seconds';

/** When the last sample was taken; undefined when there is none. */
async function lastTime(client: pg.PoolClient): Promise<SampleTime | undefined> {
  const { rows } = await client.query<{ age: number; seconds: number }>({
    name: 'last-sample-time',
    text: `select ${TIMES} from metric_samples`,
  });
  return rows[0];
}

/**
 * The last sample; undefined when there is none.
 *
 * @param known name of the sample that the caller has: that one is not sent again
 */
export async function lastSample(client: Pick<pg.Pool, 'query'>, known: string | undefined): Promise<StoredSample | undefined> {
  const { rows } = await client.query<{ age: number; seconds: number; taken_at: string; body: string | null }>({
    name: 'last-sample',
    text: `select ${TIMES}, taken_at::text,
                  case when taken_at::text is distinct from $1 then body end as body from metric_samples`,
    values: [known ?? null],
  });
  const [row] = rows;
  return row && { age: row.age, seconds: row.seconds, takenAt: row.taken_at, sample: row.body === null ? null : unpacked(row.body) };
}

/**
 * Takes a sample for all processes and keeps it, unless another process is at it, or has done it meanwhile.
 *
 * @param isDue whether the last sample, looked at again when no other process can be at it, is old enough
 * @param timeoutMs for each statement
 * @param countsMax how many counts a series may show
 * @param signal breaks it off
 * @throws the error of Postgres: the last sample stays
 */
export async function takeSample(
  pool: pg.Pool,
  {
    isDue,
    timeoutMs,
    countsMax,
    signal,
  }: {
    isDue: (last: SampleTime | undefined) => boolean;
    timeoutMs: number;
    countsMax: number;
    signal?: AbortSignal;
  },
): Promise<void> {
  const work = async (client: pg.PoolClient) => {
    if (!isDue(await lastTime(client))) return;
    const startedAtMs = performance.now();
    await client.query(`begin isolation level repeatable read; set local statement_timeout = ${timeoutMs}`);
    const sample = await beside(pool, client, { timeoutMs, signal }, (other) => readQueueSample(client, other, { timeoutMs, countsMax }));
    await client.query({
      name: 'keep-sample',
      text: `insert into metric_samples (taken_at, seconds, body) values (now(), $1, $2)
             on conflict (singleton) do update set taken_at = excluded.taken_at, seconds = excluded.seconds, body = excluded.body`,
      values: [(performance.now() - startedAtMs) / 1000, packed(sample)],
    });
    await client.query('commit');
    await vacuumDeltas(pool, client);
  };
  await withAdvisoryLock(pool, COUNTS_LOCK, work, signal);
}

/**
 * Does the work with a second connection that sees what the transaction of the first saw when it began. Not by a parallel query: its process would be new
 * each time, and open every partition anew.
 */
async function beside<T>(
  pool: pg.Pool,
  client: pg.PoolClient,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal | undefined },
  work: (other: pg.PoolClient) => Promise<T>,
): Promise<T> {
  // The only connection would be waited for forever.
  if (pool.options.max < 2) return work(client);
  const { rows } = await client.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot');
  const { snapshot } = rows[0]!;
  const reading = async (other: pg.PoolClient) => {
    await other.query(
      `begin isolation level repeatable read read only; set transaction snapshot '${snapshot}'; set local statement_timeout = ${timeoutMs}`,
    );
    const result = await work(other);
    await other.query('commit');
    return result;
  };
  return withConnection(pool, reading, signal);
}

/** As text in which each word stands once: ids are most of it. */
function packed({ events, deliveries, attempts, projects, hidden }: QueueSample): string {
  const words = new Map<string, number>();
  const pack = (row: readonly (string | number | null)[]) =>
    row.map((value) => {
      if (typeof value !== 'string') return value === null ? null : [value];
      let at = words.get(value);
      if (at === undefined) words.set(value, (at = words.size));
      return at;
    });
  const rows = { events: events.map(pack), deliveries: deliveries.map(pack), attempts: attempts.map(pack) };
  return JSON.stringify({ ...rows, projects, hidden, words: [...words.keys()] });
}

type PackedRow = readonly (number | readonly [number] | null)[];
type Packed = Readonly<Record<'events' | 'deliveries' | 'attempts', readonly PackedRow[]>> &
  Pick<QueueSample, 'projects' | 'hidden'> & { readonly words: readonly string[] };

function unpacked(body: string): QueueSample {
  const { words, events, deliveries, attempts, projects, hidden } = JSON.parse(body) as Packed;
  const unpack = <Row>(row: PackedRow) => row.map((value) => (typeof value === 'number' ? words[value] : (value?.[0] ?? null))) as Row;
  return {
    events: events.map(unpack),
    deliveries: deliveries.map(unpack),
    attempts: attempts.map(unpack),
    projects,
    hidden,
  } as QueueSample;
}
