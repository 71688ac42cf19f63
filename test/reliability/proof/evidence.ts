import fs from 'node:fs';
import path from 'node:path';
import type { Journal } from './journal.js';
import type { TestBed } from './test-bed.js';

/** Rows of Postgres about each message, without bodies. */
const tables: Readonly<Record<string, string>> = {
  events: `select e.id, e.coordinates, e.accepted_at, e.status, e.outcome, (e.data::json ->> 'n')::int as n from events e order by e.accepted_at`,
  deliveries: `select id, event_id, claimed_by, attempts, recovered, status, next_attempt_at, created_at, updated_at, reason
               from event_deliveries order by created_at`,
  attempts: `select event_delivery_id, id, number, requested_at, duration_ms, http_status, error_class, error from delivery_attempts order by requested_at`,
  agents: `select * from agents`,
};

/**
 * Writes journal and rows next to the logs, one line each, to investigate a report that does not
 * balance.
 */
export async function keepEvidence({ shards, logs }: TestBed, journal: Journal): Promise<void> {
  const keep = (name: string, list: readonly object[]) =>
    fs.writeFileSync(
      path.join(logs, `${name}.ndjson`),
      list.map((one) => `${JSON.stringify(one)}\n`).join(''),
    );
  const { produced, arrivals, faults, kills } = journal;
  for (const [name, list] of Object.entries({ produced, arrivals, faults, kills }))
    keep(name, list);
  for (const [name, sql] of Object.entries(tables))
    keep(name, (await Promise.all(shards.map((rows) => rows(sql)))).flat());
}
