import { Agent, request, type Dispatcher } from 'undici';
import type { Config } from '@gateway/core/config';
import { explainDatabaseError, GatewayError, networkReason } from '@gateway/core/errors';
import { maskUrls, type Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { withAuthorities } from '@gateway/core/http';
import { ProxyError, proxyDispatcher, type RequestDispatcher } from '@gateway/core/http';
import { closeUnposted, hasUnposted, lockBilling, markPosted, type UsageDay } from '@gateway/store/usage';
import type { Database } from '@gateway/store/postgres';

export interface Billing {
  /** Why records wait to be posted, for a person; null while all is well. */
  readonly problem: string | null;
  /** Ends; what is being posted is cut off and posted again by the next server. */
  close(): Promise<void>;
}

/** How often a server looks whether a day has closed. */
const LOOK_MS = 60_000;
const WAIT = { baseMs: 1_000, capMs: 600_000 };
const ANSWER_MS = 30_000;
const CONNECT_MS = 10_000;
/** Records that are read at a time. */
const PAGE = 500;

/** Why a record was not posted. */
class NotPosted extends Error {
  /** Others may be accepted: what is wrong is this record. */
  readonly alone: boolean;

  constructor(sentence: string, { alone = false } = {}) {
    super(sentence);
    this.alone = alone;
  }
}

/**
 * Posts the usage of each closed day to billing.url, once per organisation, oldest first, when billing is enabled. Of several servers one posts at a time; a
 * server that is killed between the post and its record leaves it to be posted again, with the same Idempotency-Key and the same body. Never blocks or fails anything
 * else.
 *
 * @returns undefined when billing is not enabled
 * @throws GatewayError `billing_setting` when it is enabled and billing.url or billing.api_key is missing
 */
export function startBilling({ config, database, log }: { config: Config; database: Database; log: Log }): Billing | undefined {
  const { enabled, url, api_key: apiKey } = config.billing;
  if (!enabled) return undefined;
  if (url === undefined) throw new GatewayError('billing_setting', { setting: 'url' });
  if (apiKey === undefined) throw new GatewayError('billing_setting', { setting: 'api_key' });
  const place = maskUrls(url);
  const { proxy, ca_file: caFile } = config.delivery;
  const dispatcher =
    proxy === undefined
      ? new Agent()
      : proxyDispatcher({
          url: proxy,
          secureContext: caFile === undefined ? undefined : withAuthorities(caFile),
          connectTimeoutMs: CONNECT_MS,
        });
  let closing = false;
  let problem: string | null = null;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  const look = async (): Promise<void> => {
    let waitMs = LOOK_MS;
    try {
      const { posted, refused } = await postUnposted({ database, dispatcher, url, apiKey });
      if (posted > 0) log.info({ records: posted }, 'Usage was posted to billing.url.');
      if (refused) throw refused;
      if (problem !== null) log.info({}, 'Billing is well again.');
      problem = null;
      failures = 0;
    } catch (error) {
      if (closing) return;
      const reason = error instanceof NotPosted ? error.message : explainDatabaseError(error, config.database).message;
      if (problem === null) log.warn({ url: place }, `Usage could not be posted to billing.url and is posted later: ${reason}.`);
      problem = `Usage waits to be posted to ${place}: ${reason}.`;
      waitMs = backoffMs(++failures, WAIT);
    }
    schedule(waitMs);
  };
  const schedule = (inMs: number): void => {
    if (!closing) timer = setTimeout(() => void (running = look()), inMs).unref();
  };
  schedule(0);

  return {
    get problem() {
      return problem;
    },
    async close() {
      closing = true;
      clearTimeout(timer);
      // Not with a signal: a request that waits for a tunnel hears of none.
      await dispatcher.destroy();
      await running;
    },
  };
}

interface Posting {
  readonly database: Database;
  readonly dispatcher: RequestDispatcher;
  readonly url: string;
  readonly apiKey: string;
}

/** Posts what is due, unless another server does. Goes on behind a record that is refused for itself, and throws what stands in the way of all. */
async function postUnposted(posting: Posting): Promise<{ posted: number; refused?: Error }> {
  const { database } = posting;
  if (!(await hasUnposted(database.pool))) return { posted: 0 };
  // The lock goes with this connection: when it breaks, another server may post, and this one notices with its next statement.
  const client = await database.connect();
  let posted = 0;
  let refused: Error | undefined;
  try {
    if (!(await lockBilling(client))) return { posted: 0 };
    for (let last: UsageDay | undefined, page: UsageDay[] = []; ; last = page.at(-1)) {
      page = await closeUnposted(client, PAGE, last);
      for (const record of page) {
        try {
          await post(record, posting);
        } catch (error) {
          if (!(error instanceof NotPosted && error.alone)) throw error;
          refused ??= error;
          continue;
        }
        await markPosted(client, record);
        posted++;
      }
      if (page.length < PAGE) return { posted, ...(refused ? { refused } : {}) };
    }
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function post(record: UsageDay, { dispatcher, url, apiKey }: Posting): Promise<void> {
  const { organisation_id, day, events, deliveries, bytes } = record;
  const headers = [
    ...['authorization', `Bearer ${apiKey}`],
    ...['content-type', 'application/json'],
    ...['idempotency-key', `${organisation_id}:${day}`],
  ];
  const status = await answerOf(url, {
    // All that it is asked for is to dispatch.
    dispatcher: dispatcher as Dispatcher,
    method: 'POST',
    headers,
    body: JSON.stringify({ organisation_id, day, events, deliveries, bytes }),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (status >= 200 && status < 300) return;
  const sentence = `it answered ${status}`;
  // The key, the rate or the URL stand in the way of every record; any other 4xx is about this one.
  const aboutAll = status < 400 || status >= 500 || [401, 403, 404, 405, 407, 408, 429].includes(status);
  throw aboutAll
    ? new NotPosted(sentence)
    : new NotPosted(`${sentence} to the record of organisation ${organisation_id} on ${day}`, { alone: true });
}

/** The status of the answer; throws `NotPosted` when there is none. */
async function answerOf(url: string, options: NonNullable<Parameters<typeof request>[1]>): Promise<number> {
  try {
    const { statusCode, body } = await request(url, options);
    await body.dump();
    return statusCode;
  } catch (error) {
    const { name, message } = error as Error;
    // What the proxy fails at is not the fault of billing.url.
    const known = error instanceof ProxyError ? message : networkReason(error);
    const reason = known ?? (/Timeout/.test(name) ? 'no answer in time' : message);
    throw new NotPosted(maskUrls(reason).replace(/\.$/, ''));
  }
}
