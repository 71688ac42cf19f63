import type { SourceOfProject } from '@gateway/store/config';

/** A source as the commands print it; fields are named as in the management API. */
export interface ShownSource {
  readonly source_id: string;
  readonly source_name: string;
  readonly project_id: string;
  readonly project_name: string;
  /** The plugin that reads it. */
  readonly type: string;
  /** `unread`: its project is of a type whose sources nobody reads. */
  readonly state: 'read' | 'paused' | 'disabled' | 'unread';
  readonly paused_at: Date | null;
  readonly resumes_at: Date | null;
  readonly pause_reason: string | null;
  readonly paused_by: string | null;
  readonly pauses: number;
}

/** Without the connection and the function, which the management API shows. */
export function sourceRecord({ id, name, project_id, project_name, pub_sub, ...row }: SourceOfProject): ShownSource {
  const { paused_at, resumes_at, pause_reason, paused_by, pauses } = row;
  const isRead = row.project_type === 'outgoing';
  const state = row.is_disabled ? 'disabled' : !isRead ? 'unread' : paused_at ? 'paused' : 'read';
  const pause = { paused_at, resumes_at, pause_reason, paused_by, pauses };
  return { source_id: id, source_name: name, project_id, project_name, type: pub_sub.type, state, ...pause };
}
