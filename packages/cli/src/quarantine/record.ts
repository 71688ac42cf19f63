import { quarantinedBytes, type QuarantinedMessageWhole, type QuarantineEntry } from '@gateway/store/quarantine';

/** An entry as JSON answers show it, in the words of the management API. */
export function entryRecord(entry: QuarantineEntry) {
  const { id, headers, project_id, project_name, source_id, source_name, ...rest } = entry;
  return { id, project_id, project_name, source_id, source_name, ...rest, headers: JSON.parse(headers) as Record<string, string> };
}

/** The same with the bytes that would be replayed, and with those that came when they were edited. */
export function wholeRecord(entry: QuarantineEntry, whole: Pick<QuarantinedMessageWhole, 'raw' | 'edited_raw'>) {
  return { ...entryRecord(entry), ...quarantinedBytes(whole) };
}
