import type { Context } from 'koa';
import { GatewayError, isId, maskOfApiKey, matchesApiKey } from '@gateway/core';
import { findApiKey, findProject, organisationsOfUser, type ApiKeyRow, type OrganisationRow, type ProjectRow } from '@gateway/store';
import type { Parts } from './parts.js';

/** Who asks: the key that the request carries. */
export type Caller = ApiKeyRow;

const HOW = 'send it as `Authorization: Bearer <api key>`';

/**
 * Finds the key of a request.
 *
 * @throws GatewayError `unauthorized` with a sentence for each way to fail
 */
export async function authenticate(ctx: Context, { database }: Parts): Promise<Caller> {
  const refuse = (reason: string) => new GatewayError('unauthorized', { reason });
  const header = ctx.get('authorization');
  if (header === '') throw refuse(`the request has no API key; ${HOW}`);
  const [, key] = /^Bearer +(\S+)$/i.exec(header) ?? [];
  if (key === undefined) throw refuse(`the Authorization header is not of the form Bearer; ${HOW}`);
  const mask = maskOfApiKey(key);
  if (mask === undefined) throw refuse('what the Authorization header carries is not an API key of this gateway: those begin with gw_');
  const stored = await findApiKey(database.knex, mask);
  if (!stored || !matchesApiKey(key, stored.hash)) throw refuse('the API key is not known');
  if (stored.revoked_at) throw refuse(`the API key gw_${mask}_… was revoked`);
  if (stored.row.expires_at && stored.row.expires_at <= new Date()) throw refuse(`the API key gw_${mask}_… has expired`);
  return stored.row;
}

/** The organisations of a person; a project key speaks for no person. */
export async function organisationsOf(caller: Caller, { database }: Parts): Promise<OrganisationRow[]> {
  if (caller.type === 'personal') return organisationsOfUser(database.knex, caller.user_id);
  throw new GatewayError('forbidden', { reason: 'this API key belongs to a project; only a personal key may do this' });
}

/**
 * The project that a path names, when the caller may reach it. A project of another organisation does not exist for a personal key.
 *
 * @throws GatewayError `not_found`, `forbidden`
 */
export async function reachProject(caller: Caller, projectId: string, parts: Parts): Promise<ProjectRow> {
  if (caller.type === 'project' && caller.project_id !== projectId) {
    throw new GatewayError('forbidden', { reason: `this API key belongs to the project ${caller.project_id} and reaches no other` });
  }
  const project = isId(projectId) ? await findProject(parts.database.knex, projectId) : undefined;
  const visible =
    project && (caller.type === 'project' || (await organisationsOf(caller, parts)).some(({ id }) => id === project.organisation_id));
  if (!visible) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  return project;
}
