const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;
const MULTIPART = /^multipart\/form-data\s*;/i;
/** Reading more parts would block the event loop. */
const PARTS_MAX = 1_000;

export function isForm(contentType: string | undefined): boolean {
  return FORM.test(contentType ?? '');
}

/**
 * A form becomes the value of `payload` if that is the only field, as sent by GitHub, Slack and
 * others; otherwise an object with arrays for repeated fields, in which a file is an object with
 * its name, type and bytes in base64. Other bodies are returned unchanged, as are forms that cannot
 * be read, and JSON and plain text that `curl -d` declares as a form.
 */
export async function jsonOfForm(
  body: Buffer,
  contentType: string | undefined,
): Promise<Uint8Array> {
  const form = await fieldsOf(body, contentType ?? '');
  if (!form) return body;
  const fields = new Map<string, FormField | FormField[]>();
  for (const [name, value] of form) {
    const before = fields.get(name);
    if (Array.isArray(before)) before.push(value);
    else fields.set(name, before === undefined ? value : [before, value]);
  }
  const payload = fields.get('payload');
  return Buffer.from(
    fields.size === 1 && typeof payload === 'string'
      ? payload
      : JSON.stringify(Object.fromEntries(fields)),
  );
}

type FormField = string | { readonly name: string; readonly type: string; readonly base64: string };

async function fieldsOf(
  body: Buffer,
  contentType: string,
): Promise<Iterable<readonly [string, FormField]> | undefined> {
  if (MULTIPART.test(contentType)) {
    const parts = body.toString('latin1').split(/content-disposition:/i).length - 1;
    if (parts > PARTS_MAX) return undefined;
    const headers = { 'content-type': contentType };
    const form = await new Response(body, { headers }).formData().catch(() => undefined);
    return (
      form &&
      Promise.all([...form].map(async ([name, value]) => [name, await fieldOf(value)] as const))
    );
  }
  const text = isForm(contentType) ? body.toString() : '';
  return /^\s*[[{]/.test(text) || !text.includes('=') ? undefined : new URLSearchParams(text);
}

async function fieldOf(value: string | File): Promise<FormField> {
  if (typeof value === 'string') return value;
  const { name, type } = value;
  return { name, type, base64: Buffer.from(await value.arrayBuffer()).toString('base64') };
}
