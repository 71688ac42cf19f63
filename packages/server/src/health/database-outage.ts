import type { Config } from '@gateway/core/config';
import {
  explainDatabaseError,
  GatewayError,
  isGatewayError,
  type ErrorCode,
} from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { withTimeout } from '@gateway/core/process';
import { databaseFault, faultText } from '@gateway/ingest/dependencies';
import { acceptsConnection, probeDatabase } from '@gateway/store/postgres';
import { DEFAULT_SHARD, type Shard } from '@gateway/store/shards';

const RETRY_AFTER_SECONDS = 5;
const ANSWER_MS = 2_000;
/**
 * Waiting work then checks whether its shards accept connections: longer than a pool may take to
 * connect, and shorter once an outage is known.
 */
const PATIENCE_MS = 5_500;
const PATIENCE_AWAY_MS = 1_000;
const TOOK_LONG = 'the operation did not finish in time';
/**
 * A success ends an outage after this time without a failure. Earlier successes do not, because
 * they alternate with failures while connections are scarce.
 */
const CALM_MS = 5_000;

/** Determines the error if the step fails. */
export type Effect =
  /** Reads cacheable records, so a success proves nothing about Postgres. */
  | 'looks_up'
  | 'reads'
  /** Commits once, at the end, so a Postgres error means that nothing was stored. */
  | 'creates'
  | 'changes';

const SHARD_AWAY = [
  'A shard is unavailable: requests for its projects get 503.',
  'A shard is available again.',
] as const;

const OUTAGES = {
  database_away: ['Postgres is unavailable: requests get 503.', 'Postgres is available again.'],
  database_takes_no_writes: [
    'Postgres accepts no writes: requests that change something get 503.',
    'Postgres accepts writes again.',
  ],
} as const;

type Outage = keyof typeof OUTAGES;

const OUTAGE_OF: Partial<Record<ErrorCode, Outage>> = {
  database_unreachable: 'database_away',
  database_tls: 'database_away',
  database_refused: 'database_away',
  database_missing: 'database_away',
  database_full: 'database_away',
  database_busy: 'database_away',
  database_timeout: 'database_away',
  database_pooled: 'database_away',
  database_read_only: 'database_takes_no_writes',
  database_forbidden: 'database_takes_no_writes',
  database_exhausted: 'database_takes_no_writes',
};

/**
 * Throws `took_too_long` if `work` exceeds `withinMs` although Postgres responds; otherwise
 * `shard_away`, `database_away` or `database_takes_no_writes` if Postgres is the cause. Does not
 * wait for a shard that accepts no connection, nor creates anything while that is known. The errors
 * do not reveal the host or the user.
 */
export type AskDatabase = <T>(
  work: () => Promise<T>,
  options: {
    readonly effect: Effect;
    readonly withinMs: number;
    /** The shards that `work` depends on. Called after a failure, or if it takes long. */
    readonly shards?: () => Promise<readonly Shard[]>;
  },
) => Promise<T>;

interface OngoingOutage {
  readonly shard: string | undefined;
  readonly since: Date;
  lastMs: number;
}

/** Logs the first failure of an outage and its end. Errors not caused by an outage are rethrown. */
export function askDatabase({
  config,
  log,
  database,
}: {
  config: Pick<Config, 'database'>;
  log: Log;
  database: { readonly pool: { query(text: string): Promise<unknown> } };
}): AskDatabase {
  /** Whether Postgres responds: slow work can also be waiting for something else. */
  const answers = () =>
    withTimeout(database.pool.query('select 1'), ANSWER_MS).then(
      () => true,
      () => false,
    );
  const outages = new Map<string, OngoingOutage>();
  const asked = new Map<Shard, Promise<boolean>>();

  /** Concurrent callers share the probe. */
  const accepts = (shard: Shard): Promise<boolean> => {
    const asking =
      asked.get(shard) ??
      acceptsConnection(shard.database, ANSWER_MS).finally(() => asked.delete(shard));
    asked.set(shard, asking);
    return asking;
  };

  /** Rejects with `FrozenShard` while `work` waits, if one of its shards accepts no connection. */
  function unlessFrozen<T>(work: Promise<T>, shards: () => Promise<readonly Shard[]>): Promise<T> {
    return new Promise((resolve, reject) => {
      const ask = async () => {
        for (const shard of await shards())
          if (!(await accepts(shard))) reject(new FrozenShard(shard, true));
      };
      const everyMs = outages.size > 0 ? PATIENCE_AWAY_MS : PATIENCE_MS;
      const timer = setInterval(() => void ask().catch(() => undefined), everyMs);
      void work.then(resolve, reject).finally(() => clearInterval(timer));
    });
  }

  function failed(outage: Outage, error: unknown, shard: Shard | undefined): void {
    const key = shard?.name ?? outage;
    const known = outages.get(key);
    if (known) {
      known.lastMs = Date.now();
      return;
    }
    const since = new Date();
    outages.set(key, { shard: shard?.name, since, lastMs: since.getTime() });
    const reason = faultText(databaseFault(error, shard?.settings ?? config.database, shard?.name));
    const [sentence] = shard ? SHARD_AWAY : OUTAGES[outage];
    log.warn({ ...placeOf(shard?.name), since, reason }, sentence);
  }

  /** @param used the shards that the successful work depended on */
  function succeeded(effect: Effect, used: readonly Shard[]): void {
    if (effect === 'looks_up') return;
    for (const [key, { shard, since, lastMs }] of outages) {
      if (
        Date.now() - lastMs < CALM_MS ||
        (key === 'database_takes_no_writes' && effect === 'reads') ||
        (shard !== undefined && !used.some(({ name }) => name === shard))
      )
        continue;
      outages.delete(key);
      log.info(
        { ...placeOf(shard), since, seconds: Math.round((lastMs - since.getTime()) / 1000) },
        shard === undefined ? OUTAGES[key as Outage][1] : SHARD_AWAY[1],
      );
    }
  }

  return async (work, { effect, withinMs, shards = none }) => {
    try {
      if (effect === 'creates' && outages.size > 0)
        for (const shard of await shards().catch(none))
          if (outages.has(shard.name) && !(await accepts(shard)))
            throw new FrozenShard(shard, false);
      const working = shards === none ? work() : unlessFrozen(work(), shards);
      const done = await withTimeout(working, withinMs, TOOK_LONG);
      if (outages.size > 0) succeeded(effect, await shards());
      return done;
    } catch (error) {
      const explained = explainDatabaseError(error, config.database);
      const found = isGatewayError(explained) ? OUTAGE_OF[explained.code] : undefined;
      if (!found) throw error;
      const hasExpired = error instanceof Error && error.message === TOOK_LONG;
      const isReading = effect === 'looks_up' || effect === 'reads';
      // Without memory or disk space, Postgres accepts no writes. If a read fails too, Postgres
      // counts as unavailable.
      const outage = isReading ? 'database_away' : found;
      const outcome =
        isReading ||
        (error instanceof FrozenShard && !error.hasBegun) ||
        (effect === 'creates' && isBeforeCommit(error))
          ? 'nothing was stored or changed'
          : 'it is unknown whether the request was carried out; it is safe to send it again, unless it creates something without an idempotency key';
      const away =
        error instanceof FrozenShard
          ? [error.shard].find(isOther)
          : await awayShard(await shards().catch(none), isReading);
      const isHere = (hasExpired && effect !== 'looks_up') || away ? await answers() : false;
      if (away && isHere) {
        failed(outage, error, away);
        throw new GatewayError(
          'shard_away',
          {
            shard: away.name,
            state: outage === 'database_away' ? 'is unavailable' : 'accepts no writes',
            outcome,
            retryAfterSeconds: RETRY_AFTER_SECONDS,
          },
          { cause: error },
        );
      }
      if (hasExpired && effect !== 'looks_up' && isHere)
        throw new GatewayError(
          'took_too_long',
          { seconds: withinMs / 1000, outcome },
          { cause: error },
        );
      failed(outage, error, undefined);
      throw new GatewayError(
        outage,
        { outcome, retryAfterSeconds: RETRY_AFTER_SECONDS },
        { cause: error },
      );
    }
  };
}

/** Has the code of a connection that is not established. */
class FrozenShard extends Error {
  readonly code = 'ETIMEDOUT';

  constructor(
    readonly shard: Shard,
    readonly hasBegun: boolean,
  ) {
    super('no answer in time');
  }
}

const none = () => Promise.resolve([]);
const isOther = ({ name }: Shard) => name !== DEFAULT_SHARD;

const placeOf = (shard: string | undefined) => ({
  dependency: 'postgres',
  ...(shard !== undefined && { shard }),
});

/** The first shard, apart from the default one, that does not respond or cannot write. */
async function awayShard(shards: readonly Shard[], isReading: boolean): Promise<Shard | undefined> {
  for (const shard of shards.filter(isOther)) {
    const isWell = await withTimeout(probeDatabase(shard.database.pool, ANSWER_MS), ANSWER_MS).then(
      ({ isWritable }) => isReading || isWritable,
      () => false,
    );
    if (!isWell) return shard;
  }
  return undefined;
}

/**
 * Postgres rejected the statement or never received it. A broken connection can follow a commit.
 */
export function isBeforeCommit(error: unknown): boolean {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.every(isBeforeCommit);
  const given = (error ?? {}) as Partial<
    Record<'code' | 'name' | 'syscall' | 'severity' | 'message', string>
  >;
  const { code = '', name = '', syscall = '', severity, message = '' } = given;
  // Errors of class 08, 57P01 and 57P02 end the connection:
  // https://www.postgresql.org/docs/current/errcodes-appendix.html
  if (severity !== undefined) return !/^08|^57P0[12]$/.test(code);
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true;
  return (
    name === 'KnexTimeoutError' ||
    /timeout exceeded when trying to connect|due to connection timeout|^timeout expired$/.test(
      message,
    )
  );
}
