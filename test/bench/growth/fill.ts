import { newId } from '#core/events/ids';
import { sealer } from '#core/crypto/sealing';
import { generateSecret, sealSecret } from '#store/config/secrets';
import type { Production } from '../../support/production.js';

type Filled = Pick<Production, 'database' | 'projectId' | 'encryptionKey'>;

const CHUNK = 10_000;

/** Adds endpoints with a URL to a project. Returns their ids. */
export async function addEndpoints(
  { database, encryptionKey, projectId }: Filled,
  url: string,
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId());
  const sealing = sealer(encryptionKey);
  await database.rows(
    `insert into endpoints (project_id, id, name, url, secrets)
     select $1, id, 'endpoint-' || id, $2, secrets::jsonb from unnest($3::uuid[], $4::text[]) u(id, secrets)`,
    [
      projectId,
      url,
      ids,
      ids.map((id) => JSON.stringify([sealSecret(generateSecret(), id, sealing)])),
    ],
  );
  return ids;
}

/**
 * Adds subscriptions to endpoints of a project in turn: to one event type, or each to a type of its
 * own that no event has.
 */
export async function addSubscriptions(
  { database, projectId }: Filled,
  endpointIds: readonly string[],
  count: number,
  eventType: string | null = null,
): Promise<void> {
  for (let done = 0; done < count; done += CHUNK)
    await database.rows(
      `insert into subscriptions (project_id, id, name, endpoint_id, event_types)
       select $1, gen_random_uuid(), 'subscription-' || n, ($2::uuid[])[1 + n % cardinality($2)], array[coalesce($5, 'other.' || n)]
       from generate_series($3::int, $4::int - 1) n`,
      [projectId, endpointIds, done, Math.min(count, done + CHUNK), eventType],
    );
  await settle(database);
}

/** Adds projects beside a project, with its organisation and settings. Returns their ids. */
export async function addProjects(
  { database, projectId }: Filled,
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId());
  await database.rows(
    `insert into projects (id, organisation_id, name, type, config)
     select u.id, p.organisation_id, 'project-' || u.id, p.type, p.config from projects p, unnest($2::uuid[]) u(id) where p.id = $1`,
    [projectId, ids],
  );
  return ids;
}

/** Adds an endpoint to each of these projects, and subscriptions to it. */
export async function addReceivers(
  gateway: Filled,
  projectIds: readonly string[],
  {
    url,
    subscriptions,
    eventType,
  }: { readonly url: string; readonly subscriptions: number; readonly eventType: string },
): Promise<void> {
  const { database, encryptionKey } = gateway;
  const sealing = sealer(encryptionKey);
  for (let k = 0; k < projectIds.length; k += CHUNK) {
    const projects = projectIds.slice(k, k + CHUNK);
    const ids = projects.map(() => newId());
    await database.rows(
      `insert into endpoints (project_id, id, name, url, secrets)
       select project, id, 'receiver', $1, secrets::jsonb from unnest($2::uuid[], $3::uuid[], $4::text[]) u(project, id, secrets)`,
      [
        url,
        projects,
        ids,
        ids.map((id) => JSON.stringify([sealSecret(generateSecret(), id, sealing)])),
      ],
    );
    await database.rows(
      `insert into subscriptions (project_id, id, name, endpoint_id, event_types)
       select project, gen_random_uuid(), 'subscription-' || n, id, array[case n when 0 then $1 else 'other.' || n end]
       from unnest($2::uuid[], $3::uuid[]) u(project, id), generate_series(0, $4::int - 1) n`,
      [eventType, projects, ids, subscriptions],
    );
  }
  await settle(database);
}

/** Does what autovacuum would do during the measurement. */
async function settle(database: Filled['database']): Promise<void> {
  await database.rows('vacuum (analyze)');
}
