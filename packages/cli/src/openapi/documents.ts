import { dirname, relative, resolve } from 'node:path';
import { fileReason, GatewayError } from '@gateway/core/errors';
import { isObject } from '@gateway/core/json';
import { maskUrls } from '@gateway/core/logging';

/** A parsed file. */
export interface Document {
  /** Absolute path, the base of relative references. */
  readonly address: string;
  /** The path for display. */
  readonly name: string;
  readonly root: unknown;
}

/** A value in a document. */
export interface Place {
  readonly document: Document;
  /** JSON Pointer, RFC 6901; empty for the whole document. */
  readonly pointer: string;
  readonly value: unknown;
}

const IS_URL = /^https?:/i;
const DOWNLOAD = 'download it, and name the file';

/** The documents of one run. Each file is read once. */
export class Documents {
  readonly #read = new Map<string, Promise<Document>>();

  /** Reads a file. Throws GatewayError `openapi_broken`. */
  async open(path: string): Promise<Document> {
    if (IS_URL.test(path)) throw new GatewayError('openapi_broken', { file: maskUrls(path), reason: 'only files are read', fix: DOWNLOAD });
    return this.#load(resolve(path), path);
  }

  /** What a `$ref` in a document names. Throws GatewayError `openapi_broken`. */
  async refer(ref: string, from: Document): Promise<Place> {
    const broken = (reason: string, fix?: string) =>
      new GatewayError('openapi_broken', { file: from.name, reason, ...(fix ? { fix } : {}) });
    const [file = '', fragment = ''] = ref.split('#', 2);
    const pointer = decoded(fragment);
    if (pointer !== '' && !pointer.startsWith('/'))
      throw broken(`its reference ${ref} names an anchor; write it as a JSON Pointer such as #/components/schemas/Order`);
    if (IS_URL.test(file)) throw broken(`it refers to ${maskUrls(file)}, and only files are read`, DOWNLOAD);
    const path = resolve(dirname(from.address), decoded(file));
    const document = file === '' ? from : await this.#load(path, relative('', path));
    const value = valueAt(document.root, pointer);
    if (value === undefined) throw broken(`its reference ${ref} leads nowhere`);
    return { document, pointer, value };
  }

  /**
   * Follows references until a value is something else. Throws GatewayError `openapi_broken`.
   *
   * @param alone whether a reference that has other keywords beside it is left as it is
   */
  async follow(place: Place, { alone = false } = {}): Promise<Place> {
    let at = place;
    for (let steps = 0; isObject(at.value) && typeof at.value['$ref'] === 'string'; steps++) {
      const { $ref: ref, ...others } = at.value;
      if (alone && Object.keys(others).length > 0) break;
      if (steps === 100)
        throw new GatewayError('openapi_broken', { file: at.document.name, reason: `its reference ${ref} leads in a circle` });
      at = await this.refer(ref, at.document);
    }
    return at;
  }

  #load(address: string, name: string): Promise<Document> {
    const document = this.#read.get(address) ?? parseFile(address, name).then((root) => ({ address, name, root }));
    this.#read.set(address, document);
    return document;
  }
}

/** Without its percent escapes; unchanged if a percent sign escapes nothing. */
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

async function parseFile(path: string, name: string): Promise<unknown> {
  const { parse } = await import('@readme/openapi-parser');
  try {
    return await parse(path);
  } catch (error) {
    const { message, ioErrorCode } = error as Error & { ioErrorCode?: string };
    const code = ioErrorCode ?? /\b(ENOENT|EISDIR|EACCES)\b/.exec(message)?.[1];
    const reason = code === undefined ? syntaxError(message, path) : `it cannot be read: ${fileReason({ code, message })}`;
    throw new GatewayError('openapi_broken', { file: name, reason }, { cause: error });
  }
}

/** The message of the parser in one line, with line and column but without the excerpt of the text. */
function syntaxError(message: string, path: string): string {
  const [first = ''] = message.replaceAll(path, 'it').split('\n');
  if (first.endsWith('is not a valid JSON Schema')) return 'it is not an OpenAPI document: it holds no object';
  const words = first.replace(/^Error parsing it: /, '').replace(/:$/, '');
  return `it is neither YAML nor JSON: ${words.replace(/\((\d+):(\d+)\)/, '(line $1, column $2)')}`;
}
