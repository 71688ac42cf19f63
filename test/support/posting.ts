import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { Endpoint } from './endpoint.js';
import type { Production } from './production.js';
import { until } from './until.js';

const PAUSE_MS = 20;

export interface Posting {
  /** The number of accepted events. */
  readonly accepted: number;
  /** Waits until more events are accepted. */
  more(): Promise<void>;
  /** Ends with the event that is being posted. Rejects if one was refused for good. */
  stop(): Promise<void>;
}

/** Posts one event to a project. `data.n` and the idempotency key are its number. */
export function postNumber(
  { serverPort, apiKey }: Pick<Production, 'serverPort' | 'apiKey'>,
  projectId: string,
  n: number,
): Promise<Response> {
  return fetch(`http://127.0.0.1:${serverPort}/api/v1/projects/${projectId}/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ event_type: 'order.paid', data: { n }, idempotency_key: `${n}` }),
  });
}

/** Posts events to the project of a gateway, from 0 on. One that gets 503 is posted again. */
export function keepPosting(gateway: Production): Posting {
  let accepted = 0;
  let isStopped = false;
  const posting = (async () => {
    while (!isStopped) {
      const response = await postNumber(gateway, gateway.projectId, accepted);
      const text = await response.text();
      if (response.ok) accepted++;
      else assert.is(response.status, 503, text);
      await sleep(PAUSE_MS);
    }
  })();
  posting.catch(() => undefined);
  return {
    get accepted() {
      return accepted;
    },
    async more() {
      const before = accepted;
      await Promise.race([
        posting,
        until('posts to be accepted', () => accepted > before + 5, { withinMs: 60_000 }),
      ]);
    },
    async stop() {
      isStopped = true;
      await posting;
    },
  };
}

/** Waits until an endpoint has received each of the first events once, and nothing else. */
export async function receivedOnce(
  { received, requests }: Pick<Endpoint, 'received' | 'requests'>,
  count: number,
): Promise<void> {
  await received(count, { withinMs: 60_000 });
  const numbers = requests.map(({ body }) => (JSON.parse(body.toString()) as { n: number }).n);
  assert.equal(
    numbers.sort((a, b) => a - b),
    Array.from({ length: count }, (_, n) => n),
  );
}
