import type { SourceRecord } from '@gateway/store/config';

/** A source as the pipeline sees it. A change of any field creates a new object. */
export interface IngestSource {
  readonly projectId: string;
  readonly id: string;
  /** Kind of the source; undefined where nothing is traced. */
  readonly type?: string;
  readonly bodyFunction: string | null;
  /** Whether messages are stored with their events. */
  readonly keepsMessages?: boolean;
}

export type ReadingState = 'reading' | 'failing' | 'stopped';

/** Returns null for a blank function: nothing is transformed. */
export function functionText(text: string | null | undefined): string | null {
  return text?.trim() ? text : null;
}

/** Converts a stored source. */
export function ingestSource(record: SourceRecord): IngestSource {
  return {
    projectId: record.project_id,
    id: record.id,
    type: record.pub_sub.type,
    bodyFunction: functionText(record.body_function),
    keepsMessages: record.keep_messages,
  };
}
