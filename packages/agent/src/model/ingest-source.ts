import type { SourceRecord } from '@gateway/store/config';

/** What the pipeline needs of a source. A change of the source's function makes a new one. */
export interface IngestSource {
  readonly projectId: string;
  readonly id: string;
  /** Kind of the source; undefined where nothing is traced. */
  readonly type?: string;
  readonly bodyFunction: string | null;
}

/** How a source is doing in this agent. */
export type SourceState = 'reading' | 'failing' | 'stopped';

export function ingestSource(record: SourceRecord): IngestSource {
  return {
    projectId: record.project_id,
    id: record.id,
    type: record.pub_sub.type,
    bodyFunction: record.body_function?.trim() ? record.body_function : null,
  };
}
