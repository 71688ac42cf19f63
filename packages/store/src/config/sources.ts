import type { Knex } from 'knex';
import type pg from 'pg';
import { newId } from '@gateway/core/events';
import { deleteLive, findLive, insertLive, jsonColumns, listLive, updateLive, type LiveTable } from './soft-deletes.js';
import { factsText, type NotificationFacts } from './notifications.js';
import type { Page, PageRequest } from '../pagination/page.js';
import type { SourceRecord } from './snapshot.js';

/** A source as the management API shows it; secret fields of its connection are sealed. */
export interface SourceRow extends SourceRecord {
  readonly type: 'pub_sub';
  /** Null when it is not paused. */
  readonly paused_at: Date | null;
  /** When it is tried again by itself. */
  readonly resumes_at: Date | null;
  readonly pause_reason: string | null;
  /** The agent that paused it. */
  readonly paused_by: string | null;
  /** Pauses one after the other; 0 when a person has seen to it since. */
  readonly pauses: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** What a user decides of a source. */
export type SourceFields = Pick<SourceRow, 'name' | 'type' | 'pub_sub' | 'body_function' | 'is_disabled'>;

const TABLE: LiveTable = {
  name: 'sources',
  columns: [
    ...['project_id', 'id', 'name', 'type', 'pub_sub', 'body_function', 'is_disabled'],
    ...['paused_at', 'resumes_at', 'pause_reason', 'paused_by', 'pauses', 'created_at', 'updated_at'],
  ],
};

/** What is read back of a source. */
export const SOURCE_COLUMNS = TABLE.columns;

/** What ends a pause for good. */
const NOT_PAUSED = { paused_at: null, resumes_at: null, pause_reason: null, paused_by: null, pauses: 0, resumed_at: null };

export function insertSource(knex: Knex, projectId: string, fields: SourceFields): Promise<SourceRow> {
  return insertLive(knex, TABLE, { project_id: projectId, id: newId(), ...jsonColumns(fields, ['pub_sub']) });
}

export function listSources(knex: Knex, projectId: string, page: PageRequest): Promise<Page<SourceRow>> {
  return listLive(knex, TABLE, { project_id: projectId }, page);
}

export function findSource(knex: Knex, projectId: string, id: string): Promise<SourceRow | undefined> {
  return findLive(knex, TABLE, { project_id: projectId, id });
}

/**
 * Changes what is given; undefined when there is no such source.
 *
 * @param resumes whether a pause of the source ends with the change
 */
export function updateSource(
  knex: Knex,
  projectId: string,
  id: string,
  fields: Partial<SourceFields>,
  resumes = false,
): Promise<SourceRow | undefined> {
  const columns = { ...jsonColumns(fields, ['pub_sub']), ...(resumes ? NOT_PAUSED : {}) };
  return updateLive(knex, TABLE, { project_id: projectId, id }, columns);
}

/** Marks a source as deleted: agents stop reading it. False when there is no such source. */
export async function deleteSource(knex: Knex, projectId: string, id: string): Promise<boolean> {
  return (await deleteLive(knex, TABLE, { project_id: projectId, id })) === 1;
}

/** The longest pause. A source that has overrun for an hour is tried once an hour. */
export const LONGEST_PAUSE_SECONDS = 3600;

/** What is written with a pause. */
export interface NewPause {
  /** The function that overran: one that was changed meanwhile is not paused. */
  readonly bodyFunction: string;
  /** For a person. */
  readonly reason: string;
  /** The name of the agent. */
  readonly by: string;
  /** Length of the first pause; each that follows within an hour of the last try is twice as long as the one before, up to `LONGEST_PAUSE_SECONDS`. */
  readonly seconds: number;
  /** When given, people are told of the first pause: the notification goes to the outbox in the same commit. */
  readonly facts: NotificationFacts | null;
}

/**
 * Pauses a source, so that no agent reads it until it is resumed.
 *
 * @returns when it is tried again by itself, and which pause in a row this is; undefined when there is nothing to pause: it is paused or disabled
 * already, deleted, or has another function
 */
export async function pauseSource(
  pool: pg.Pool,
  projectId: string,
  id: string,
  { bodyFunction, reason, by, seconds, facts }: NewPause,
): Promise<{ resumes_at: Date; pauses: number } | undefined> {
  const { rows } = await pool.query<{ resumes_at: Date; pauses: number }>(
    // Lock: the row, so that of two agents the second finds it paused.
    `with due as (
       select project_id, id, case when resumed_at > now() - interval '1 hour' then pauses + 1 else 1 end as n
       from sources
       where project_id = $1 and id = $2 and deleted_at is null and not is_disabled and paused_at is null and body_function = $3
       for update
     ),
     s as (
       update sources t set
         paused_at = now(), pause_reason = $4, paused_by = $5, pauses = n, updated_at = now(),
         resumes_at = now() + least($6::float8 * 2 ^ least(n - 1, 20), ${LONGEST_PAUSE_SECONDS}) * interval '1 second'
       from due d where t.project_id = d.project_id and t.id = d.id
       returning t.resumes_at, t.pauses
     ),
     n as (
       insert into notifications (id, kind, project_id, subject, facts, ended_at)
       select $7::uuid, 'source_failing', $1, $2::text, $8::jsonb || jsonb_build_object('resumes_at', s.resumes_at), now()
       from s where s.pauses = 1 and $8::jsonb is not null
     )
     select resumes_at, pauses from s`,
    [projectId, id, bodyFunction, reason, by, seconds, newId(), facts && factsText(facts)],
  );
  return rows[0];
}

/** Resumes the sources whose pause is over, to be tried again; returns them. How often they were paused stays. */
export async function resumeDueSources(pool: pg.Pool): Promise<{ project_id: string; id: string; name: string; pauses: number }[]> {
  // Asked first: a write, also one that changes nothing, makes every agent read its store.
  const { rows: due } = await pool.query(`select from sources where resumes_at <= now() and deleted_at is null limit 1`);
  if (due.length === 0) return [];
  const { rows } = await pool.query<{ project_id: string; id: string; name: string; pauses: number }>(
    `update sources set paused_at = null, resumes_at = null, pause_reason = null, paused_by = null, resumed_at = now(), updated_at = now()
     where resumes_at <= now() and deleted_at is null returning project_id, id, name, pauses`,
  );
  return rows;
}

/** Ends a pause by the wish of a person, and forgets those before it; undefined when there is no such source. */
export function resumeSource(knex: Knex, projectId: string, id: string): Promise<SourceRow | undefined> {
  return updateSource(knex, projectId, id, {}, true);
}

/** A source with what tells whether agents read it. */
export type SourceOfProject = SourceRecord &
  Pick<SourceRow, 'paused_at' | 'resumes_at' | 'pause_reason' | 'paused_by' | 'pauses'> & {
    readonly project_name: string;
    readonly project_type: 'outgoing' | 'incoming';
  };

/** The sources of all projects that are not deleted, secrets sealed. */
export async function listSourcesOfProjects(pool: pg.Pool): Promise<SourceOfProject[]> {
  const { rows } = await pool.query<SourceOfProject>(
    `select s.project_id, s.id, s.name, s.pub_sub, s.body_function, s.is_disabled, s.paused_at, s.resumes_at, s.pause_reason, s.paused_by, s.pauses,
            p.name as project_name, p.type as project_type
     from projects p join sources s on s.project_id = p.id
     where p.deleted_at is null and s.deleted_at is null order by p.name, s.name, s.id`,
  );
  return rows;
}
