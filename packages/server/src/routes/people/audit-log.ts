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
        description: 'A user, or the key of a project, a portal link, or of the process.',
      }),
      id: Type.String(),
      name: nullable(
        Type.String({
          description: 'The email address of a user, the name of a key; null when it is gone.',
        }),
      ),
      key_id: nullable(Type.String()),
    }),
    action: Type.String({ description: 'The resource and what was done: `endpoints.update`.' }),
    resource_id: nullable(Type.String()),
    changes: Type.Record(
      Type.String(),
      object(optional({ before: Type.Unknown(), after: Type.Unknown() })),
      {
        description:
          'The fields that changed; secrets are masked, long values are told by their length.',
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
    'Lists who changed what in an organisation and its projects.',
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
            description: '`endpoints.update`, or `endpoints.*` for all that is done to endpoints.',
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
