import { clip } from '@gateway/plugin';
import { GatewayError } from '../errors/errors.js';
import { isObject } from '../json/json-value.js';
import { isPlain } from '../json/plain-text.js';
import { follow, type DocumentPlace, type ParsedDocument } from './references.js';
import { yielding } from '../process/slices.js';
import {
  jsonLengths,
  standaloneSchema,
  type StandaloneSchema,
  type ConversionWork,
} from './json-schema.js';

/** An event type declared by an OpenAPI document. */
export interface AnnouncedEventType {
  readonly summary: string;
  readonly description: string;
  readonly deprecated: boolean;
  readonly content_type: string | null;
  readonly schema: StandaloneSchema | null;
  /** The first example of the request body. */
  readonly example: unknown;
  /** The file and JSON Pointer of the operation. */
  readonly source: string;
}

const METHODS = ['post', 'put', 'patch', 'delete', 'get', 'head', 'options', 'trace'] as const;
const NAME_LENGTH_MAX = 512;

interface Gathering {
  readonly document: ParsedDocument;
  readonly version: '3.0' | '3.1';
  readonly work: ConversionWork;
  readonly add: (name: string, type: AnnouncedEventType) => void;
}

interface ExtractOptions {
  /**
   * The maximum total size of schemas and examples, in characters of JSON. Each event type has its
   * own copy of the schemas it references.
   */
  readonly maxCharacters?: number;
}

/**
 * Returns the event types in document order, from `webhooks` (3.1), `x-webhooks` (3.0) and
 * callbacks.
 * @throws GatewayError `openapi_broken` if a document is not a usable OpenAPI 3 document or
 *   `maxCharacters` is exceeded; `event_type_twice` if two event types have the same name
 */
export async function extractEventTypes(
  documents: readonly ParsedDocument[],
  { maxCharacters = Infinity }: ExtractOptions = {},
): Promise<ReadonlyMap<string, AnnouncedEventType>> {
  const types = new Map<string, AnnouncedEventType>();
  const [lengthOf, pause] = [jsonLengths(), yielding()];
  let characters = 0;
  for (const document of documents) {
    const spend = (more: number) => {
      characters += more;
      if (characters <= maxCharacters) return;
      const reason = `the schemas and examples of its event types, each with what it refers to, have more than ${maxCharacters} characters`;
      throw new GatewayError('openapi_broken', {
        file: document.name,
        reason,
        fix: 'import its webhooks in several parts',
      });
    };
    const add = (name: string, type: AnnouncedEventType) => {
      const before = types.get(name);
      if (before)
        throw new GatewayError('event_type_twice', {
          name,
          first: before.source,
          second: type.source,
        });
      types.set(named(name, document), type);
      spend(lengthOf(type.example));
    };
    const work = { spend, pause, lengthOf };
    await gather({ document, version: versionOf(document), work, add });
  }
  return types;
}

function versionOf({ name, root }: ParsedDocument): '3.0' | '3.1' {
  const broken = (reason: string, fix?: string) =>
    new GatewayError('openapi_broken', { file: name, reason, ...(fix ? { fix } : {}) });
  if (!isObject(root)) throw broken('it is not an OpenAPI document: it holds no object');
  const { openapi, swagger } = root;
  if (swagger !== undefined) {
    const fix = 'convert it to OpenAPI 3, as https://converter.swagger.io does';
    throw broken(`it is Swagger ${JSON.stringify(swagger)}, which has no webhooks`, fix);
  }
  if (openapi === undefined) throw broken('it is not an OpenAPI document: it has no field openapi');
  // YAML parses the version 3.1 as a number.
  const version = typeof openapi === 'number' ? openapi.toFixed(1) : text(openapi);
  if (/^3\.0(\.|$)/.test(version)) return '3.0';
  if (/^3\.[1-9]/.test(version)) return '3.1';
  throw broken(
    `its version ${JSON.stringify(openapi)} is not known`,
    'versions 3.0 and 3.1 are read',
  );
}

async function gather(gathering: Gathering): Promise<void> {
  const { document } = gathering;
  const root = document.root as Record<string, unknown>;
  for (const section of ['webhooks', 'x-webhooks'] as const) {
    for (const [name, value] of entries(root[section])) {
      await addPathItem(name, { pointer: `/${section}/${escaped(name)}`, value }, gathering);
    }
  }
  for (const [path, value] of entries(root['paths'])) {
    await gathering.work.pause();
    const item = follow({ pointer: `/paths/${escaped(path)}`, value }, document);
    for (const [method, operation] of operationsOf(item))
      await addCallbacks(path, method, operation, gathering);
  }
}

async function addCallbacks(
  path: string,
  method: string,
  operation: DocumentPlace,
  gathering: Gathering,
): Promise<void> {
  const { operationId, callbacks } = operation.value as Record<string, unknown>;
  const segments = path.replaceAll(/[{}]/g, '').split('/');
  const prefix = text(operationId) || [method, ...segments].filter(Boolean).join('.');
  for (const [name, value] of entries(callbacks)) {
    const callback = follow(
      within(operation, `/callbacks/${escaped(name)}`, value),
      gathering.document,
    );
    const items = entries(callback.value).filter(([expression]) => !expression.startsWith('x-'));
    for (const [at, [expression, item]] of items.entries()) {
      const suffix = at === 0 ? '' : `.${at + 1}`;
      await addPathItem(
        `${prefix}.${name}${suffix}`,
        within(callback, `/${escaped(expression)}`, item),
        gathering,
      );
    }
  }
}

/**
 * Adds an event type for each operation of a path item. The first operation with a request body, or
 * else the first one, gets the plain name; the others get their method appended.
 */
async function addPathItem(
  name: string,
  place: DocumentPlace,
  gathering: Gathering,
): Promise<void> {
  await gathering.work.pause();
  const item = follow(place, gathering.document);
  const operations = operationsOf(item);
  const first = operations.findIndex(([, { value }]) => isObject(value) && 'requestBody' in value);
  for (const [at, [method, operation]] of operations.entries()) {
    gathering.add(
      at === Math.max(0, first) ? name : `${name}.${method}`,
      await announced(item, operation, gathering),
    );
  }
}

async function announced(
  item: DocumentPlace,
  operation: DocumentPlace,
  gathering: Gathering,
): Promise<AnnouncedEventType> {
  const { summary, description, deprecated, requestBody } = operation.value as Record<
    string,
    unknown
  >;
  const about = item.value as Record<string, unknown>;
  const body =
    requestBody === undefined
      ? undefined
      : follow(within(operation, '/requestBody', requestBody), gathering.document);
  const { content, description: ofBody } = (body?.value ?? {}) as Record<string, unknown>;
  const media = entries(content);
  const [type, chosen] =
    media.find(([it]) => /^application\/json\b/i.test(it)) ??
    media.find(([it]) => /\+json\b/i.test(it)) ??
    media[0] ??
    [];
  const schema = isObject(chosen) ? chosen['schema'] : undefined;
  return {
    summary: text(summary) || text(about['summary']),
    description: text(description) || text(about['description']) || text(ofBody),
    deprecated: deprecated === true,
    content_type: type ?? null,
    schema:
      schema === undefined
        ? null
        : await standaloneSchema(
            within(body!, `/content/${escaped(type!)}/schema`, schema),
            gathering,
          ),
    example: isObject(chosen)
      ? exampleOf(within(body!, `/content/${escaped(type!)}`, chosen), gathering)
      : null,
    source: `${gathering.document.name}#${operation.pointer}`,
  };
}

/**
 * Returns the first example of a body or, failing that, of its schema. Returns null if there is
 * none:
 * https://spec.openapis.org/oas/v3.1.1.html#media-type-object
 */
function exampleOf(media: DocumentPlace, { document }: Gathering): unknown {
  const { example, examples, schema } = media.value as Record<string, unknown>;
  if (example !== undefined) return example;
  const [named] = entries(examples);
  if (named) {
    const { value } = follow(within(media, `/examples/${escaped(named[0])}`, named[1]), document);
    return (isObject(value) ? value['value'] : undefined) ?? null;
  }
  if (schema === undefined) return null;
  const { value } = follow(within(media, '/schema', schema), document);
  if (!isObject(value)) return null;
  return (
    value['example'] ??
    (Array.isArray(value['examples']) ? (value['examples'] as unknown[])[0] : undefined) ??
    null
  );
}

function operationsOf(item: DocumentPlace): [method: string, operation: DocumentPlace][] {
  const { value } = item;
  if (!isObject(value)) return [];
  return METHODS.filter((method) => isObject(value[method])).map((method) => [
    method,
    within(item, `/${method}`, value[method]),
  ]);
}

function within({ pointer }: DocumentPlace, below: string, value: unknown): DocumentPlace {
  return { pointer: pointer + below, value };
}

function named(name: string, { name: file }: ParsedDocument): string {
  if (name !== '' && name.length <= NAME_LENGTH_MAX && isPlain(name)) return name;
  const reason = `its webhook ${JSON.stringify(clip(name, 60))} cannot be an event type: a name has 1 to ${NAME_LENGTH_MAX} characters and no control characters`;
  throw new GatewayError('openapi_broken', { file, reason });
}

function entries(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.trim() : '';
}
