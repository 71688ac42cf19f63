import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { newId } from '@gateway/core/events';
import { clean } from '../postgres/columns.js';
import { holding, requireRoom, type Full } from './soft-deletes.js';
import { readRows, type PageRequest, type PageResult } from '../pagination/page.js';

export interface EventTypeRow {
  readonly project_id: string;
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** JSON Schema 2020-12 of the event data, or null if unknown. */
  readonly json_schema: unknown;
  readonly example: unknown;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly deprecated_at: Date | null;
}

const COLUMNS =
  'project_id id name description json_schema example created_at updated_at deprecated_at'.split(
    ' ',
  );

/**
 * By creation time, including deprecated ones. `name` matches exactly; `search` matches part of the
 * name or description.
 */
export function listEventTypes(
  knex: Knex,
  projectId: string,
  { name, search }: { name?: string | undefined; search?: string | undefined },
  page: PageRequest,
): Promise<PageResult<EventTypeRow>> {
  const query = ofProject(knex, projectId).where(holding(['name', 'description'], search));
  return readRows(name === undefined ? query : query.where({ name }), COLUMNS, page);
}

/** Even if deprecated. */
export function findEventType(
  knex: Knex,
  projectId: string,
  by: Pick<EventTypeRow, 'id'> | Pick<EventTypeRow, 'name'>,
): Promise<EventTypeRow | undefined> {
  return ofProject(knex, projectId)
    .where(by)
    .first<EventTypeRow | undefined>(...COLUMNS);
}

export interface EventTypeFields {
  readonly description: string;
  readonly json_schema: unknown;
  readonly example: unknown;
  readonly deprecated: boolean;
}

const ofProject = (knex: Knex, projectId: string) =>
  knex('event_types').where({ project_id: projectId });

const fullOf = (max: number): Full => ({
  things: 'event types',
  max,
  setting: 'limits.event_types_per_project',
});

/**
 * Undefined if the name is taken. Locks the project's row.
 * @throws GatewayError `project_full` if the project has `max` event types
 */
export function insertEventType(
  knex: Knex,
  projectId: string,
  { name, ...fields }: { readonly name: string } & EventTypeFields,
  max: number,
): Promise<EventTypeRow | undefined> {
  return knex.transaction(async (trx) => {
    await requireRoom(trx, projectId, ofProject(trx, projectId), fullOf(max));
    const rows: EventTypeRow[] = await trx('event_types')
      .insert({ project_id: projectId, id: newId(), name, ...columnsOf(fields, trx.fn.now()) })
      .onConflict(['project_id', 'name'])
      .ignore()
      .returning(COLUMNS);
    return rows[0];
  });
}

export async function updateEventType(
  knex: Knex,
  projectId: string,
  id: string,
  fields: Partial<EventTypeFields>,
): Promise<EventTypeRow | undefined> {
  const rows: EventTypeRow[] = await ofProject(knex, projectId)
    .where({ id })
    .update({
      ...columnsOf(fields, knex.raw('coalesce(deprecated_at, now())')),
      updated_at: knex.fn.now(),
    })
    .returning(COLUMNS);
  return rows[0];
}

function columnsOf(
  { description, json_schema: schema, example, deprecated }: Partial<EventTypeFields>,
  deprecatedAt: Knex.Raw,
): Record<string, unknown> {
  return {
    ...(description === undefined ? {} : { description: clean(description) }),
    ...(schema === undefined ? {} : { json_schema: jsonOf(schema) }),
    ...(example === undefined ? {} : { example: jsonOf(example) }),
    ...(deprecated === undefined ? {} : { deprecated_at: deprecated ? deprecatedAt : null }),
  };
}

function jsonOf(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

export interface ImportedEventType {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
  /** By default, the stored one. */
  readonly example?: unknown;
  readonly deprecated: boolean;
}

export interface ImportResult {
  readonly name: string;
  readonly result: 'created' | 'updated' | 'unchanged';
}

/**
 * All or nothing; names must be distinct. Undefined without the project. Locks its row, which
 * serialises imports.
 * @throws GatewayError `project_full` for more than `max` event types
 */
export function importEventTypes(
  knex: Knex,
  projectId: string,
  types: readonly ImportedEventType[],
  max = Infinity,
): Promise<ImportResult[] | undefined> {
  return knex.transaction(async (trx) => {
    const project: unknown = await trx('projects')
      .where({ id: projectId })
      .whereNull('deleted_at')
      .forNoKeyUpdate()
      .first('id');
    if (!project) return undefined;
    const names = types.map(({ name }) => name);
    const stored = new Set(
      await ofProject(trx, projectId).whereIn('name', names).pluck<string[]>('name'),
    );
    const fresh = types.length - stored.size;
    if (max < Infinity && fresh > 0)
      await requireRoom(trx, projectId, ofProject(trx, projectId), fullOf(max), fresh);
    const given = types.map((it) => ({
      ...it,
      id: newId(),
      description: clean(it.description).toWellFormed(),
    }));
    const { rows } = await trx.raw<{ rows: { name: string }[] }>(
      `insert into event_types as t (project_id, id, name, description, json_schema, example, deprecated_at)
       select ?::uuid, id, name, description, schema, example, case when deprecated then now() end
       from json_to_recordset(?::json) u(id uuid, name text, description text, schema json, example json, deprecated boolean)
       on conflict (project_id, name) do update set
         description = excluded.description, json_schema = excluded.json_schema, example = coalesce(excluded.example, t.example),
         deprecated_at = case when excluded.deprecated_at is not null then coalesce(t.deprecated_at, now()) end, updated_at = now()
       where (t.description, t.json_schema::text, t.example::text, t.deprecated_at is null) is distinct from
         (excluded.description, excluded.json_schema::text, coalesce(excluded.example, t.example)::text, excluded.deprecated_at is null)
       returning name`,
      [projectId, JSON.stringify(given)],
    );
    const changed = new Set(rows.map(({ name }) => name));
    return names.map((name) => {
      const known = changed.has(name) ? 'updated' : 'unchanged';
      return { name, result: stored.has(name) ? known : 'created' };
    });
  });
}

/**
 * Null if the project accepts unknown event types. Reads the unique index of names, without a lock.
 */
export async function readEventTypeNames(
  pool: Pool,
  projectId: string,
): Promise<ReadonlySet<string> | null> {
  const { rows } = await pool.query<{ names: string[] | null }>({
    name: 'event-type-names',
    text: `select case when config ->> 'unknown_event_types' = 'reject' then array(select name from event_types where project_id = p.id) end as names
           from projects p where id = $1`,
    values: [projectId],
  });
  const names = rows[0]?.names ?? null;
  return names && new Set(names);
}
