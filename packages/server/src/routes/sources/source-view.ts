import { Type } from '@sinclair/typebox';
import { findSource, type SourceRow } from '@gateway/store/config';
import { found, type ProjectCall } from '../../api/route.js';
import { Id, named, nullable, object, oneOf, Timestamp } from '../../http/schema.js';
import { httpView, httpViewOf } from './http-source.js';
import { pubSubView, PubSubSchema } from './pub-sub.js';

export const Source = named(
  'Source',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    type: oneOf(['pub_sub', 'http']),
    pub_sub: nullable(
      PubSubSchema,
      'The broker and its connection; null for sources of type `http`.',
    ),
    ...httpView,
    body_function: nullable(Type.String()),
    is_disabled: Type.Boolean(),
    keep_messages: Type.Boolean(),
    paused_at: nullable(Timestamp),
    resumes_at: nullable(
      Timestamp,
      'When the source resumes automatically; null if a user paused it.',
    ),
    pause_reason: nullable(Type.String()),
    paused_by: nullable(Type.String(), 'Who paused the source: the agent, a user or an API key.'),
    pauses: Type.Integer({
      description:
        'Consecutive pauses. Reset when the function changes, or the source is resumed or enabled.',
    }),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
);

export function sourceView({ id, pub_sub, ...row }: SourceRow, call: ProjectCall): unknown {
  const { http, mask_id, ...plain } = row;
  const broker = row.type === 'http' ? null : pubSubView(pub_sub, call);
  return {
    uid: id,
    ...plain,
    pub_sub: broker,
    ...(httpViewOf({ http, mask_id }, call.links.ofRequest(call.request)) as object),
    ...(row.type === 'pub_sub' && { forward_headers: pub_sub.forward_headers ?? null }),
  };
}

/** Throws `not_found`. */
export async function requireSource({ database, project, id }: ProjectCall): Promise<SourceRow> {
  return found(await findSource(database.knex, project.id, id), 'source', id);
}
