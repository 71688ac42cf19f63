import { eventId, newId } from '#core/events/ids';
import { insertSource } from '#store/config/sources';
import type { Database } from '#store/postgres/database';
import { quarantineMessages } from '#store/quarantine/messages';
import { runGateway } from '../support/gateway.js';
import { connectionOf } from '../support/database.js';
import { makeProject } from '../store/made.js';
import { runHere } from './run-here.js';

export const GOOD = JSON.stringify({ event_type: 'order.paid', data: { n: 1 } });

/**
 * Creates a project with a source and a quarantined message for each body, a second apart, the last
 * one now.
 */
export async function quarantined(
  db: Database,
  bodies: readonly (string | Buffer)[],
  {
    bodyFunction = null,
    code = 'not_json',
    reason = 'The message is not JSON.',
  }: { bodyFunction?: string | null; code?: string; reason?: string } = {},
) {
  const { id: projectId } = await makeProject(db, 'orders');
  const { id: sourceId } = await insertSource(db.knex, projectId, {
    name: 'shop',
    type: 'pub_sub',
    pub_sub: { type: 'sqs', workers: 1, sqs: {} },
    body_function: bodyFunction,
    is_disabled: true,
  });
  const now = Date.now();
  const rows = bodies.map((body, n) => {
    const occurredAtMs = now - (bodies.length - 1 - n) * 1000;
    const coordinates = `message-${newId()}`;
    return {
      projectId,
      id: eventId(sourceId, coordinates, occurredAtMs),
      sourceId,
      occurredAtMs,
      coordinates,
      code,
      reason,
      headers: '{"x-a":"b"}',
      raw: Buffer.from(body),
    };
  });
  await quarantineMessages(db.pool, rows);
  return { projectId, sourceId, ids: rows.map(({ id }) => id), rows };
}

/** Runs `gateway utils quarantine …` on this database, without KV. */
export function quarantine(
  db: { url: string },
  args: readonly string[],
  options: { env?: Record<string, string> } = {},
) {
  return runGateway(['utils', 'quarantine', ...args], { config: settingsOf(db), ...options });
}

export function quarantineHere(db: { url: string }, [name = '', ...args]: readonly string[]) {
  return runHere(`utils:quarantine:${name}`, args, settingsOf(db));
}

function settingsOf(db: { url: string }): object {
  return { database: connectionOf(db.url), kv: { type: 'in-memory' } };
}
