import type { Context } from 'koa';
import { maskOfApiKey, matchesApiKey } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { listOrganisations, type ApiKeyRow, type OrganisationRow, type ProjectRow } from '@gateway/store/config';
import type { Parts } from '../http/server-context.js';
import type { ProcessCaller } from './process-credentials.js';

/** Who asks: the stored key that the request carries, or a credential of the process. */
export type Caller = ApiKeyRow | ProcessCaller;

/**
 * Finds who sent a request.
 *
 * @throws GatewayError `unauthorized` with a sentence for each way to fail
 */
export async function authenticate(ctx: Context, { credentials, lookups }: Parts): Promise<Caller> {
  const refuse = (reason: string) => new GatewayError('unauthorized', { reason, fix: credentials.how });
  const header = ctx.get('authorization');
  if (header === '') throw refuse(credentials.basic ? 'the request has no credentials' : 'the request has no API key');
  const [, pair] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header) ?? [];
  if (pair !== undefined && credentials.basic) {
    const caller = credentials.ofBasic(Buffer.from(pair, 'base64').toString());
    if (!caller) throw refuse('the username or the password is wrong');
    return caller;
  }
  const [, key] = /^Bearer +(\S+)$/i.exec(header) ?? [];
  if (key === undefined) throw refuse(`the Authorization header is not of the form Bearer${credentials.basic ? ' or Basic' : ''}`);
  const caller = credentials.ofBearer(key);
  if (caller) return caller;
  const mask = maskOfApiKey(key);
  if (!credentials.native) {
    throw refuse(
      mask ? 'this process does not accept the API keys of the database: server.auth.native is off' : 'the API key is not known',
    );
  }
  if (mask === undefined) throw refuse('what the Authorization header carries is not an API key of this gateway: those begin with gw_');
  const stored = await lookups.apiKey(mask);
  if (!stored || !matchesApiKey(key, stored.hash)) throw refuse('the API key is not known');
  if (stored.revoked_at) throw refuse(`the API key gw_${mask}_… was revoked`);
  if (stored.row.expires_at && stored.row.expires_at <= new Date()) throw refuse(`the API key gw_${mask}_… has expired`);
  return stored.row;
}

/** The organisations that a caller may act for: those of a person, all for the process; a project key speaks for no person. */
export async function organisationsOf(caller: Caller, { database, lookups }: Parts): Promise<OrganisationRow[]> {
  switch (caller.type) {
    case 'personal':
      return lookups.organisations(caller.user_id);
    case 'process':
      return listOrganisations(database.knex);
    case 'project':
      throw new GatewayError('forbidden', { reason: 'this API key belongs to a project; only a personal key may do this' });
  }
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
  const project = isId(projectId) ? await parts.lookups.project(projectId) : undefined;
  if (!project || !(await isVisible(project, caller, parts))) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  return project;
}

async function isVisible(project: ProjectRow, caller: Caller, parts: Parts): Promise<boolean> {
  if (caller.type !== 'personal') return true;
  return (await organisationsOf(caller, parts)).some(({ id }) => id === project.organisation_id);
}
