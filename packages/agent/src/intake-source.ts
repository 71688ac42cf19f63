import type { SourceRecord } from '@gateway/store';

/** What the way of a message needs to know of its source; a change of the source's function makes another one. */
export interface IntakeSource {
  readonly projectId: string;
  readonly id: string;
  readonly bodyFunction: string | null;
}

export function intakeSource(record: SourceRecord): IntakeSource {
  return { projectId: record.project_id, id: record.id, bodyFunction: record.body_function?.trim() ? record.body_function : null };
}
