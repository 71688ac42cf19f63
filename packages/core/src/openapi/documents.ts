import { dirname, relative, resolve } from 'node:path';
import { GatewayError } from '../errors/errors.js';
import { isObject } from '../json/json-value.js';
import { maskUrls } from '../logging/redaction.js';

export interface Document {
  /** The absolute path of the file. Relative references are resolved against it. */
  readonly address: string;
  readonly name: string;
  readonly root: unknown;
}

export interface DocumentPlace {
  readonly document: Document;
  /** The JSON Pointer (RFC 6901) to the value. Empty for the whole document. */
  readonly pointer: string;
  readonly value: unknown;
}

/**
 * Reads and parses a file.
 * @throws GatewayError `openapi_broken` if it cannot be read or parsed
 */
export type ParseFile = (path: string, name: string) => Promise<unknown>;

const IS_URL = /^https?:/i;
const DOWNLOAD = 'download it, and name the file';

/** Opens documents and resolves references between them. Reads each file only once. */
export class Documents {
  readonly #read = new Map<string, Promise<Document>>();

  /**
   * @param parse returns the parsed content of a file, given its path and the path shown in errors
   */
  constructor(private readonly parse: ParseFile) {}

  async open(path: string): Promise<Document> {
    if (IS_URL.test(path))
      throw new GatewayError('openapi_broken', {
        file: maskUrls(path),
        reason: 'only files are read',
        fix: DOWNLOAD,
      });
    return this.#load(resolve(path), path);
  }

  /**
   * Resolves a `$ref` of the document `from`.
   * @throws GatewayError `openapi_broken` if it cannot be resolved
   */
  async refer(ref: string, from: Document): Promise<DocumentPlace> {
    const broken = (reason: string, fix?: string) =>
      new GatewayError('openapi_broken', { file: from.name, reason, ...(fix ? { fix } : {}) });
    const [file = '', fragment = ''] = ref.split('#', 2);
    const pointer = decoded(fragment);
    if (pointer !== '' && !pointer.startsWith('/'))
      throw broken(
        `its reference ${ref} names an anchor; write it as a JSON Pointer such as #/components/schemas/Order`,
      );
    if (IS_URL.test(file))
      throw broken(`it refers to ${maskUrls(file)}, and only files are read`, DOWNLOAD);
    const path = resolve(dirname(from.address), decoded(file));
    const document = file === '' ? from : await this.#load(path, relative('', path));
    const value = valueAt(document.root, pointer);
    if (value === undefined) throw broken(`its reference ${ref} does not resolve`);
    return { document, pointer, value };
  }

  /**
   * Follows references until the value is not one.
   * @param alone whether to stop at a reference with sibling keywords
   * @throws GatewayError `openapi_broken` if a reference cannot be resolved or is circular
   */
  async follow(place: DocumentPlace, { alone = false } = {}): Promise<DocumentPlace> {
    let at = place;
    for (let steps = 0; isObject(at.value) && typeof at.value['$ref'] === 'string'; steps++) {
      const { $ref: ref, ...others } = at.value;
      if (alone && Object.keys(others).length > 0) break;
      if (steps === 100)
        throw new GatewayError('openapi_broken', {
          file: at.document.name,
          reason: `its reference ${ref} is circular`,
        });
      at = await this.refer(ref, at.document);
    }
    return at;
  }

  #load(address: string, name: string): Promise<Document> {
    const document =
      this.#read.get(address) ??
      this.parse(address, name).then((root) => ({ address, name, root }));
    this.#read.set(address, document);
    return document;
  }
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
