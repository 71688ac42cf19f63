import type { Knex } from 'knex';
import type { PageRequest, PageResult } from '../pagination/page.js';
import { revokeProjectKeys } from './api-keys.js';
import { softDeleteTable } from './soft-deletes.js';

/** `linear` waits `duration` seconds; `exponential` doubles them each time, up to `max_seconds`. */
export interface Strategy {
  readonly type: 'linear' | 'exponential';
  readonly duration: number;
  readonly retry_count: number;
  readonly max_seconds?: number;
}

/** A plain HMAC header, beside the Standard Webhooks signature. */
export interface SignatureConfig {
  readonly header: string;
  readonly hash: 'SHA256' | 'SHA512';
  readonly encoding: 'hex' | 'base64';
}

/** To an endpoint, per `duration` seconds, across all agents. */
export interface RateLimit {
  readonly count: number;
  readonly duration: number;
}

/** By default, as in the settings. */
export interface CircuitBreakerConfig {
  /** Percentage of requests. */
  readonly failure_threshold?: number;
  readonly minimum_request_count?: number;
  /** Minutes. */
  readonly observability_window?: number;
  readonly error_timeout?: number;
}

export interface ProjectConfig {
  readonly strategy?: Strategy;
  readonly signature?: SignatureConfig;
  readonly ratelimit?: RateLimit | null;
  readonly circuit_breaker?: CircuitBreakerConfig;
  /** Default: `retention.days`. */
  readonly retention?: { readonly days: number };
  /** After as many days of nothing but failures. Default: never. */
  readonly disable_after_days?: number;
  /** Event types that the project does not define. Default: `accept`. */
  readonly unknown_event_types?: 'accept' | 'reject';
}

export const DEFAULT_STRATEGY: Strategy = {
  type: 'exponential',
  duration: 10,
  retry_count: 10,
  max_seconds: 7200,
};
export const DEFAULT_SIGNATURE: SignatureConfig = {
  header: 'X-Gateway-Signature',
  hash: 'SHA256',
  encoding: 'hex',
};

export interface ProjectRecord {
  readonly id: string;
  readonly name: string;
  readonly type: 'outgoing' | 'incoming';
  readonly config: ProjectConfig;
}

export interface RoutedProjectRecord extends ProjectRecord {
  readonly shard: string;
}

export interface ProjectRow extends RoutedProjectRecord {
  readonly organisation_id: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type ProjectFields = Pick<ProjectRow, 'name' | 'config'>;

const rows = softDeleteTable<ProjectRow>(
  'projects',
  ['id', 'organisation_id', 'name', 'type', 'config', 'shard', 'created_at', 'updated_at'],
  ['config'],
);

/** Without an API key. */
export function insertProject(
  knex: Knex,
  organisationId: string,
  fields: ProjectFields & Pick<ProjectRow, 'type'> & Partial<Pick<ProjectRow, 'shard'>>,
): Promise<ProjectRow> {
  return rows.insert(knex, { organisation_id: organisationId, ...fields });
}

/** By creation time. */
export function listProjects(
  knex: Knex,
  { id, organisationIds }: { readonly id?: string; readonly organisationIds?: readonly string[] },
  page: PageRequest,
): Promise<PageResult<ProjectRow>> {
  const filter = (query: Knex.QueryBuilder) => {
    if (id) void query.where({ id });
    if (organisationIds) void query.whereIn('organisation_id', [...organisationIds]);
  };
  return rows.list(knex, filter, page);
}

/** Does not check permissions. */
export function findProject(knex: Knex, id: string): Promise<ProjectRow | undefined> {
  return rows.find(knex, { id });
}

/** `config` is replaced as a whole. */
export function updateProject(
  knex: Knex,
  id: string,
  fields: Partial<ProjectFields>,
): Promise<ProjectRow | undefined> {
  return rows.update(knex, { id }, fields);
}

/** Revokes the project's keys. Its events remain until their retention ends. */
export function deleteProject(knex: Knex, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await revokeProjectKeys(trx, id);
    await trx('scheduled_events').where({ project_id: id }).delete();
    return rows.delete(trx, { id });
  });
}
