import { maskOfApiKey, matchesApiKey } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { listOrganisations, type ApiKeyRow, type OrganisationRow, type ProjectRow } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import type { ProcessCaller, ProcessCredentials } from './process-credentials.js';
import type { RecordCache } from './record-cache.js';

/** The sender of a request: a stored API key, or a credential of the process. */
export type Caller = ApiKeyRow | ProcessCaller;

interface Context {
  readonly credentials: ProcessCredentials;
  readonly records: RecordCache;
  readonly database: Pick<Database, 'knex'>;
}

export async function authenticate(header: string, { credentials, records }: Context): Promise<Caller> {
  const unauthorized = (reason: string) => new GatewayError('unauthorized', { reason, fix: credentials.how });
  if (header === '') throw unauthorized(credentials.basic ? 'the request has no credentials' : 'the request has no API key');
  const [, pair] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header) ?? [];
  if (pair !== undefined && credentials.basic) {
    const caller = credentials.ofBasic(Buffer.from(pair, 'base64').toString());
    if (!caller) throw unauthorized('the username or the password is wrong');
    return caller;
  }
  const [, key] = /^Bearer +(\S+)$/i.exec(header) ?? [];
  if (key === undefined) throw unauthorized(`the Authorization header is not of the form Bearer${credentials.basic ? ' or Basic' : ''}`);
  const caller = credentials.ofBearer(key);
  if (caller) return caller;
  const mask = maskOfApiKey(key);
  if (!credentials.native) {
    throw unauthorized(
      mask ? 'this process does not accept the API keys of the database: server.auth.native is off' : 'the API key is not known',
    );
  }
  if (mask === undefined)
    throw unauthorized('the Authorization header carries something that is not an API key of this gateway: those begin with gw_');
  const stored = await records.apiKey(mask);
  if (!stored || !matchesApiKey(key, stored.hash)) throw unauthorized('the API key is not known');
  if (stored.revoked_at) throw unauthorized(`the API key gw_${mask}_… was revoked`);
  if (stored.row.expires_at && stored.row.expires_at <= new Date()) throw unauthorized(`the API key gw_${mask}_… has expired`);
  return stored.row;
}

/** The organisations that a caller may act for; throws `forbidden` for the key of a project. */
export async function organisationsOf(caller: Caller, { database, records }: Context): Promise<OrganisationRow[]> {
  switch (caller.type) {
    case 'personal':
      return records.organisations(caller.user_id);
    case 'process':
      return listOrganisations(database.knex);
    case 'project':
      throw new GatewayError('forbidden', { reason: 'this API key belongs to a project; only a personal key may do this' });
  }
}

/** The project of a path. Throws `forbidden`, or `not_found` also for projects in organisations of others. */
export async function reachProject(caller: Caller, projectId: string, context: Context): Promise<ProjectRow> {
  if (caller.type === 'project' && caller.project_id !== projectId) {
    throw new GatewayError('forbidden', { reason: `this API key belongs to the project ${caller.project_id} and reaches no other` });
  }
  const project = isId(projectId) ? await context.records.project(projectId) : undefined;
  if (!project || !(await isVisible(project, caller, context))) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  return project;
}

async function isVisible(project: ProjectRow, caller: Caller, context: Context): Promise<boolean> {
  if (caller.type !== 'personal') return true;
  return (await organisationsOf(caller, context)).some(({ id }) => id === project.organisation_id);
}
