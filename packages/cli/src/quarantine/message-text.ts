import { isUtf8 } from 'node:buffer';
import type { DryRun, Replayed } from '@gateway/agent/inspect';
import { rejectCodes } from '@gateway/agent/model';
import type { QuarantineEntry, QuarantinedMessageWhole } from '@gateway/store/quarantine';
import { escapeLine, escapeTerminal } from '../output/escape-terminal.js';
import { counted, recordText } from '../output/record.js';

/** What is shown of a message; `--raw` has all of it. */
const TEXT_CHARS_MAX = 16_384;
const HEX_BYTES_MAX = 1024;
const HEX_BYTES_LINE = 16;

/** An entry as JSON, with the fields of the management API. */
export function entryRecord(entry: QuarantineEntry) {
  const { id, headers, project_id, project_name, source_id, source_name, ...rest } = entry;
  return { id, project_id, project_name, source_id, source_name, ...rest, headers: JSON.parse(headers) as Record<string, string> };
}

/** A message for a person: where it comes from, why it was rejected, its bytes, and what can be done. Safe for a terminal. */
export function messageText(
  entry: QuarantineEntry,
  { raw, edited_raw: edited }: Pick<QuarantinedMessageWhole, 'raw' | 'edited_raw'>,
): string {
  const { id, status, code, edited_at: editedAt, ...record } = entryRecord(entry);
  const bytes = edited ?? raw;
  const meaning = (rejectCodes as Readonly<Record<string, string>>)[code];
  const next = {
    quarantined: [
      `edit ${id}      change the bytes`,
      `replay ${id}    send it on its way again, with the function of its source as it is now`,
      `discard ${id}   mark it as not worth keeping`,
    ].map((command) => `  gateway utils quarantine ${command}`),
    replayed: [`  gateway utils explain ${id}   tells where its event went; the first event of a message has the id of the message`],
    discarded: [],
  }[status];
  return [
    recordText([
      ['id', id],
      ['project', `${record.project_name} (${record.project_id})`],
      ['source', `${record.source_name ?? 'deleted'} (${record.source_id})`],
      ['coordinates', record.coordinates],
      ['time', `${record.occurred_at.toISOString()} at the broker, quarantined ${record.created_at.toISOString()}`],
      [
        'status',
        `${status}${status === 'quarantined' ? '' : ` ${record.updated_at.toISOString()}`}${editedAt ? `, edited ${editedAt.toISOString()}` : ''}`,
      ],
      ['code', meaning ? `${code}: ${meaning}` : code],
      ['reason', record.reason],
      ...Object.entries(record.headers).map(([name, value]) => ['header', `${name}: ${value}`] as const),
      ['bytes', `${bytes.byteLength}, ${isUtf8(bytes) ? 'UTF-8' : 'not UTF-8, in hex'}${edited ? `; ${raw.byteLength} came` : ''}`],
    ]),
    '',
    ...bytesLines(bytes),
    ...(next.length > 0 ? ['', 'next:', ...next] : []),
  ].join('\n');
}

/** What would become of a message. */
export function dryRunLine(result: DryRun): string {
  switch (result.kind) {
    case 'accepted': {
      const events = result.events.map(({ eventType, id }) => `${eventType} (${id})`).join(', ');
      return `would be accepted → ${eventsText(result.events.length)} ${escapeLine(events, 400)}`;
    }
    case 'dropped':
      return 'would be dropped by the function, and discarded';
    case 'refused':
      return `would be refused: ${result.refusal.code} ${escapeLine(result.refusal.reason)}`;
  }
}

/** What became of a message. */
export function replayedLine(result: Replayed): string {
  switch (result.kind) {
    case 'replayed':
      return `replayed → ${eventsText(result.ids.length)} ${result.ids.join(', ')}`;
    case 'duplicate':
      return `duplicate: the ${eventsText(result.ids.length)} ${result.ids.join(', ')} ${result.ids.length === 1 ? 'exists' : 'exist'} already`;
    case 'dropped':
      return 'dropped by the function, and discarded';
    case 'refused':
      return `still refused: ${result.refusal.code} ${escapeLine(result.refusal.reason)}`;
    case 'changed':
      return 'left alone: somebody replayed, discarded or edited it meanwhile';
  }
}

function eventsText(count: number): string {
  return count === 1 ? 'event' : counted(count, 'event');
}

/** The bytes, each line behind a bar: no line of a message can be taken for one of ours. */
function bytesLines(bytes: Buffer): string[] {
  if (bytes.byteLength === 0) return ['  | (empty)'];
  return isUtf8(bytes) ? textLines(bytes.toString('utf8')) : hexLines(bytes);
}

function textLines(text: string): string[] {
  const shown = escapeTerminal(text.slice(0, TEXT_CHARS_MAX)).split('\n');
  return [...shown.map((line) => `  | ${line}`), ...rest(text.length - TEXT_CHARS_MAX, 'characters')];
}

function hexLines(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.byteLength, HEX_BYTES_MAX); at += HEX_BYTES_LINE) {
    const part = bytes.subarray(at, at + HEX_BYTES_LINE);
    const hex = [...part].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = part.toString('latin1').replaceAll(/[^\x20-\x7e]/g, '.');
    lines.push(`  | ${at.toString(16).padStart(6, '0')}  ${hex.padEnd(HEX_BYTES_LINE * 3)} ${text}`);
  }
  return [...lines, ...rest(bytes.byteLength - HEX_BYTES_MAX, 'bytes')];
}

function rest(count: number, unit: string): string[] {
  return count > 0 ? [`  … ${count} more ${unit}; --raw writes all`] : [];
}
