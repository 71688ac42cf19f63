import { listAuditLog, type AuditRow } from '@gateway/store/people';
import { timeOfId } from '@gateway/core/events';
import {
  Id,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  organisationList,
  pageQuery,
  string,
  timeQuery,
  timeRange,
  Timestamp,
  Type,
  type Route,
} from '../../api/vocabulary.js';

const Entry = namedObject('AuditEntry', {
  uid: Id,
  organisation_id: Id,
  project_id: nullable(string()),
  created_at: Timestamp,
  actor: object({
    type: oneOf(
      ['user', 'project', 'portal', 'process'],
      'Who made the change: a user, a project key, a portal link, or a key of the process.',
    ),
    id: string(),
    name: nullable(string('Email address of the user or name of the key; null if it was deleted.')),
    key_id: nullable(string()),
  }),
  action: string('The resource and the action, such as `endpoints.update`.'),
  resource_id: nullable(string()),
  changes: Type.Record(
    string(),
    object(optional({ before: Type.Unknown(), after: Type.Unknown() })),
    {
      description:
        'The changed fields. Secrets are masked; long values are replaced with their length.',
    },
  ),
  address: nullable(string()),
  request_id: Id,
});

function view({ id, actor_type, actor_id, actor_name, key_id, ...row }: AuditRow): object {
  return {
    uid: id,
    created_at: new Date(timeOfId(id)),
    actor: { type: actor_type, id: actor_id, name: actor_name, key_id },
    ...row,
  };
}

export const auditLogRoutes: readonly Route[] = [
  organisationList(
    '/audit-log',
    'Lists changes in an organisation and its projects, with who made them.',
    {
      role: 'admin',
      query: object({
        ...pageQuery,
        ...timeQuery,
        ...optional({
          projectId: Id,
          actorId: Type.String({ maxLength: 100 }),
          resourceId: Type.String({ maxLength: 100 }),
          action: Type.String({
            maxLength: 100,
            description:
              'An action such as `endpoints.update`, or `endpoints.*` for all actions on endpoints.',
          }),
        }),
      }),
      title: 'audit log',
      data: Entry,
    },
    ({ database, organisation, query }, page) =>
      listAuditLog(database.knex, organisation.id, { ...query, ...timeRange(query) }, page),
    view,
  ),
];
