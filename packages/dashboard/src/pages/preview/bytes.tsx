import { Code } from '../../components/index.js';

export const FORMS = [
  ['text', 'Text'],
  ['json', 'JSON'],
  ['hex', 'Hex'],
] as const;

export function BytesAs({ form, raw }: { form: string; raw: Raw }) {
  if (form === 'text') return <Code isRaw label="Message" text={textOf(raw)} />;
  if (form === 'json') return <Json text={textOf(raw)} />;
  if (form === 'hex') return <Code isRaw isTable label="Bytes" text={hexDump(bytesOf(raw))} />;
  return null;
}

function Json({ text }: { text: string }) {
  try {
    JSON.parse(text);
  } catch (error) {
    return <p>The message is not JSON: {(error as Error).message}.</p>;
  }
  return <Code label="JSON" text={text} />;
}

export interface Raw {
  readonly raw: string;
  readonly raw_encoding: 'utf8' | 'base64';
}

/** Invalid UTF-8 becomes U+FFFD. */
export function textOf({ raw, raw_encoding: encoding }: Raw): string {
  return encoding === 'utf8'
    ? raw
    : new TextDecoder().decode(bytesOf({ raw, raw_encoding: encoding }));
}

export function bytesOf({ raw, raw_encoding: encoding }: Raw): Uint8Array {
  return encoding === 'utf8'
    ? new TextEncoder().encode(raw)
    : Uint8Array.from(atob(raw), (letter) => letter.charCodeAt(0));
}

const LINE_BYTES = 16;
const SHOWN_BYTES = 65_536;

/** The first 64 KiB like `hexdump -C`: offsets, bytes and printable characters. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, SHOWN_BYTES); at += LINE_BYTES) {
    const part = [...bytes.subarray(at, at + LINE_BYTES)];
    const hex = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = part
      .map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'))
      .join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(LINE_BYTES * 3 - 1)}  ${text}`);
  }
  if (bytes.length > SHOWN_BYTES) lines.push(`… ${bytes.length - SHOWN_BYTES} more bytes`);
  return lines.join('\n');
}
