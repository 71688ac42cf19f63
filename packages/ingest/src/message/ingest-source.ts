import type { SourceRecord } from '@gateway/store/config';
import type { SourceCodec } from '../decode/source-codec.js';

/** Changing any of these fields creates a new object. */
export interface IngestSource {
  readonly projectId: string;
  readonly id: string;
  /** Undefined where nothing is traced. */
  readonly type?: string;
  readonly bodyFunction: string | null;
  /** Undefined if messages are decoded by their content type. */
  readonly codec?: SourceCodec | undefined;
  readonly keepsMessages?: boolean;
  /** By default, `ingest.max_message_bytes`. */
  readonly maxMessageBytes?: number;
}

export type ReadingState = 'reading' | 'failing' | 'stopped';

/** Null if the text is blank and nothing is transformed. */
export function functionText(text: string | null | undefined): string | null {
  return text?.trim() ? text : null;
}

export function ingestSource(record: SourceRecord, codec?: SourceCodec): IngestSource {
  return {
    projectId: record.project_id,
    id: record.id,
    type: record.pub_sub.type,
    bodyFunction: functionText(record.body_function),
    codec,
    keepsMessages: record.keep_messages,
  };
}
