import type { AuditEntry } from '@gateway/client';
import { own } from '../../format/text.js';

export const RESOURCES: Readonly<
  Record<string, { readonly word: string; readonly page?: string }>
> = {
  apiKeys: { word: 'API key' },
  auth: { word: 'Sign-in' },
  endpoints: { word: 'Endpoint', page: 'endpoints' },
  eventDeliveries: { word: 'Delivery', page: 'deliveries' },
  events: { word: 'Event', page: 'events' },
  eventTypes: { word: 'Event type' },
  invitations: { word: 'Invitation' },
  issues: { word: 'Issue', page: 'issues' },
  members: { word: 'Member' },
  organisations: { word: 'Organisation' },
  portalLinks: { word: 'Portal link' },
  projects: { word: 'Project' },
  quarantine: { word: 'Quarantined message', page: 'quarantine' },
  shards: { word: 'Shard' },
  sources: { word: 'Source', page: 'sources' },
  subscriptions: { word: 'Subscription', page: 'subscriptions' },
  users: { word: 'Account' },
};

const VERBS: Readonly<Record<string, string>> = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
  revoke: 'revoked',
  pause: 'paused',
  resume: 'resumed',
};

/**
 * Such as `Endpoint changed`. An unknown action is only split into words: `Endpoint: expire
 * secret`.
 */
export function actionWords(action: string): string {
  if (action === 'auth.login') return 'Signed in';
  if (action === 'auth.takeOver') return 'Account claimed by the owner of its email address';
  const [resource = '', name = ''] = action.split('.');
  const word = own(RESOURCES, resource)?.word ?? spaced(resource);
  const verb = own(VERBS, name);
  return verb ? `${word} ${verb}` : `${word}: ${spaced(name)}`;
}

function spaced(text: string): string {
  return text.replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Undefined if the resource has no page or this change deleted it. */
export function pageOf({
  action,
  project_id: project,
  resource_id: id,
}: AuditEntry): string | undefined {
  const [resource = '', name] = action.split('.');
  const page = own(RESOURCES, resource)?.page;
  return page && project && id && name !== 'delete'
    ? `/projects/${project}/${page}/${id}`
    : undefined;
}

/** The name if the changes include it, otherwise the id. */
export function resourceName({ changes, resource_id: id }: AuditEntry): string | undefined {
  const named = changes['name'] ?? changes['email'];
  const name = named?.after ?? named?.before;
  return typeof name === 'string' ? name : (id ?? undefined);
}
