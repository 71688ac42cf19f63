import { Type } from '@sinclair/typebox';
import { listAuditLog, type AuditRow } from '@gateway/store/people';
import { timeOfId } from '@gateway/core/events';
import { organisationList, type Route } from '../../api/route.js';
import { pageQuery, timeQuery, timeRange } from '../../http/list-query.js';
import { Id, named, nullable, object, oneOf, optional, Timestamp } from '../../http/schema.js';

const Entry = named(
  'AuditEntry',
  object({
    uid: Id,
    organisation_id: Id,
    project_id: nullable(Type.String()),
    created_at: Timestamp,
    actor: object({
      type: oneOf(['user', 'project', 'portal', 'process'], {
        description:
          'Who made the change: a user, a project key, a portal link, or a key of the process.',
      }),
      id: Type.String(),
      name: nullable(
        Type.String({
          description: 'Email address of the user or name of the key; null if it was deleted.',
        }),
      ),
      key_id: nullable(Type.String()),
    }),
    action: Type.String({
      description: 'The resource and the action, such as `endpoints.update`.',
    }),
    resource_id: nullable(Type.String()),
    changes: Type.Record(
      Type.String(),
      object(optional({ before: Type.Unknown(), after: Type.Unknown() })),
      {
        description:
          'The changed fields. Secrets are masked; long values are replaced with their length.',
      },
    ),
    address: nullable(Type.String()),
    request_id: Id,
  }),
);

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
