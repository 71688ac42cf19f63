import type { Knex } from 'knex';
import type pg from 'pg';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { factsText, heard, waiting, type NotificationFacts } from './notifications.js';
import { column, projectTable, type FieldsOf, type RecordOf, type RowOf } from './soft-deletes.js';

/** Its settings, with secrets sealed. */
export interface VerifierRecord extends Readonly<Record<string, unknown>> {
  readonly type: string;
}

export interface HttpSettings {
  readonly verifier: VerifierRecord;
  /** Without a type at `event_type_location`. */
  readonly event_type: string | null;
  /** Such as `header.X-Topic`, `body.type` or `query.type`. */
  readonly event_type_location: string | null;
  /** Locations of the parts. */
  readonly idempotency_keys: readonly string[];
  readonly forward_headers: readonly string[];
  readonly format: 'cloudevents' | null;
  readonly custom_response: { readonly body: string; readonly content_type: string } | null;
}

/** Agents keep these columns in memory. */
export const sourceRecord = {
  name: column<string>(),
  /**
   * Also `[type]: connection`, with its secret fields sealed, as those of `codec`. Without
   * `forward_headers`, every header travels.
   */
  pub_sub: column<
    {
      readonly type: string;
      readonly workers?: number;
      readonly forward_headers?: readonly string[];
      readonly codec?: { readonly type: string } & Readonly<Record<string, unknown>>;
    } & Readonly<Record<string, unknown>>
  >({ isJson: true }),
  body_function: column<string | null>(),
  is_disabled: column<boolean>(),
  keep_messages: column<boolean>(),
};
const columns = {
  ...sourceRecord,
  type: column<'pub_sub' | 'http'>(),
  /** In the URL of an `http` source, whose `pub_sub` has only the type. */
  mask_id: column<string | null>(),
  http: column<HttpSettings | null>({ isJson: true }),
  paused_at: column<Date | null>(),
  /** Null if it is not paused, or was paused by a person. */
  resumes_at: column<Date | null>(),
  pause_reason: column<string | null>(),
  paused_by: column<string | null>(),
  pauses: column<number>(),
};

export interface SourceRecord extends RecordOf<typeof sourceRecord> {}
export interface SourceRow extends RowOf<typeof columns> {}
export type SourceFields = FieldsOf<
  SourceRow,
  'name' | 'type' | 'pub_sub' | 'body_function' | 'is_disabled',
  'paused_at' | 'resumes_at' | 'pause_reason' | 'paused_by' | 'pauses'
>;

export interface PausableSource extends SourceRecord {
  /** Consecutive. Reset when a person's change ends the pause. */
  readonly pauses: number;
  readonly is_paused: boolean;
  /** From the snapshot; 0 or less if overdue. Null as `resumes_at`. */
  readonly resumes_in_ms: number | null;
  readonly pause_reason: string | null;
}

/** Besides their creation. */
export const SOURCE_SORTS = { name: 'lower(name)' };

const { rows, ...table } = projectTable<SourceRow, SourceFields>('sources', columns, SOURCE_SORTS);
export const { list: listSources, find: findSource, delete: deleteSource } = table;

/** Including deleted ones, which logs still name. */
export async function findSourceIds(pool: pg.Pool, projectId: string): Promise<string[]> {
  const { rows: found } = await pool.query<{ id: string }>({
    name: 'find-source-ids',
    text: 'select id from sources where project_id = $1',
    values: [projectId],
  });
  return found.map(({ id }) => id);
}

/**
 * @throws GatewayError `invalid_request`, after a rollback, if `write` raises the number of workers
 *   of enabled sources above `max`
 */
async function withinWorkers<T>(
  knex: Knex,
  projectId: string,
  max: number,
  write: (knex: Knex) => Promise<T>,
): Promise<T> {
  if (max === Infinity) return write(knex);
  return knex.transaction(async (trx) => {
    // Concurrent writes see each other's workers.
    await trx.raw('select from projects where id = ? for no key update', [projectId]);
    const count = async () => {
      const sum = trx.raw(
        `coalesce(sum(coalesce((pub_sub->>'workers')::int, 1)), 0)::int as workers`,
      );
      const found = await trx('sources')
        .where({ project_id: projectId, type: 'pub_sub', is_disabled: false, deleted_at: null })
        .first<{ workers: number }>(sum);
      return found.workers;
    };
    const before = await count();
    const result = await write(trx);
    const workers = await count();
    if (workers > Math.max(before, max)) {
      const sentence = `would give the enabled sources of the project ${workers} workers, and limits.workers_per_project allows ${max}; reduce the workers of this source or others, disable sources that are not needed, or ask the operator to raise the setting`;
      throw new GatewayError('invalid_request', {
        problems: [{ field: 'pub_sub.workers', sentence }],
      });
    }
    return result;
  });
}

/** @throws GatewayError `project_full`; `invalid_request` for more than `maxWorkers` */
export function insertSource(
  knex: Knex,
  projectId: string,
  fields: Parameters<typeof table.insert>[2],
  max = Infinity,
  maxWorkers = Infinity,
): Promise<SourceRow> {
  return withinWorkers(knex, projectId, maxWorkers, (within) =>
    table.insert(within, projectId, fields, max),
  );
}

type Ended = 'by agents' | 'all';

const ENDS: Readonly<Record<Ended, { readonly ended: string; readonly shortened: string }>> = {
  'by agents': {
    ended: `resumes_at is not null and paused_at + :after <= now()`,
    shortened: 'resumes_at is not null',
  },
  // Otherwise, a person could cut short a pause by agents by pausing and resuming the source.
  all: {
    ended: `resumes_at is null and pauses = 0 or paused_at + :after <= now()`,
    shortened: 'true',
  },
};

/**
 * Ends a pause older than `afterSeconds`, and shortens a younger one. Resets the pause count. With
 * `all`, a pause made only by a person ends at once.
 */
function resumed(knex: Knex, afterSeconds: number, which: Ended) {
  const raw = (sql: string) =>
    knex.raw(sql.replaceAll(':after', `:afterSeconds * interval '1 second'`), { afterSeconds });
  const { ended: isOver, shortened } = ENDS[which];
  const unlessLasted = (value: string, ended = 'null') =>
    raw(`case when ${isOver} then ${ended} else ${value} end`);
  return {
    paused_at: unlessLasted('paused_at'),
    resumes_at: unlessLasted(
      `case when ${shortened} then least(resumes_at, paused_at + :after) end`,
    ),
    pause_reason: unlessLasted('pause_reason'),
    paused_by: unlessLasted('paused_by'),
    pauses: unlessLasted('pauses', '0'),
    resumed_at: unlessLasted('resumed_at'),
  };
}

/**
 * @param resumesAfter seconds that a pause by agents must have lasted before the change ends it, so
 *   that frequent changes cannot evade pauses
 * @throws GatewayError `invalid_request` for more than `maxWorkers`
 */
export function updateSource(
  knex: Knex,
  projectId: string,
  id: string,
  fields: Partial<SourceFields>,
  resumesAfter?: number,
  maxWorkers = Infinity,
): Promise<SourceRow | undefined> {
  const resuming = resumesAfter === undefined ? {} : resumed(knex, resumesAfter, 'by agents');
  return withinWorkers(knex, projectId, maxWorkers, (within) =>
    rows.update(within, { project_id: projectId, id }, { ...fields, ...resuming }),
  );
}

/** A source that keeps overrunning is retried hourly. */
const LONGEST_PAUSE_SECONDS = 3600;

export interface NewPause {
  readonly reason: string;
  readonly by: string;
  /**
   * The length of the first pause. It doubles, up to an hour, with each pause that begins within an
   * hour of the last retry.
   */
  readonly seconds: number;
  /** Unless null, the first pause adds a notification in the same commit. */
  readonly facts: NotificationFacts | null;
  readonly isMailed?: boolean;
}

/**
 * Undefined if it is paused, disabled or deleted, or has no function. Locks its row, so that a
 * second agent sees the pause.
 */
export async function pauseSource(
  pool: pg.Pool,
  projectId: string,
  id: string,
  { reason, by, seconds, facts, isMailed = true }: NewPause,
) {
  const { rows } = await pool.query<{ resumes_at: Date; pauses: number }>(
    `with due as (
       select project_id, id, case when resumed_at > now() - interval '1 hour' then pauses + 1 else 1 end as n
       from sources
       where project_id = $1 and id = $2 and deleted_at is null and not is_disabled and paused_at is null and body_function is not null
       for update
     ),
     s as (
       update sources t set
         paused_at = now(), pause_reason = $3, paused_by = $4, pauses = n, updated_at = now(),
         resumes_at = now() + least($5::float8 * 2 ^ least(n - 1, 20), ${LONGEST_PAUSE_SECONDS}) * interval '1 second'
       from due d where t.project_id = d.project_id and t.id = d.id
       returning t.resumes_at, t.pauses
     ),
     n as (
       insert into notifications (id, kind, project_id, subject, facts, ended_at, status, next_attempt_at)
       select $6::uuid, 'source_failing', $1, $2::text, $7::jsonb || jsonb_build_object('resumes_at', s.resumes_at), now(), ${waiting('$8')}
       from s where s.pauses = 1 and $7::jsonb is not null and ${heard('$8', '$1', '= $1')}
     )
     select resumes_at, pauses from s`,
    [projectId, id, reason, by, seconds, newId(), facts && factsText(facts), isMailed],
  );
  return rows[0];
}

/** Keeps the pause count, which determines the length of the next pause. */
export async function resumeDueSources(pool: pg.Pool) {
  // Even a write that changes nothing makes every agent reload its configuration.
  const { rows: due } = await pool.query(
    `select from sources where resumes_at <= now() and deleted_at is null limit 1`,
  );
  if (due.length === 0) return [];
  const { rows } = await pool.query<{
    project_id: string;
    id: string;
    name: string;
    pauses: number;
  }>(
    `update sources set paused_at = null, resumes_at = null, pause_reason = null, paused_by = null, resumed_at = now(), updated_at = now()
     where resumes_at <= now() and deleted_at is null returning project_id, id, name, pauses`,
  );
  return rows;
}

/**
 * Until `resumeSource`. Keeps the reason, start and count of a pause by agents. `by` is the
 * person's display name.
 */
export function pauseSourceByPerson(
  knex: Knex,
  projectId: string,
  id: string,
  by: string,
  reason = 'The source was paused over the management API.',
): Promise<SourceRow | undefined> {
  const fields = {
    paused_at: knex.raw('coalesce(paused_at, now())'),
    resumes_at: null,
    pause_reason: knex.raw('coalesce(pause_reason, ?)', [reason]),
    paused_by: by,
    pauses: knex.raw('case when paused_at is null then 0 else pauses end'),
  };
  return rows.update(knex, { project_id: projectId, id }, fields);
}

/** As `resumed`. */
export function resumeSource(
  knex: Knex,
  projectId: string,
  id: string,
  afterSeconds = 0,
): Promise<SourceRow | undefined> {
  return rows.update(knex, { project_id: projectId, id }, resumed(knex, afterSeconds, 'all'));
}

export type SourceOfProject = SourceRecord &
  Pick<SourceRow, 'type' | 'paused_at' | 'resumes_at' | 'pause_reason' | 'paused_by' | 'pauses'> & {
    readonly project_name: string;
    readonly project_type: 'outgoing' | 'incoming';
  };

/** By project and source name, including disabled and paused ones. */
export async function listSourcesOfProjects(pool: pg.Pool): Promise<SourceOfProject[]> {
  const { rows } = await pool.query<SourceOfProject>(
    `select s.project_id, s.id, s.name, s.type, s.pub_sub, s.body_function, s.is_disabled, s.keep_messages, s.paused_at, s.resumes_at, s.pause_reason, s.paused_by, s.pauses,
            p.name as project_name, p.type as project_type
     from projects p join sources s on s.project_id = p.id
     where p.deleted_at is null and s.deleted_at is null order by p.name, s.name, s.id`,
  );
  return rows;
}

export interface HttpSource {
  readonly project_id: string;
  readonly id: string;
  readonly pub_sub: SourceRecord['pub_sub'];
  readonly http: HttpSettings;
  readonly body_function: string | null;
  readonly is_disabled: boolean;
  readonly keep_messages: boolean;
  readonly paused_at: Date | null;
  readonly resumes_at: Date | null;
}

/** By the id in its URL. Reads a unique index, without a lock. */
export async function findHttpSource(
  pool: pg.Pool,
  maskId: string,
): Promise<HttpSource | undefined> {
  const { rows } = await pool.query<HttpSource>({
    name: 'find-http-source',
    text: `select s.project_id, s.id, s.pub_sub, s.http, s.body_function, s.is_disabled, s.keep_messages, s.paused_at, s.resumes_at
           from sources s join projects p on p.id = s.project_id and p.deleted_at is null where s.mask_id = $1 and s.deleted_at is null`,
    values: [maskId],
  });
  return rows[0];
}
