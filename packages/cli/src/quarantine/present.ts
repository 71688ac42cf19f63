import { isUtf8 } from 'node:buffer';
import { rejectCodes } from '@gateway/agent/model';
import type { QuarantineEntry, QuarantinedMessageWhole } from '@gateway/store/quarantine';
import { textTable } from '../output/table.js';
import { escapeTerminal, escapeLine } from '../output/escape-terminal.js';

/** What is shown of a message; `--raw` has all of it. */
const TEXT_CHARS_MAX = 16_384;
const HEX_BYTES_MAX = 1024;
const HEX_BYTES_LINE = 16;

/**
 * A message for a person: where it comes from, why it was refused, its bytes, and what can be done. Everything from outside is made safe for a terminal.
 *
 * @param width columns of the terminal; without one nothing is wrapped
 */
export function presentMessage(
  entry: QuarantineEntry,
  { raw, edited_raw: edited }: Pick<QuarantinedMessageWhole, 'raw' | 'edited_raw'>,
  width?: number,
): string {
  const bytes = edited ?? raw;
  const facts: (readonly [string, string])[] = [
    ['id', entry.id],
    ['project', `${escapeLine(entry.project_name)} (${entry.project_id})`],
    ['source', `${escapeLine(entry.source_name ?? 'deleted')} (${entry.source_id})`],
    ['coordinates', escapeLine(entry.coordinates)],
    ['time', `${entry.occurred_at.toISOString()} at the broker, quarantined ${entry.created_at.toISOString()}`],
    ['status', statusOf(entry)],
    ['code', [escapeLine(entry.code), meaningOf(entry.code)].filter(Boolean).join(': ')],
    ['reason', escapeLine(entry.reason)],
    ...Object.entries(JSON.parse(entry.headers) as Record<string, string>).map(
      ([name, value]) => ['header', `${escapeLine(name)}: ${escapeLine(value)}`] as const,
    ),
    ['bytes', `${bytes.byteLength}, ${isUtf8(bytes) ? 'UTF-8' : 'not UTF-8, in hex'}${edited ? `; ${raw.byteLength} came` : ''}`],
  ];
  return [textTable(facts, width), '', ...bytesLines(bytes), '', ...nextLines(entry)].join('\n').trimEnd();
}

function statusOf({ status, edited_at: editedAt, updated_at: updatedAt }: QuarantineEntry): string {
  const edited = editedAt ? `, edited ${editedAt.toISOString()}` : '';
  return status === 'quarantined' ? `quarantined${edited}` : `${status} ${updatedAt.toISOString()}${edited}`;
}

function meaningOf(code: string): string {
  return (rejectCodes as Readonly<Record<string, string>>)[code] ?? '';
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

function nextLines({ id, status }: QuarantineEntry): string[] {
  switch (status) {
    case 'quarantined':
      return [
        'next:',
        `  gateway utils quarantine edit ${id}      change the bytes`,
        `  gateway utils quarantine replay ${id}    send it on its way again, with the function of its source as it is now`,
        `  gateway utils quarantine discard ${id}   mark it as not worth keeping`,
      ];
    case 'replayed':
      return [
        'next:',
        `  gateway utils explain ${id}   tells where its event went; the first event of a message has the id of the message`,
      ];
    case 'discarded':
      return [];
  }
}
