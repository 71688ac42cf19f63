import type { SourceRecord } from '@gateway/store/config';

/** What the way of a message needs to know of its source; a change of the source's function makes another one. */
export interface IngestSource {
  readonly projectId: string;
  readonly id: string;
  /** Kind of the source; undefined where nobody traces. */
  readonly type?: string;
  readonly bodyFunction: string | null;
}

export function ingestSource(record: SourceRecord): IngestSource {
  return {
    projectId: record.project_id,
    id: record.id,
    type: record.pub_sub.type,
    bodyFunction: record.body_function?.trim() ? record.body_function : null,
  };
}
