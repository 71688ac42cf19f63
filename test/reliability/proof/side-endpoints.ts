import assert from 'node:assert/strict';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../support/database.js';
import { loopback } from '../../support/ports.js';
import type { Created, managementApi } from '../../support/production.js';

/**
 * Additional endpoints: paused, then deleted or activated while a process dies. The lines about
 * messages and requests exclude them.
 */
export interface SideEndpoints {
  /**
   * Creates an endpoint with held deliveries and requests the change; resolves while the change is
   * in progress.
   */
  change(target: string, how: Change): Promise<void>;
  /**
   * Waits until the change requested with this target is committed, and repeats the request only if
   * it is not. The gateway must complete the rest.
   */
  confirm(target: string): Promise<void>;
  close(): Promise<void>;
}

export type Change = 'delete' | 'activate';

export const SIDE = 'side';
const HELD = 50;
const HELD_MS = 5_000;
/** A change is a commit followed by batches: processes die before, between or after them. */
const CHANGING_MS = 40;
/** By then every service is back. */
const PATIENCE_MS = 600_000;

export async function startSideEndpoints(
  call: ReturnType<typeof managementApi>,
  projectId: string,
  { rows, shard }: { readonly rows: Database['rows']; readonly shard: Database['rows'] },
): Promise<SideEndpoints> {
  const server = http.createServer(
    (request, response) => void request.resume().once('end', () => response.end()),
  );
  const url = `http://127.0.0.1:${await loopback(server)}`;
  const path = `/projects/${projectId}`;
  const changing = new Map<
    string,
    { readonly uid: string; readonly subscription: string; readonly how: Change }
  >();
  const ask = (uid: string, how: Change) =>
    how === 'delete'
      ? call('DELETE', `${path}/endpoints/${uid}`)
      : call('POST', `${path}/endpoints/${uid}/activate`);

  return {
    async change(target, how) {
      const { uid } = await insist(() =>
        call<Created>('POST', `${path}/endpoints`, { name: SIDE, url }),
      );
      await insist(() => call('PUT', `${path}/endpoints/${uid}/pause`));
      const fields = { name: SIDE, endpoint_id: uid, filter_config: { event_types: ['order.*'] } };
      const { uid: subscription } = await insist(() =>
        call<Created>('POST', `${path}/subscriptions`, fields),
      );
      const held = `select count(*)::int as n from event_deliveries where endpoint_id = $1 and next_attempt_at = 'infinity'`;
      for (
        const untilMs = performance.now() + HELD_MS;
        performance.now() < untilMs;
        await sleep(100)
      )
        if (((await shard<{ n: number }>(held, [uid]).catch(() => []))[0]?.n ?? 0) >= HELD) break;
      changing.set(target, { uid, subscription, how });
      ask(uid, how).catch(() => undefined); // `confirm` checks the outcome
      await sleep(Math.random() * CHANGING_MS);
    },
    async confirm(target) {
      const { uid, subscription, how } = changing.get(target)!;
      await insist(async () => {
        const [row] = await rows<{ done: boolean }>(
          `select deleted_at is not null or status = 'active' as done from endpoints where id = $1`,
          [uid],
        );
        if (!row!.done) await ask(uid, how);
      });
      // The endpoint has enough deliveries. A missing subscription was deleted by a request with a
      // lost response.
      const gone = (error: Error) => assert.match(error.message, / answered 404: /);
      if (how === 'activate')
        await insist(() => call('DELETE', `${path}/subscriptions/${subscription}`).catch(gone));
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Retries while a service is unreachable. */
export async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (const untilMs = performance.now() + PATIENCE_MS; ; await sleep(250)) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > untilMs) throw error;
    }
  }
}
