import type pg from 'pg';
import { endpointRecord } from './endpoints.js';
import { columnsOf } from './soft-deletes.js';
import { sourceRecord } from './sources.js';
import { subscriptionRecord } from './subscriptions.js';

/**
 * Separate strings are quick to parse. `event_types` are names, present only if the project rejects
 * unknown ones; the others are JSON of a `ProjectRecord`, `EndpointRecord`s, `ActiveSubscription`s
 * and `PausableSource`s.
 */
export type ProjectTexts = Readonly<
  Record<'project' | 'endpoints' | 'subscriptions' | 'sources' | 'event_types', readonly string[]>
>;

/** The configuration counter at the last change. Also the cursor of `readChanges`. */
export interface ProjectVersion {
  readonly id: string;
  readonly version: string;
}

export const NO_CHANGE: ProjectVersion = {
  id: '00000000-0000-0000-0000-000000000000',
  version: '0',
};

/** Including deleted ones, by their last change. No lock. */
export async function readChanges(
  pool: pg.Pool,
  after: ProjectVersion,
  limit: number,
): Promise<ProjectVersion[]> {
  const { rows } = await pool.query<ProjectVersion>({
    name: 'read-changes',
    text: `select project_id as id, version from project_versions where (version, project_id) > ($1::bigint, $2::uuid) order by version, project_id limit $3`,
    values: [after.version, after.id, limit],
  });
  return rows;
}

/** Each write to projects, endpoints, subscriptions or sources increments it. */
export async function readConfigVersion(pool: pg.Pool): Promise<bigint> {
  const { rows } = await pool.query<{ version: string }>({
    name: 'config-version',
    text: 'select version from config_version',
  });
  return BigInt(rows[0]!.version);
}

export interface ReadProject {
  readonly id: string;
  /** Null if it is deleted, or larger than `maxBytes`. */
  readonly texts: ProjectTexts | null;
  readonly bytes: number;
}

/**
 * A consistent snapshot, excluding deleted rows and disabled subscriptions: the first project, and
 * more up to `maxBytes`. Each record is a row: the driver parses one synchronously, and several
 * megabytes would block the process. No lock.
 *
 * @param shards omits projects of other shards. One that is moving away has rows left, and no
 *   sources. Null reads all.
 */
export async function readProjects(
  pool: pg.Pool,
  ids: readonly string[],
  maxBytes: number,
  shards: readonly string[] | null = null,
): Promise<ReadProject[]> {
  const records = (part: keyof ProjectTexts, columns: string, condition = 'true') =>
    `select u.id, u.n, '${part}', row_to_json(r)::text
     from live u join lateral (select ${columns} from ${part} where project_id = u.id and deleted_at is null and ${condition}) r on true`;
  type Row =
    | (Pick<ReadProject, 'id' | 'bytes'> & { readonly part: null; readonly fits: boolean })
    | { readonly part: keyof ProjectTexts; readonly text: string };
  // Window functions, because joins would be nested loops on these connections, quadratic in the
  // records. Each project asked for has a row without a part, even if it is deleted. Only this row
  // has the other columns: parsing them in each of 100,000 rows takes a while.
  const { rows } = await pool.query<Row>({
    name: 'read-projects',
    text: `with asked as (select * from unnest($1::uuid[]) with ordinality u(id, n)),
           live as (
             select asked.n, p.id, p.name, p.type, p.config, p.shard from asked join projects p on p.id = asked.id and p.deleted_at is null
             where $3::text[] is null or p.shard = any ($3) or exists (select from project_moves m where m.project_id = p.id and m.from_shard = any ($3) and m.phase = 'history')
           ),
           records(id, n, part, text) as (
             select id, n, null, null from asked
             union all select id, n, 'project', json_build_object('id', id, 'name', name, 'type', type, 'config', config, 'shard', shard)::text from live
             union all ${records('endpoints', columnsOf(endpointRecord))}
             union all ${records('subscriptions', `${columnsOf(subscriptionRecord)}, case when function is not null then updated_at end as function_version`, 'not is_disabled')}
             union all ${records('sources', `${columnsOf(sourceRecord)}, pauses, paused_at is not null as is_paused, pause_reason, extract(epoch from resumes_at - now()) * 1000 as resumes_in_ms`, '($3::text[] is null or u.shard = any ($3))')}
             union all select u.id, u.n, 'event_types', t.name from live u join event_types t on t.project_id = u.id and u.config ->> 'unknown_event_types' = 'reject'
           ),
           measured as (
             select *, coalesce(sum(octet_length(text)) over (partition by n), 0)::float8 as bytes, coalesce(sum(octet_length(text)) over (order by n), 0) <= $2::bigint as fits from records
           )
           select part, text, ${['id', 'bytes', 'fits'].map((column) => `case when part is null then ${column} end as ${column}`).join(', ')}
           from measured where fits or part is null order by n, part nulls first`,
    values: [ids, maxBytes, shards],
  });
  const read: (Omit<ReadProject, 'texts'> & {
    texts: Record<keyof ProjectTexts, string[]> | null;
  })[] = [];
  for (const row of rows) {
    if (row.part === null) {
      if (!row.fits && read.length > 0) break;
      read.push({ id: row.id, bytes: row.bytes, texts: null });
    } else {
      const project = read.at(-1)!;
      project.texts ??= {
        project: [],
        endpoints: [],
        subscriptions: [],
        sources: [],
        event_types: [],
      };
      project.texts[row.part].push(row.text);
    }
  }
  return read;
}
