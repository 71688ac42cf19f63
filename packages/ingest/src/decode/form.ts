import { type Decoded, decodeText } from './text.js';

export const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;
export const MULTIPART = /^multipart\/form-data\s*;/i;
/** Reading more parts would block the event loop. */
const PARTS_MAX = 1_000;

type FormField = string | { readonly name: string; readonly type: string; readonly base64: string };

/** JSON and plain text that `curl -d` declares as a form are text. */
export function decodeForm(body: Uint8Array): Decoded {
  const text = bufferOf(body).toString();
  return /^\s*[[{]/.test(text) || !text.includes('=')
    ? decodeText(body)
    : jsonOf(new URLSearchParams(text));
}

/** A form that cannot be read is text. */
export async function decodeMultipart(body: Uint8Array, contentType: string): Promise<Decoded> {
  const parts =
    bufferOf(body)
      .toString('latin1')
      .split(/content-disposition:/i).length - 1;
  if (parts > PARTS_MAX) return decodeText(body);
  const headers = { 'content-type': contentType };
  const form = await new Response(bufferOf(body), { headers }).formData().catch(() => undefined);
  if (!form) return decodeText(body);
  return jsonOf(
    await Promise.all(
      [...form].map(async ([name, value]) => [name, await fieldOf(value)] as const),
    ),
  );
}

/**
 * The value of `payload` if that is the only field, as sent by GitHub, Slack and others; otherwise
 * an object with arrays for repeated fields, in which a file is an object with its name, type and
 * bytes in base64.
 */
function jsonOf(form: Iterable<readonly [string, FormField]>): string {
  const fields = new Map<string, FormField | FormField[]>();
  for (const [name, value] of form) {
    const before = fields.get(name);
    if (Array.isArray(before)) before.push(value);
    else fields.set(name, before === undefined ? value : [before, value]);
  }
  const payload = fields.get('payload');
  return fields.size === 1 && typeof payload === 'string'
    ? payload
    : JSON.stringify(Object.fromEntries(fields));
}

async function fieldOf(value: string | File): Promise<FormField> {
  if (typeof value === 'string') return value;
  const { name, type } = value;
  return { name, type, base64: Buffer.from(await value.arrayBuffer()).toString('base64') };
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}
