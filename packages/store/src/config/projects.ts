import type { Knex } from 'knex';
import type { PageRequest, PageResult } from '../pagination/page.js';
import { revokeProjectKeys } from './api-keys.js';
import type { ProjectShards } from '../shards/shards.js';
import { softDeleteTable } from './soft-deletes.js';

/**
 * The retry delays. `linear` waits `duration` seconds each time; `exponential` doubles the delay
 * each time, up to `max_seconds`.
 */
export interface Strategy {
  readonly type: 'linear' | 'exponential';
  readonly duration: number;
  readonly retry_count: number;
  readonly max_seconds?: number;
}

/** The plain HMAC header, sent in addition to the Standard Webhooks signature. */
export interface SignatureConfig {
  readonly header: string;
  readonly hash: 'SHA256' | 'SHA512';
  readonly encoding: 'hex' | 'base64';
}

/** Allows `count` requests to an endpoint per `duration` seconds, across all agents. */
export interface RateLimit {
  readonly count: number;
  readonly duration: number;
}

/** The circuit breaker thresholds of a project. Missing ones default to the instance settings. */
export interface CircuitBreakerConfig {
  /** The percentage of failed requests at which the breaker opens. */
  readonly failure_threshold?: number;
  readonly minimum_request_count?: number;
  /** The counting period in minutes. */
  readonly observability_window?: number;
  readonly error_timeout?: number;
}

export interface ProjectConfig {
  readonly strategy?: Strategy;
  readonly signature?: SignatureConfig;
  readonly ratelimit?: RateLimit | null;
  readonly circuit_breaker?: CircuitBreakerConfig;
  /** Days to keep finished events. Default: `retention.days`. */
  readonly retention?: { readonly days: number };
  /** The days of nothing but failures after which an endpoint is disabled. Default: never. */
  readonly disable_after_days?: number;
  /** Whether event types that the project does not define are accepted. Default: `accept`. */
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

/** A project as agents read it. */
export interface RoutedProjectRecord extends ProjectRecord, ProjectShards {
  /** The time of the last move to another shard, in epoch milliseconds. */
  readonly moved_at_ms: number | null;
}

export interface ProjectRow extends ProjectRecord, ProjectShards {
  readonly organisation_id: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type ProjectFields = Pick<ProjectRow, 'name' | 'config'>;

const rows = softDeleteTable<ProjectRow>(
  'projects',
  [
    'id',
    'organisation_id',
    'name',
    'type',
    'config',
    'shard',
    'former_shards',
    'created_at',
    'updated_at',
  ],
  ['config'],
);

/** Creates a project, without an API key. */
export function insertProject(
  knex: Knex,
  organisationId: string,
  fields: ProjectFields & Pick<ProjectRow, 'type'> & Partial<Pick<ProjectRow, 'shard'>>,
): Promise<ProjectRow> {
  return rows.insert(knex, { organisation_id: organisationId, ...fields });
}

/**
 * Returns a page of the organisations' projects ordered by creation time, excluding deleted ones.
 */
export function listProjects(
  knex: Knex,
  organisationIds: readonly string[],
  page: PageRequest,
): Promise<PageResult<ProjectRow>> {
  return rows.list(
    knex,
    (query) => void query.whereIn('organisation_id', [...organisationIds]),
    page,
  );
}

/** Returns a project unless it is deleted. Does not check permissions. */
export function findProject(knex: Knex, id: string): Promise<ProjectRow | undefined> {
  return rows.find(knex, { id });
}

/**
 * Changes the given fields of a project. `config` is replaced as a whole. Returns undefined if the
 * project does not exist.
 */
export function updateProject(
  knex: Knex,
  id: string,
  fields: Partial<ProjectFields>,
): Promise<ProjectRow | undefined> {
  return rows.update(knex, { id }, fields);
}

/**
 * Marks a project as deleted and revokes its keys. Its events remain until their retention ends.
 */
export function deleteProject(knex: Knex, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await revokeProjectKeys(trx, id);
    return rows.delete(trx, { id });
  });
}
