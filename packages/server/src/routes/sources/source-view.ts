import { findSource, type SourceRow } from '@gateway/store/config';
import {
  boolean,
  found,
  Id,
  int,
  namedObject,
  nullable,
  oneOf,
  string,
  Timestamp,
  type ProjectCall,
} from '../../api/vocabulary.js';
import { CodecSchema, codecView } from './codec.js';
import { pubSubView, PubSubSchema } from './pub-sub.js';
import { httpView, httpViewOf, namedConnection } from './push-source.js';

export const Source = namedObject('Source', {
  uid: Id,
  project_id: Id,
  name: string(),
  type: oneOf(['pub_sub', 'http']),
  pub_sub: nullable(
    PubSubSchema,
    'The source plugin and its connection; null for sources of the plugin `http`.',
  ),
  codec: nullable(CodecSchema, 'Null if messages are decoded by their content type.'),
  ...httpView,
  body_function: nullable(string()),
  is_disabled: boolean(),
  keep_messages: boolean(),
  paused_at: nullable(Timestamp),
  resumes_at: nullable(
    Timestamp,
    'When the source resumes automatically; null if a user paused it.',
  ),
  pause_reason: nullable(string()),
  paused_by: nullable(string(), 'Who paused the source: the agent, a user or an API key.'),
  pauses: int(
    'Consecutive pauses. Reset when the function changes, or the source is resumed or enabled.',
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
});

export function sourceView(row: SourceRow, call: ProjectCall): unknown {
  const { id, pub_sub, http, mask_id, ...plain } = row;
  const isNamed = http === null || namedConnection(row) !== undefined;
  return {
    uid: id,
    ...plain,
    pub_sub: isNamed ? pubSubView(pub_sub, call) : null,
    codec: codecView(pub_sub, call),
    mask_id,
    url: mask_id && `${call.links.ofRequest(call.request)}/ingest/${mask_id}`,
    ...httpViewOf(row, call),
    ...(http === null && { forward_headers: pub_sub.forward_headers ?? null }),
  };
}

/** Throws `not_found`. */
export async function requireSource({ database, project, id }: ProjectCall): Promise<SourceRow> {
  return found(await findSource(database.knex, project.id, id), 'source', id);
}
