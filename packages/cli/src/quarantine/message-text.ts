import { clip } from '@gateway/core/json';
import { isUtf8 } from 'node:buffer';
import type { DryRun, Replayed } from '@gateway/ingest/once/replay';
import { rejectCodes } from '@gateway/ingest/message/reject-codes';
import type { QuarantineEntry, QuarantinedMessageWhole } from '@gateway/store/quarantine';
import { escapeLine, escapeTerminal } from '../output/escape-terminal.js';
import { counted, recordText } from '../output/table.js';

/** Output limits: characters of text and bytes of hexadecimal. `--raw` prints all bytes. */
const TEXT_CHARS_MAX = 16_384;
const HEX_BYTES_MAX = 1024;

/** Returns an entry with the fields of the management API. */
export function entryRecord(entry: QuarantineEntry) {
  const { id, headers, project_id, project_name, source_id, source_name, ...rest } = entry;
  return {
    id,
    project_id,
    project_name,
    source_id,
    source_name,
    ...rest,
    headers: JSON.parse(headers) as Record<string, string>,
  };
}

/** Formats a message as text that is safe to print on a terminal. */
export function messageText(
  entry: QuarantineEntry,
  { raw, edited_raw: edited }: Pick<QuarantinedMessageWhole, 'raw' | 'edited_raw'>,
): string {
  const { id, status, code, ...record } = entryRecord(entry);
  const bytes = edited ?? raw;
  const meaning = (rejectCodes as Readonly<Record<string, string>>)[code];
  const next = {
    quarantined: [
      `quarantine edit ${id}      edit the content`,
      `quarantine replay ${id}    replay it with the current function of its source`,
      `quarantine discard ${id}   discard it`,
    ],
    replayed: [
      `explain ${id}   shows where its event went; the first event of a message has the id of the message`,
    ],
    discarded: [],
  }[status].map((command) => `  gateway utils ${command}`);
  const since = status === 'quarantined' ? '' : ` ${record.updated_at.toISOString()}`;
  const facts = recordText([
    ['id', id],
    ['project', `${record.project_name} (${record.project_id})`],
    ['source', `${record.source_name ?? 'deleted'} (${record.source_id})`],
    ['coordinates', record.coordinates],
    [
      'time',
      `${record.occurred_at.toISOString()} at the broker, quarantined ${record.created_at.toISOString()}`,
    ],
    [
      'status',
      `${status}${since}${record.edited_at ? `, edited ${record.edited_at.toISOString()}` : ''}`,
    ],
    ['code', meaning ? `${code}: ${meaning}` : code],
    ['reason', record.reason],
    ...Object.entries(record.headers).map(
      ([name, value]) => ['header', `${name}: ${value}`] as const,
    ),
    [
      'bytes',
      `${bytes.byteLength}, ${isUtf8(bytes) ? 'UTF-8' : 'not UTF-8, in hex'}${edited ? `; ${raw.byteLength} came` : ''}`,
    ],
  ]);
  return [facts, '', ...bytesLines(bytes), ...(next.length > 0 ? ['', 'next:', ...next] : [])].join(
    '\n',
  );
}

/** Describes the result of a replay or dry run on one line. */
export function resultLine(result: Replayed | DryRun, dryRun: boolean): string {
  const eventsText = ({ length }: readonly unknown[]) =>
    length === 1 ? 'event' : counted(length, 'event');
  switch (result.kind) {
    case 'accepted': {
      const events = result.events.map(({ eventType, id }) => `${eventType} (${id})`).join(', ');
      return `would be accepted → ${eventsText(result.events)} ${escapeLine(events, 400)}`;
    }
    case 'replayed':
      return `replayed → ${eventsText(result.ids)} ${result.ids.join(', ')}`;
    case 'duplicate':
      return `duplicate: the ${eventsText(result.ids)} ${result.ids.join(', ')} ${result.ids.length === 1 ? 'exists' : 'exist'} already`;
    case 'dropped':
      return `${dryRun ? 'would be ' : ''}dropped by the function, and discarded`;
    case 'refused':
      return `${dryRun ? 'would be' : 'still'} refused: ${result.refusal.code} ${escapeLine(result.refusal.reason)}`;
    case 'changed':
      return 'skipped: someone replayed, discarded or edited it meanwhile';
  }
}

/**
 * Formats a message's bytes with a bar before each line, so that none can be mistaken for the
 * gateway's own output.
 */
function bytesLines(bytes: Buffer): string[] {
  if (bytes.byteLength === 0) return ['  | (empty)'];
  const text = isUtf8(bytes) ? bytes.toString('utf8') : undefined;
  const shown =
    text === undefined
      ? hexLines(bytes)
      : escapeTerminal(clip(text, TEXT_CHARS_MAX, '')).split('\n');
  const more = text === undefined ? bytes.byteLength - HEX_BYTES_MAX : text.length - TEXT_CHARS_MAX;
  const rest =
    more > 0
      ? [`  … ${more} more ${text === undefined ? 'bytes' : 'characters'}; --raw writes all`]
      : [];
  return [...shown.map((line) => `  | ${line}`), ...rest];
}

/** Formats sixteen bytes per line: position, hexadecimal and ASCII. */
function hexLines(bytes: Buffer): string[] {
  const text = bytes.subarray(0, HEX_BYTES_MAX).toString('latin1');
  return (text.match(/[^]{1,16}/g) ?? []).map((part, line) => {
    const hex = Buffer.from(part, 'latin1')
      .toString('hex')
      .replaceAll(/..(?=.)/g, '$& ');
    return `${(line * 16).toString(16).padStart(6, '0')}  ${hex.padEnd(48)} ${part.replaceAll(/[^\x20-\x7e]/g, '.')}`;
  });
}
