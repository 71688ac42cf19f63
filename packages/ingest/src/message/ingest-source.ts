import type { SourceRecord } from '@gateway/store/config';

/** The fields of a source that the pipeline uses. Changing any of them creates a new object. */
export interface IngestSource {
  readonly projectId: string;
  readonly id: string;
  /** Undefined where nothing is traced. */
  readonly type?: string;
  readonly bodyFunction: string | null;
  readonly keepsMessages?: boolean;
}

export type ReadingState = 'reading' | 'failing' | 'stopped';

/** Returns the text of a function, or null if it is blank and nothing is transformed. */
export function functionText(text: string | null | undefined): string | null {
  return text?.trim() ? text : null;
}

/** Converts a stored source to the form that the pipeline uses. */
export function ingestSource(record: SourceRecord): IngestSource {
  return {
    projectId: record.project_id,
    id: record.id,
    type: record.pub_sub.type,
    bodyFunction: functionText(record.body_function),
    keepsMessages: record.keep_messages,
  };
}
