import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileReason, GatewayError, networkReason } from '@gateway/core/errors';
import { maskUrls } from '@gateway/core/logging';

/** A parsed file. */
export interface Document {
  /** Absolute path or URL, which relative references start from. */
  readonly address: string;
  /** How a person calls it. */
  readonly name: string;
  readonly root: unknown;
}

/** A value in a document. */
export interface Place {
  readonly document: Document;
  /** JSON Pointer, RFC 6901; empty for the whole. */
  readonly pointer: string;
  readonly value: unknown;
}

/** Documents by their address, each read once. */
export interface Documents {
  /** The document that a user named: a path or an http(s) URL. */
  open(given: string): Promise<Document>;
  /** What a `$ref` in a document names. Throws GatewayError `openapi_broken`. */
  refer(ref: string, from: Document): Promise<Place>;
}

const FETCH_MS = 15_000;
const BYTES_MAX = 20 * 1024 * 1024;

/**
 * @param allowRemote whether references may be fetched; without it only from the hosts of URLs that the user named
 */
export function openDocuments({ allowRemote }: { allowRemote: boolean }): Documents {
  const read = new Map<string, Promise<Document>>();
  const origins = new Set<string>();

  function load(address: string, name: string): Promise<Document> {
    let document = read.get(address);
    if (!document) read.set(address, (document = parseAt(address, name)));
    return document;
  }

  return {
    open(given) {
      if (!isUrl(given)) return load(resolve(given), given);
      const { origin, href } = new URL(given);
      origins.add(origin);
      return load(href, maskUrls(given));
    },
    async refer(ref, from) {
      const broken = (reason: string) => new GatewayError('openapi_broken', { file: from.name, reason });
      const [file = '', fragment = ''] = ref.split('#', 2);
      const pointer = decoded(fragment);
      if (pointer !== '' && !pointer.startsWith('/'))
        throw broken(`its reference ${ref} names an anchor; write it as a JSON Pointer such as #/components/schemas/Order`);
      const address = file === '' ? from.address : addressOf(file, from.address);
      if (file !== '' && isUrl(address) && !allowRemote && !origins.has(new URL(address).origin)) {
        const reason = `it refers to ${address}, and nothing is fetched that was not named`;
        throw new GatewayError('openapi_broken', {
          file: from.name,
          reason,
          fix: 'allow it with --allow-remote, or keep a copy beside the document',
        });
      }
      const document = file === '' ? from : await load(address, isUrl(address) ? maskUrls(address) : relative('', address));
      const value = valueAt(document.root, pointer);
      if (value === undefined) throw broken(`its reference ${ref} leads nowhere`);
      return { document, pointer, value };
    },
  };
}

export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text);
}

function addressOf(file: string, from: string): string {
  if (isUrl(file)) return new URL(file).href;
  return isUrl(from) ? new URL(file, from).href : resolve(dirname(from), decoded(file));
}

/** Without its percent escapes; as it is where a percent sign escapes nothing. */
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

async function parseAt(address: string, name: string): Promise<Document> {
  if (!isUrl(address)) return { address, name, root: await parseFile(address, name) };
  // The parser of the library reads files; what it would fetch by itself leaves out the hosts that a developer has at hand.
  const folder = await mkdtemp(join(tmpdir(), 'gateway-openapi-'));
  try {
    const path = join(folder, 'document.yaml');
    await writeFile(path, await download(address));
    return { address, name, root: await parseFile(path, name) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function parseFile(path: string, name: string): Promise<unknown> {
  const { parse } = await import('@readme/openapi-parser');
  try {
    return await parse(path);
  } catch (error) {
    const { message, ioErrorCode } = error as Error & { ioErrorCode?: string };
    const code = ioErrorCode ?? /\b(ENOENT|EISDIR|EACCES)\b/.exec(message)?.[1];
    const reason = code === undefined ? mistakeOf(message, path) : `it cannot be read: ${fileReason({ code, message })}`;
    throw new GatewayError('openapi_broken', { file: name, reason }, { cause: error });
  }
}

/** The words of the parser in one line, with the line and column but without its excerpt of the text. */
function mistakeOf(message: string, path: string): string {
  const [first = ''] = message.replaceAll(path, 'it').split('\n');
  if (first.endsWith('is not a valid JSON Schema')) return 'it is not an OpenAPI document: it holds no object';
  const words = first.replace(/^Error parsing it: /, '').replace(/:$/, '');
  return `it is neither YAML nor JSON: ${words.replace(/\((\d+):(\d+)\)/, '(line $1, column $2)')}`;
}

async function download(url: string): Promise<Uint8Array> {
  const { username, password } = new URL(url);
  const broken = (reason: string, fix: string, cause?: unknown) =>
    new GatewayError('openapi_broken', { file: maskUrls(url), reason, fix }, { cause });
  if (username !== '' || password !== '')
    throw broken('it is not fetched with credentials in its URL', 'fetch it yourself, and name the file');
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) });
    if (!response.ok) throw broken(`its server answered ${response.status}`, 'check the address');
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += (part as Uint8Array).byteLength;
      if (bytes > BYTES_MAX) throw broken(`it has more than ${BYTES_MAX} bytes`, 'check the address');
      parts.push(part as Uint8Array);
    }
    return Buffer.concat(parts);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    const { message, cause } = error as Error;
    const reason = networkReason(error) ?? (cause as Error | undefined)?.message ?? message;
    throw broken(`it cannot be fetched: ${reason}`, 'check the address', error);
  }
}
