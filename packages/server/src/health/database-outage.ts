import type { Config } from '@gateway/core/config';
import { databaseReason, explainDatabaseError, GatewayError, isGatewayError, type ErrorCode } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { withTimeout } from '@gateway/core/process';

const RETRY_AFTER_SECONDS = 5;
/** An outage is over when requests succeed and none has failed for so long: where Postgres has too few connections, the two take turns. */
const CALM_MS = 5_000;

/** What a part of a request does to Postgres, for what is said when Postgres fails it. */
export type Effect =
  /** Reads, if no cache has it: success says nothing about Postgres. */
  | 'looks_up'
  | 'reads'
  /** One commit, so that an error of Postgres means that nothing was stored. */
  | 'creates'
  /** Maybe in several commits. */
  | 'changes';

/** How much of Postgres is away, with what is logged when it goes, and when it is back. */
const OUTAGES = {
  database_away: ['Postgres is away: requests are answered with 503.', 'Postgres is back.'],
  database_takes_no_writes: [
    'Postgres takes no writes: requests that change something are answered with 503.',
    'Postgres takes writes again.',
  ],
} as const;

type Outage = keyof typeof OUTAGES;

/** By the codes of `explainDatabaseError`. */
const OUTAGE_OF: Partial<Record<ErrorCode, Outage>> = {
  database_unreachable: 'database_away',
  database_tls: 'database_away',
  database_refused: 'database_away',
  database_missing: 'database_away',
  database_full: 'database_away',
  database_read_only: 'database_takes_no_writes',
  database_exhausted: 'database_takes_no_writes',
};

/**
 * Does what needs Postgres.
 *
 * @param withinMs Postgres that is silent for longer is away
 * @throws GatewayError `database_away`, `database_takes_no_writes`, which name no place and no user; any other error as it came
 */
export type AskDatabase = <T>(work: () => Promise<T>, asked: { readonly effect: Effect; readonly withinMs: number }) => Promise<T>;

/** Tells the log once when Postgres goes away, with the reason, and once when it is back. */
export function askDatabase({ config, log }: { config: Pick<Config, 'database'>; log: Log }): AskDatabase {
  const outages = new Map<Outage, { readonly since: Date; lastMs: number }>();

  function failed(outage: Outage, error: unknown): void {
    const known = outages.get(outage);
    if (known) known.lastMs = Date.now();
    else {
      const since = new Date();
      outages.set(outage, { since, lastMs: since.getTime() });
      const { reason, fix } = databaseReason(error, config.database);
      log.warn({ dependency: 'postgres', since, reason: `${reason}. To mend it: ${fix}.` }, OUTAGES[outage][0]);
    }
  }

  function succeeded(effect: Effect): void {
    if (effect === 'looks_up') return;
    for (const [outage, { since, lastMs }] of outages) {
      if (Date.now() - lastMs < CALM_MS || (outage === 'database_takes_no_writes' && effect === 'reads')) continue;
      outages.delete(outage);
      log.info({ dependency: 'postgres', since, seconds: Math.round((lastMs - since.getTime()) / 1000) }, OUTAGES[outage][1]);
    }
  }

  return async (work, { effect, withinMs }) => {
    try {
      const done = await withTimeout(work(), withinMs);
      if (outages.size > 0) succeeded(effect);
      return done;
    } catch (error) {
      const explained = explainDatabaseError(error, config.database);
      const found = isGatewayError(explained) ? OUTAGE_OF[explained.code] : undefined;
      if (!found) throw error;
      // What reads and fails for want of memory or disk has the same remedy as what cannot connect.
      const outage = isReading(effect) ? 'database_away' : found;
      failed(outage, error);
      throw new GatewayError(outage, { outcome: outcomeOf(effect, error), retryAfterSeconds: RETRY_AFTER_SECONDS }, { cause: error });
    }
  };
}

function isReading(effect: Effect): boolean {
  return effect === 'looks_up' || effect === 'reads';
}

function outcomeOf(effect: Effect, error: unknown): string {
  if (isReading(effect) || (effect === 'creates' && isBeforeCommit(error))) return 'nothing was stored or changed';
  return 'whether the request was carried out is not known; to send it again is safe, unless it creates something and has no idempotency_key';
}

/** Whether an error says that the statement was not carried out: Postgres refused it, or it never came there. One that breaks a connection may follow the commit. */
function isBeforeCommit(error: unknown): boolean {
  const {
    code = '',
    name = '',
    syscall = '',
    severity,
    message = '',
    errors,
  } = (error ?? {}) as Partial<Record<'code' | 'name' | 'syscall' | 'severity' | 'message', string>> & { errors?: readonly unknown[] };
  if (errors?.length) return errors.every(isBeforeCommit);
  // https://www.postgresql.org/docs/current/errcodes-appendix.html: 08 is of connections, 57P01 and 57P02 end one.
  if (severity !== undefined) return !/^08|^57P0[12]$/.test(code);
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true;
  return name === 'KnexTimeoutError' || /timeout exceeded when trying to connect|due to connection timeout|^timeout expired$/.test(message);
}
