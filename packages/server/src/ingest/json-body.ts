import { isTooDeep, rawJsonAt } from '@gateway/core/json';
import { decode } from '@gateway/ingest/decode/decode';
import type { PushContext } from '@gateway/plugin';

/** Decodes a body as core decodes messages, for the plugin of a push source. */
export function jsonReader(
  body: Uint8Array,
  contentType: string | undefined,
  maxBytes: number,
): PushContext['json'] {
  return async () => {
    const decoded = await decode({ body, contentType }, maxBytes);
    if (typeof decoded !== 'string' || isTooDeep(decoded)) return undefined;
    const text = decoded.startsWith('\ufeff') ? decoded.slice(1) : decoded;
    try {
      JSON.parse(text);
    } catch {
      return undefined;
    }
    return { text, at: (path) => rawJsonAt(text, path) };
  };
}
