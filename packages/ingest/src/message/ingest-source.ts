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

/** Returns null for a blank function: nothing is transformed. */
export function functionText(text: string | null | undefined): string | null {
  return text?.trim() ? text : null;
}

/** Returns what the pipeline needs of a stored source. */
export function ingestSource(record: SourceRecord): IngestSource {
  return {
    projectId: record.project_id,
    id: record.id,
    type: record.pub_sub.type,
    bodyFunction: functionText(record.body_function),
    keepsMessages: record.keep_messages,
  };
}
