import type { SourceRecord } from '@gateway/store/config';

/** What the pipeline needs of a source. A change of one of these makes a new one. */
export interface IngestSource {
  readonly projectId: string;
  readonly id: string;
  /** Kind of the source; undefined where nothing is traced. */
  readonly type?: string;
  readonly bodyFunction: string | null;
  /** Its messages are stored with their events. */
  readonly keepsMessages?: boolean;
}

export type SourceState = 'reading' | 'failing' | 'stopped';

/** Returns what the pipeline needs of a stored source. A blank function becomes null: nothing is transformed. */
export function ingestSource(record: SourceRecord): IngestSource {
  return {
    projectId: record.project_id,
    id: record.id,
    type: record.pub_sub.type,
    bodyFunction: record.body_function?.trim() ? record.body_function : null,
    keepsMessages: record.keep_messages,
  };
}
