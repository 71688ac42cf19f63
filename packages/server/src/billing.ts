import { request, type Dispatcher } from 'undici';
import type { Config } from '@gateway/core/config';
import { explainDatabaseError, networkReason } from '@gateway/core/errors';
import { maskUrls, type Log } from '@gateway/core/logging';
import { backoffMs, repeat, VERSION } from '@gateway/core/process';
import {
  dispatcherOf,
  ProxyError,
  withAuthorities,
  type RequestDispatcher,
} from '@gateway/core/http';
import type { Database } from '@gateway/store/postgres';
import {
  closeUnposted,
  hasUnposted,
  lockBilling,
  markPosted,
  type UsageDay,
} from '@gateway/store/counts';

export interface Billing {
  /** Why records are not posted. */
  readonly problem: string | null;
  /** A running post is aborted and repeated by the next server. */
  close(): Promise<void>;
}

const INTERVAL_MS = 60_000;
const BACKOFF = { baseMs: 1_000, capMs: 600_000 };
const TIMEOUT_MS = 30_000;
const CONNECT_MS = 10_000;
const PAGE_RECORDS = 500;

/** If `isOwnFault`, only this record was rejected. */
class NotPosted extends Error {
  constructor(
    sentence: string,
    readonly isOwnFault = false,
  ) {
    super(sentence);
  }
}

/**
 * Posts closed days to billing.url, one record per organisation, oldest first. Only one server
 * posts at a time. If a server dies before recording a post, the post is repeated with the same
 * Idempotency-Key and body.
 */
export function startBilling({
  config,
  database,
  log,
}: {
  config: Config;
  database: Database;
  log: Log;
}): Billing | undefined {
  const { enabled, url = '', api_key: apiKey = '' } = config.billing;
  if (!enabled) return undefined;
  const { proxy, no_proxy: noProxy, ca_file: caFile } = config.delivery;
  const secureContext = caFile === undefined ? undefined : withAuthorities(caFile);
  const dispatcher = dispatcherOf({ proxy, noProxy, secureContext, connectTimeoutMs: CONNECT_MS });
  let problem: string | null = null;
  let failures = 0;

  const run = async (signal: AbortSignal): Promise<number> => {
    try {
      const { posted, rejected } = await postUnposted({ database, dispatcher, url, apiKey });
      if (posted > 0) log.info({ records: posted }, 'Posted usage to billing.url.');
      if (rejected) throw rejected;
      if (problem !== null) log.info({}, 'Billing has recovered.');
      problem = null;
      failures = 0;
      return INTERVAL_MS;
    } catch (error) {
      if (signal.aborted) throw error;
      const reason =
        error instanceof NotPosted
          ? error.message
          : explainDatabaseError(error, config.database).message;
      if (problem === null)
        log.warn(
          { url: maskUrls(url) },
          `Could not post usage to billing.url; will retry: ${reason}.`,
        );
      problem = `Usage is waiting to be posted to ${maskUrls(url)}: ${reason}.`;
      return backoffMs(++failures, BACKOFF);
    }
  };
  const stop = repeat(run, { retryMs: INTERVAL_MS, failed: () => undefined });
  return {
    get problem() {
      return problem;
    },
    async close() {
      const stopped = stop();
      // Destroyed first, because requests that wait for a proxy tunnel ignore abort signals.
      await dispatcher.destroy();
      await stopped;
    },
  };
}

interface Posting {
  readonly database: Database;
  readonly dispatcher: RequestDispatcher;
  readonly url: string;
  readonly apiKey: string;
}

/**
 * Does nothing while another server posts. Records rejected individually are skipped, and the first
 * such error is returned. Errors that affect all records are thrown.
 */
async function postUnposted(posting: Posting): Promise<{ posted: number; rejected?: Error }> {
  const { database } = posting;
  if (!(await hasUnposted(database.pool))) return { posted: 0 };
  // The lock belongs to this connection. If it breaks, another server can post the same records,
  // with the same Idempotency-Key.
  const client = await database.connect();
  let posted = 0;
  let rejected: Error | undefined;
  try {
    if (!(await lockBilling(client))) return { posted };
    for (let last: UsageDay | undefined, page: UsageDay[] = []; ; last = page.at(-1)) {
      page = await closeUnposted(database.pool, PAGE_RECORDS, last);
      for (const record of page) {
        try {
          await post(record, posting);
        } catch (error) {
          if (!(error instanceof NotPosted && error.isOwnFault)) throw error;
          rejected ??= error;
          continue;
        }
        await markPosted(database.pool, record);
        posted++;
      }
      if (page.length < PAGE_RECORDS) return { posted, ...(rejected ? { rejected } : {}) };
    }
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function post(
  { organisation_id, day, events, deliveries, bytes }: UsageDay,
  { dispatcher, url, apiKey }: Posting,
): Promise<void> {
  const status = await statusOf(url, {
    // Safe, because `request` only calls `dispatch`.
    dispatcher: dispatcher as Dispatcher,
    method: 'POST',
    headers: [
      ...['authorization', `Bearer ${apiKey}`],
      ...['content-type', 'application/json', 'accept', '*/*', 'user-agent', `gateway/${VERSION}`],
      ...['idempotency-key', `${organisation_id}:${day}`],
    ],
    body: JSON.stringify({ organisation_id, day, events, deliveries, bytes }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (status >= 200 && status < 300) return;
  // These statuses concern the key, the rate or the URL, and so every record. Any other 4xx
  // concerns only this record.
  if (status < 400 || status >= 500 || [401, 403, 404, 405, 407, 408, 429].includes(status))
    throw new NotPosted(`it answered ${status}`);
  throw new NotPosted(
    `it answered ${status} to the record of organisation ${organisation_id} on ${day}`,
    true,
  );
}

async function statusOf(
  url: string,
  options: NonNullable<Parameters<typeof request>[1]>,
): Promise<number> {
  try {
    const { statusCode, body } = await request(url, options);
    await body.dump();
    return statusCode;
  } catch (error) {
    const { name, message } = error as Error;
    // If the proxy failed rather than billing.url, the error's own message is shown.
    const known = error instanceof ProxyError ? message : networkReason(error);
    throw new NotPosted(
      maskUrls(known ?? (/Timeout/.test(name) ? 'no answer in time' : message)).replace(/\.$/, ''),
    );
  }
}
