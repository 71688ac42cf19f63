import { isObject } from '../json/json-value.js';
import { follow, refer, type DocumentPlace, type ParsedDocument } from './references.js';

/** A JSON Schema 2020-12 without references to anything outside it. */
export type StandaloneSchema = Readonly<Record<string, unknown>>;

/**
 * Keywords whose values contain schemas. Other values are copied unchanged, because a property may
 * be named `nullable` or `$ref`.
 */
const MAPS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
]);
const LISTS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const SINGLES = new Set([
  ...['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'],
  ...['unevaluatedItems', 'unevaluatedProperties', 'contentSchema'],
]);
/**
 * Omitted keywords. Validators do not know them, and `$id` would change the base URI of the new
 * references.
 */
const LEFT_OUT = new Set(['xml', 'externalDocs', 'discriminator', 'example', 'nullable', '$id']);

/** Bounds the work for a document, whatever its references multiply. */
export interface ConversionWork {
  /** Counts characters of JSON before they are copied. Throws if there are too many. */
  readonly spend: (characters: number) => void;
  /** Yields to the event loop now and then. */
  readonly pause: () => Promise<void>;
  /** Returns the length of a value as JSON, without the backslashes of escapes. */
  readonly lengthOf: (value: unknown) => number;
}

/** Returns a function that computes lengths in time linear in the document, however often it asks. */
export function jsonLengths(): ConversionWork['lengthOf'] {
  const known = new WeakMap<object, number>();
  return function lengthOf(value) {
    if (typeof value === 'string') return value.length + 2;
    if (typeof value !== 'object' || value === null) return String(value).length;
    let length = known.get(value);
    if (length !== undefined) return length;
    length = 2;
    if (Array.isArray(value)) for (const element of value) length += lengthOf(element) + 1;
    else
      for (const name of Object.keys(value))
        length += name.length + 4 + lengthOf((value as Record<string, unknown>)[name]);
    known.set(value, length);
    return length;
  };
}

/**
 * Converts a schema to a standalone one. Moves referenced schemas to `$defs`, so that recursive
 * schemas stay recursive.
 * @param version the OpenAPI version; 3.0 uses an older schema dialect
 * @throws GatewayError `openapi_broken` if a reference cannot be resolved; what `work.spend` throws
 */
export async function standaloneSchema(
  schema: DocumentPlace,
  {
    document,
    version,
    work,
  }: {
    readonly document: ParsedDocument;
    readonly version: '3.0' | '3.1';
    readonly work: ConversionWork;
  },
): Promise<StandaloneSchema> {
  const names = new Map<string, string>();
  const waiting: [name: string, place: DocumentPlace][] = [];
  const root = follow(schema, document, { alone: true });
  const freeName = freeNames(
    isObject(root.value) && isObject(root.value['$defs']) ? Object.keys(root.value['$defs']) : [],
  );

  function referred(ref: string): string {
    const place = refer(ref, document);
    if (place.pointer === root.pointer) return '#';
    let name = names.get(place.pointer);
    if (name === undefined) {
      name = freeName(place.pointer);
      names.set(place.pointer, name);
      waiting.push([name, place]);
    }
    return `#/$defs/${name}`;
  }

  async function converted(value: unknown): Promise<unknown> {
    await work.pause();
    if (!isObject(value)) return value;
    work.spend(2);
    const { $ref: ref } = value;
    // In OpenAPI 3.0, siblings of a reference have no effect.
    if (typeof ref === 'string' && version === '3.0') return { $ref: referred(ref) };
    const result: Record<string, unknown> = {};
    for (const [word, it] of Object.entries(value)) {
      if (LEFT_OUT.has(word) || word.startsWith('x-')) continue;
      work.spend(word.length + 4);
      if (word === '$ref' && typeof it === 'string') result[word] = referred(it);
      else if (MAPS.has(word) && isObject(it))
        result[word] = Object.fromEntries(await each(Object.entries(it)));
      else if (LISTS.has(word) && Array.isArray(it))
        result[word] = (await each(it.entries())).map(([, schema]) => schema);
      else if (SINGLES.has(word)) result[word] = await converted(it);
      else {
        work.spend(work.lengthOf(it));
        result[word] = it;
      }
    }
    if ('example' in value && !('examples' in value)) result['examples'] = [value['example']];
    return version === '3.0' ? modernised(result, value['nullable'] === true) : result;
  }

  async function each<Key>(
    schemas: Iterable<readonly [Key, unknown]>,
  ): Promise<(readonly [Key, unknown])[]> {
    const list: (readonly [Key, unknown])[] = [];
    for (const [key, it] of schemas) {
      work.spend(typeof key === 'string' ? key.length + 4 : 1);
      list.push([key, await converted(it)]);
    }
    return list;
  }

  const whole = await converted(root.value);
  const defs: Record<string, unknown> = {};
  // Grows while it is read.
  for (const [name, { value }] of waiting) defs[name] = await converted(value);
  const { $schema: _, ...words } = isObject(whole) ? whole : whole === false ? { not: {} } : {};
  const before = isObject(words['$defs']) ? words['$defs'] : {};
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...words,
    ...(Object.keys(defs).length > 0 ? { $defs: { ...before, ...defs } } : {}),
  };
}

const ENCODINGS: Readonly<Record<string, object>> = {
  byte: { contentEncoding: 'base64' },
  binary: { contentMediaType: 'application/octet-stream' },
};

/**
 * Translates OpenAPI 3.0 keywords that differ in JSON Schema 2020-12:
 * https://spec.openapis.org/oas/v3.0.4.html#schema-object
 */
function modernised(schema: Record<string, unknown>, nullable: boolean): Record<string, unknown> {
  const result = { ...schema };
  for (const [bound, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    const isExclusive = result[exclusive];
    if (typeof isExclusive !== 'boolean') continue;
    delete result[exclusive];
    if (!isExclusive || !(bound in result)) continue;
    result[exclusive] = result[bound];
    delete result[bound];
  }
  const encoding = ENCODINGS[String(result['format'])];
  if (encoding) delete Object.assign(result, encoding)['format'];
  if (!nullable) return result;
  if (typeof result['type'] !== 'string') return { anyOf: [result, { type: 'null' }] };
  const { enum: values } = result;
  return {
    ...result,
    type: [result['type'], 'null'],
    ...(Array.isArray(values) && !values.includes(null)
      ? { enum: [...(values as unknown[]), null] }
      : {}),
  };
}

/** Returns a function that names schemas by their pointers, each time with a name not yet taken. */
function freeNames(own: readonly string[]): (pointer: string) => string {
  const taken = new Set(own);
  const counts = new Map<string, number>();
  return (pointer) => {
    const last = pointer.slice(pointer.lastIndexOf('/') + 1) || 'schema';
    const plain = last.replaceAll(/[^A-Za-z0-9._-]/g, '_');
    let name;
    do {
      const count = (counts.get(plain) ?? 0) + 1;
      counts.set(plain, count);
      name = count === 1 ? plain : `${plain}_${count}`;
    } while (taken.has(name));
    taken.add(name);
    return name;
  };
}
