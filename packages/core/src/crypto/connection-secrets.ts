import type { InvalidField } from '../errors/error-row.js';
import { isObject } from '../json/json-object.js';
import { MASK } from '../logging/redaction.js';

/** JSON Schema of a connection: string fields with `"x-secret": true` are secrets. */
type Schema = Readonly<Record<string, unknown>>;
type Value = Readonly<Record<string, unknown>>;

/** Calls `change` for every secret field of the schema whose object is present; undefined removes the field. */
function mapSecrets(
  value: Value,
  schema: Schema,
  change: (secret: string | undefined, path: readonly string[]) => string | undefined,
  path: readonly string[] = [],
): Value {
  const result: Record<string, unknown> = { ...value };
  for (const [name, inner] of Object.entries((schema['properties'] as Record<string, Schema> | undefined) ?? {})) {
    const present = value[name];
    if (inner['x-secret'] === true) {
      if (present === null) delete result[name];
      if (present !== undefined && typeof present !== 'string') continue;
      const changed = change(present, [...path, name]);
      if (changed === undefined) delete result[name];
      else result[name] = changed;
    } else if (isObject(present)) {
      result[name] = mapSecrets(present, inner, change, [...path, name]);
    }
  }
  return result;
}

/** The connection as source plugins get it. */
export function openConnection(sealed: Value, schema: Schema, open: (sealed: string) => string): Value {
  return mapSecrets(sealed, schema, (secret) => secret && open(secret));
}

/** The connection as responses show it. */
export function maskConnection(sealed: Value, schema: Schema): Value {
  return mapSecrets(sealed, schema, (secret) => secret && MASK);
}

/** Seals a connection for storage. An unchanged secret keeps its sealed text, because agents restart a source whose record changes. */
export function sealConnection(
  plain: Value,
  schema: Schema,
  seal: (text: string) => string,
  stored?: { sealed: Value; plain: Value },
): Value {
  return mapSecrets(plain, schema, (secret, path) => {
    if (secret === undefined) return undefined;
    return stored && memberAt(stored.plain, path) === secret ? (memberAt(stored.sealed, path) as string) : seal(secret);
  });
}

/** Restores stored secrets where a change sends their mask or omits them, removes them where it sends null, and reports masks without a stored secret. */
export function keepSecrets(given: Value, schema: Schema, stored: Value | undefined, prefix: string) {
  const problems: InvalidField[] = [];
  const connection = mapSecrets(given, schema, (secret, path) => {
    if (secret !== undefined && secret !== MASK) return secret;
    const kept = stored && memberAt(stored, path);
    if (typeof kept === 'string') return kept;
    const sentence = 'is the mask of a secret, but none is stored; give the secret itself';
    if (secret === MASK) problems.push({ field: [prefix, ...path].join('.'), sentence });
    return secret;
  });
  return { connection, problems };
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (typeof at === 'object' && at !== null ? (at as Value)[name] : undefined), value);
}
