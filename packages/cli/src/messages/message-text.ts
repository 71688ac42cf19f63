import { clip } from '@gateway/core/json';
import { isUtf8 } from 'node:buffer';
import type { ReplayedMessage, WholeQuarantinedMessage } from '@gateway/client';
import { rejectCodes } from '@gateway/ingest/validate/reject-codes';
import { escapeLine, escapeTerminal } from '../output/escape-terminal.js';
import { counted, recordText } from '../output/table.js';

/** Characters of text and bytes of hexadecimal. `--raw` prints all bytes. */
const TEXT_CHARS_MAX = 16_384;
const HEX_BYTES_MAX = 1024;

/** With `original`, as it was before it was edited. */
export function contentOf(message: WholeQuarantinedMessage, original = false): Buffer {
  const { raw, raw_encoding, original_raw, original_raw_encoding } = message;
  return original && original_raw !== undefined
    ? Buffer.from(original_raw, original_raw_encoding)
    : Buffer.from(raw, raw_encoding);
}

/** Safe to print on a terminal. */
export function messageText(
  { uid: id, status, code, ...message }: WholeQuarantinedMessage,
  { bytes, projectName, sourceName }: { bytes: Buffer; projectName: string; sourceName: string },
): string {
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
  const since = status === 'quarantined' ? '' : ` ${message.updated_at}`;
  const { edited_at: editedAt } = message;
  const facts = recordText([
    ['id', id],
    ['project', `${projectName} (${message.project_id})`],
    ['source', `${sourceName} (${message.source_id})`],
    ['coordinates', message.coordinates],
    ['time', `${message.occurred_at} at the broker, quarantined ${message.created_at}`],
    ['status', `${status}${since}${editedAt === null ? '' : `, edited ${editedAt}`}`],
    ['code', meaning ? `${code}: ${meaning}` : code],
    ['reason', message.reason],
    ...Object.entries(message.headers).map(
      ([name, value]) => ['header', `${name}: ${value}`] as const,
    ),
    ['bytes', `${bytes.byteLength}, ${isUtf8(bytes) ? 'UTF-8' : 'not UTF-8, in hex'}`],
  ]);
  return [facts, '', ...bytesLines(bytes), ...(next.length > 0 ? ['', 'next:', ...next] : [])].join(
    '\n',
  );
}

/** One line. */
export function resultLine(
  { outcome, event_ids: ids, code, reason }: ReplayedMessage,
  dryRun: boolean,
): string {
  const events = `${ids.length === 1 ? 'event' : counted(ids.length, 'event')} ${ids.join(', ')}`;
  switch (outcome) {
    case 'accepted':
      return `would be accepted → ${events}`;
    case 'replayed':
      return `replayed → ${events}`;
    case 'duplicate':
      return `duplicate: the ${events} ${ids.length === 1 ? 'exists' : 'exist'} already`;
    case 'dropped':
      return `${dryRun ? 'would be ' : ''}dropped by the function, and discarded`;
    case 'refused':
      return `${dryRun ? 'would be' : 'still'} refused: ${code} ${escapeLine(reason ?? '')}`;
  }
}

/** A bar before each line, so that none can be mistaken for the gateway's own output. */
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

/** Sixteen bytes per line: position, hexadecimal and ASCII. */
function hexLines(bytes: Buffer): string[] {
  const text = bytes.subarray(0, HEX_BYTES_MAX).toString('latin1');
  return (text.match(/[^]{1,16}/g) ?? []).map((part, line) => {
    const hex = Buffer.from(part, 'latin1')
      .toString('hex')
      .replaceAll(/..(?=.)/g, '$& ');
    return `${(line * 16).toString(16).padStart(6, '0')}  ${hex.padEnd(48)} ${part.replaceAll(/[^\x20-\x7e]/g, '.')}`;
  });
}
