import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { GatewayError } from '../errors/errors.js';
import type { InvalidField } from '../errors/error-row.js';
import { isObject } from '../json/json-value.js';
import { MASK } from '../logging/redaction.js';

/** Version 2 text is bound to its place; version 1 text can be opened anywhere. */
const PREFIX = 'sealed:v2:';
const UNBOUND_PREFIX = 'sealed:v1:';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** A row field or cookie. Sealed text cannot be opened in another place. */
export type SecretPlace = readonly [
  table:
    | 'endpoints'
    | 'sources'
    | 'notification_channels'
    | 'shards'
    | 'idempotent_requests'
    | 'cookies',
  id: string,
  ...field: string[],
];

export type Open = (sealed: string, place: SecretPlace) => string;

export type Sealer = Readonly<ReturnType<typeof sealer>>;

/**
 * @param encryptionKey 32 bytes in base64
 * @throws GatewayError `encryption_key_missing` or `encryption_key_invalid`
 */
export function sealer(encryptionKey: string | undefined) {
  const key = keyBytes(encryptionKey);
  /**
   * AES-256-GCM with a fresh nonce, bound to the place: `sealed:v2:` followed by the nonce, tag and
   * ciphertext in base64url.
   */
  const seal = (text: string, place: SecretPlace): string => {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(
      boundTo(place),
    );
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return PREFIX + Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url');
  };
  /**
   * @throws GatewayError `not_unsealable` if the text was changed, is not sealed, or was sealed
   *   with another key or for another place
   */
  const open: Open = (sealed, place) => {
    if (!isSealed(sealed)) throw new GatewayError('not_unsealable');
    const bytes = Buffer.from(sealed.slice(PREFIX.length), 'base64url');
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      if (sealed.startsWith(PREFIX)) decipher.setAAD(boundTo(place));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      return (
        decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') +
        decipher.final('utf8')
      );
    } catch (cause) {
      throw new GatewayError('not_unsealable', {}, { cause });
    }
  };
  const bind = (sealed: string, place: SecretPlace): string =>
    isBound(sealed) ? sealed : seal(open(sealed, place), place);
  return { seal, open, bind };
}

const boundTo = (place: SecretPlace) => Buffer.from(JSON.stringify(place));

/** In either version. Does not decrypt the text. */
export function isSealed(text: string): boolean {
  return isBound(text) || text.startsWith(UNBOUND_PREFIX);
}

/** Does not decrypt the text. */
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

/**
 * `"x-secret": true` marks secrets, and `"x-address": true` marks fields that determine where
 * secrets are sent. `"x-inline"` names a member whose secrets are sealed as if they were beside it.
 */
export type ConnectionSchema = Readonly<Record<string, unknown>>;
export type ConnectionValue = Readonly<Record<string, unknown>>;

/** Skips missing nested objects. A field for which `change` returns undefined is removed. */
function mapSecrets(
  value: ConnectionValue,
  schema: ConnectionSchema,
  change: (
    secret: string | undefined,
    path: readonly string[],
    sealedAt: readonly string[],
  ) => string | undefined,
  path: readonly string[] = [],
  sealedAt = path,
): ConnectionValue {
  const result: Record<string, unknown> = { ...value };
  for (const [name, inner] of Object.entries(
    (schema['properties'] as Record<string, ConnectionSchema> | undefined) ?? {},
  )) {
    const present = value[name];
    if (inner['x-secret'] === true) {
      if (present === null) delete result[name];
      if (present !== undefined && typeof present !== 'string') continue;
      const changed = change(present, [...path, name], [...sealedAt, name]);
      if (changed === undefined) delete result[name];
      else result[name] = changed;
    } else if (isObject(present)) {
      const at = schema['x-inline'] === name ? sealedAt : [...sealedAt, name];
      result[name] = mapSecrets(present, inner, change, [...path, name], at);
    }
  }
  return result;
}

export function openConnection(
  sealed: ConnectionValue,
  schema: ConnectionSchema,
  sourceId: string,
  open: Open,
): ConnectionValue {
  return mapSecrets(
    sealed,
    schema,
    (secret, _, sealedAt) => secret && open(secret, ['sources', sourceId, ...sealedAt]),
  );
}

export function maskConnection(sealed: ConnectionValue, schema: ConnectionSchema): ConnectionValue {
  return mapSecrets(sealed, schema, (secret) => secret && MASK);
}

/**
 * An unchanged secret keeps its sealed text, because agents restart a source whose record has
 * changed.
 */
export function sealConnection(
  plain: ConnectionValue,
  schema: ConnectionSchema,
  sourceId: string,
  { seal, bind }: Pick<Sealer, 'seal' | 'bind'>,
  stored?: { sealed: ConnectionValue; plain: ConnectionValue },
): ConnectionValue {
  return mapSecrets(plain, schema, (secret, path, sealedAt) => {
    if (secret === undefined) return undefined;
    const place: SecretPlace = ['sources', sourceId, ...sealedAt];
    return stored && memberAt(stored.plain, path) === secret
      ? bind(memberAt(stored.sealed, path) as string, place)
      : seal(secret, place);
  });
}

/**
 * Restores stored secrets that are masked or omitted in the new connection, and removes those set
 * to null. Reports masks without a stored secret. Also reports stored secrets that would be sent to
 * a new address, because a user may edit a connection without knowing its secrets.
 */
export function keepSecrets(
  given: ConnectionValue,
  schema: ConnectionSchema,
  stored: ConnectionValue | undefined,
  prefix: string,
) {
  const problems: InvalidField[] = [];
  const moved = stored && changedAddress(given, stored, schema);
  const connection = mapSecrets(given, schema, (secret, path) => {
    if (secret !== undefined && secret !== MASK) return secret;
    const kept = stored && memberAt(stored, path);
    const report = (sentence: string) =>
      problems.push({ field: [prefix, ...path].filter(Boolean).join('.'), sentence });
    if (typeof kept === 'string') {
      if (moved !== undefined)
        report(
          `is not sent to another address: ${prefix}.${moved} changes; give the secret again, or null to remove it`,
        );
      return kept;
    }
    if (secret === MASK)
      report('is the mask of a secret, but none is stored; give the secret itself');
    return secret;
  });
  return { connection, problems };
}

/** The first one. If the schema marks none, every non-secret field counts as an address. */
function changedAddress(
  given: ConnectionValue,
  stored: ConnectionValue,
  schema: ConnectionSchema,
): string | undefined {
  const isMarked = JSON.stringify(schema).includes('"x-address":true');
  const [after, before] = [given, stored].map(
    (value) => new Map(addressOf(value, schema, isMarked)),
  );
  return [...new Set([...after!.keys(), ...before!.keys()])].find(
    (name) => !isDeepStrictEqual(after!.get(name), before!.get(name)),
  );
}

function addressOf(
  value: ConnectionValue,
  schema: ConnectionSchema,
  isMarked: boolean,
  path: readonly string[] = [],
): [name: string, value: unknown][] {
  const properties = (schema['properties'] ?? {}) as Record<string, ConnectionSchema>;
  return [...new Set([...Object.keys(properties), ...Object.keys(value)])].flatMap((name) => {
    const { 'x-secret': isSecret, 'x-address': isAddress, ...inner } = properties[name] ?? {};
    const present = value[name] ?? inner['default'];
    if (isSecret === true) return [];
    if (isAddress === true || (!isMarked && !inner['properties']))
      return [[[...path, name].join('.'), present]];
    return addressOf(isObject(present) ? present : {}, inner, isMarked, [...path, name]);
  });
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) =>
      typeof at === 'object' && at !== null ? (at as ConnectionValue)[name] : undefined,
    value,
  );
}
