import { GatewayError } from '../errors/errors.js';
import { isObject } from '../json/json-value.js';
import { maskUrls } from '../logging/redaction.js';

/** A parsed OpenAPI document, with its name for errors. */
export interface ParsedDocument {
  readonly name: string;
  readonly root: unknown;
}

export interface DocumentPlace {
  /** The JSON Pointer (RFC 6901) to the value. */
  readonly pointer: string;
  readonly value: unknown;
}

/**
 * Resolves a `$ref` within the document. Reads no file and no URL.
 * @throws GatewayError `openapi_broken` if it cannot be resolved
 */
export function refer(ref: string, { name, root }: ParsedDocument): DocumentPlace {
  const broken = (reason: string, fix?: string) =>
    new GatewayError('openapi_broken', { file: name, reason, ...(fix ? { fix } : {}) });
  // The pointer may contain another #: callbacks are named by expressions such as
  // `{$request.body#/url}`, which a bundled document does not encode.
  const [, file = '', fragment = ''] = /^([^#]*)#?(.*)$/s.exec(ref)!;
  if (/^https?:/i.test(file))
    throw broken(
      `it refers to ${maskUrls(file)}, and no URL is read`,
      'download it, and refer to the file',
    );
  if (file !== '')
    throw broken(
      'it refers to another file',
      'include what it refers to in the document, as `redocly bundle` does',
    );
  const pointer = decoded(fragment);
  if (pointer !== '' && !pointer.startsWith('/'))
    throw broken(
      `its reference ${ref} names an anchor; write it as a JSON Pointer such as #/components/schemas/Order`,
    );
  const value = valueAt(root, pointer);
  if (value === undefined) throw broken(`its reference ${ref} does not resolve`);
  return { pointer, value };
}

/**
 * Follows references until the value is not one.
 * @param alone whether to stop at a reference with sibling keywords
 * @throws GatewayError `openapi_broken` if a reference cannot be resolved or is circular
 */
export function follow(
  place: DocumentPlace,
  document: ParsedDocument,
  { alone = false } = {},
): DocumentPlace {
  let at = place;
  for (let steps = 0; isObject(at.value) && typeof at.value['$ref'] === 'string'; steps++) {
    const { $ref: ref, ...others } = at.value;
    if (alone && Object.keys(others).length > 0) break;
    if (steps === 100)
      throw new GatewayError('openapi_broken', {
        file: document.name,
        reason: `its reference ${ref} is circular`,
      });
    at = refer(ref, document);
  }
  return at;
}

/** Decodes percent-encoding. Returns malformed text unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function valueAt(root: unknown, pointer: string): unknown {
  let at = root;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}
