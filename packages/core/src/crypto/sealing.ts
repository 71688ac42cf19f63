import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { GatewayError } from '../errors/errors.js';
import type { InvalidField } from '../errors/error-row.js';
import { isObject } from '../json/json-value.js';
import { MASK } from '../logging/redaction.js';

/** What is sealed now opens only in its place; texts of the first version open anywhere. */
const PREFIX = 'sealed:v2:';
const UNBOUND_PREFIX = 'sealed:v1:';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Where a sealed text is kept: in a row, or by a browser in a cookie. A text that is moved to another place does not open there. */
export type Place = readonly [table: 'endpoints' | 'sources' | 'idempotent_requests' | 'cookies', id: string, ...field: string[]];

/** Opens a text that is stored in this place. */
export type Open = (sealed: string, place: Place) => string;

export type Sealer = Readonly<ReturnType<typeof sealer>>;

/** Encrypts secrets for storage with a key of 32 bytes in base64; throws `encryption_key_missing`, `encryption_key_invalid`. */
export function sealer(encryptionKey: string | undefined) {
  const key = keyBytes(encryptionKey);
  /** AES-256-GCM with a fresh nonce, bound to the place: `sealed:v2:` and base64url of nonce, tag and ciphertext. */
  const seal = (text: string, place: Place): string => {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(boundTo(place));
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return PREFIX + Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url');
  };
  /** Throws `not_unsealable` if the text was sealed with another key or for another place, was changed, or is not sealed. */
  const open: Open = (sealed, place) => {
    if (!isSealed(sealed)) throw new GatewayError('not_unsealable');
    const bytes = Buffer.from(sealed.slice(PREFIX.length), 'base64url');
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
      if (sealed.startsWith(PREFIX)) decipher.setAAD(boundTo(place));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      return decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch (cause) {
      throw new GatewayError('not_unsealable', {}, { cause });
    }
  };
  /** The sealed text as it is, or bound to its place if it was not. Throws as `open` does. */
  const bind = (sealed: string, place: Place): string => (isBound(sealed) ? sealed : seal(open(sealed, place), place));
  return { seal, open, bind };
}

const boundTo = (place: Place) => Buffer.from(JSON.stringify(place));

/** True for text with a prefix that `seal` writes or wrote. Does not decrypt. */
export function isSealed(text: string): boolean {
  return isBound(text) || text.startsWith(UNBOUND_PREFIX);
}

/** True for text that opens only in its place. Does not decrypt. */
export function isBound(text: string): boolean {
  return text.startsWith(PREFIX);
}

function keyBytes(encryptionKey: string | undefined): Buffer {
  const text = encryptionKey?.trim();
  if (!text) throw new GatewayError('encryption_key_missing');
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) throw new GatewayError('encryption_key_invalid');
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32) throw new GatewayError('encryption_key_invalid', { bytes: key.length });
  return key;
}

/** JSON Schema of a connection: string fields with `"x-secret": true` are secrets, fields with `"x-address": true` say where secrets are sent. */
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

/** The connection of a source as its plugin gets it. */
export function openConnection(sealed: Value, schema: Schema, sourceId: string, open: Open): Value {
  return mapSecrets(sealed, schema, (secret, path) => secret && open(secret, ['sources', sourceId, ...path]));
}

/** The connection as responses show it. */
export function maskConnection(sealed: Value, schema: Schema): Value {
  return mapSecrets(sealed, schema, (secret) => secret && MASK);
}

/** Seals a connection for storage. An unchanged secret keeps its sealed text, because agents restart a source whose record changes. */
export function sealConnection(
  plain: Value,
  schema: Schema,
  sourceId: string,
  { seal, bind }: Pick<Sealer, 'seal' | 'bind'>,
  stored?: { sealed: Value; plain: Value },
): Value {
  return mapSecrets(plain, schema, (secret, path) => {
    if (secret === undefined) return undefined;
    const place: Place = ['sources', sourceId, ...path];
    return stored && memberAt(stored.plain, path) === secret ? bind(memberAt(stored.sealed, path) as string, place) : seal(secret, place);
  });
}

/**
 * Restores stored secrets where a change sends their mask or omits them, and removes them where it sends null. Reports masks without a stored secret, and
 * secrets that would go to another address than they were stored for: whoever may change a connection need not know them.
 */
export function keepSecrets(given: Value, schema: Schema, stored: Value | undefined, prefix: string) {
  const problems: InvalidField[] = [];
  const moved = stored && changedAddress(given, stored, schema);
  const connection = mapSecrets(given, schema, (secret, path) => {
    if (secret !== undefined && secret !== MASK) return secret;
    const kept = stored && memberAt(stored, path);
    const report = (sentence: string) => problems.push({ field: [prefix, ...path].join('.'), sentence });
    if (typeof kept === 'string') {
      if (moved !== undefined)
        report(`is not sent to another address: ${prefix}.${moved} changes; give the secret again, or null to remove it`);
      return kept;
    }
    if (secret === MASK) report('is the mask of a secret, but none is stored; give the secret itself');
    return secret;
  });
  return { connection, problems };
}

/** The first field of the address that differs. Of a schema that marks none, every field that is no secret belongs to the address. */
function changedAddress(given: Value, stored: Value, schema: Schema): string | undefined {
  const isMarked = JSON.stringify(schema).includes('"x-address":true');
  const [after, before] = [given, stored].map((value) => new Map(addressOf(value, schema, isMarked)));
  return [...new Set([...after!.keys(), ...before!.keys()])].find((name) => !isDeepStrictEqual(after!.get(name), before!.get(name)));
}

function addressOf(value: Value, schema: Schema, isMarked: boolean, path: readonly string[] = []): [name: string, value: unknown][] {
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>;
  return [...new Set([...Object.keys(properties), ...Object.keys(value)])].flatMap((name) => {
    const { 'x-secret': isSecret, 'x-address': isAddress, ...inner } = properties[name] ?? {};
    const present = value[name] ?? inner['default'];
    if (isSecret === true) return [];
    if (isAddress === true || (!isMarked && !inner['properties'])) return [[[...path, name].join('.'), present]];
    return addressOf(isObject(present) ? present : {}, inner, isMarked, [...path, name]);
  });
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (typeof at === 'object' && at !== null ? (at as Value)[name] : undefined), value);
}
