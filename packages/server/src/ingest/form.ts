const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

/**
 * Converts a form to JSON: the value of `payload` if that is the only field, as sent by GitHub,
 * Slack and others; otherwise an object with arrays for repeated fields. Other bodies are returned
 * unchanged, as are JSON and plain text that `curl -d` declares as a form.
 */
export function jsonOfForm(body: Uint8Array, contentType: string | undefined): Uint8Array {
  if (!FORM.test(contentType ?? '') || body.byteLength === 0) return body;
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
  if (/^\s*[[{]/.test(text) || !text.includes('=')) return body;
  const form = new URLSearchParams(text);
  const fields = new Map<string, string | string[]>();
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
