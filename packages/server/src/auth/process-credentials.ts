import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ApiKeyRow } from '@gateway/store/config';

/** A process credential grants access to every organisation and project. */
export interface ProcessCaller {
  readonly type: 'process';
  /** The same in every process. Does not reveal the credential. */
  readonly id: string;
}

export type Caller = ApiKeyRow | ProcessCaller;

export interface ProcessCredentials {
  readonly native: boolean;
  readonly basic: boolean;
  readonly how: string;
  /** https://www.rfc-editor.org/rfc/rfc9110#name-www-authenticate */
  readonly challenge: string;
  ofBearer(key: string): ProcessCaller | undefined;
  ofBasic(pair: string): ProcessCaller | undefined;
}

const KEY_MIN = 16;
const PASSWORD_SHORT = 12;
const API_KEYS = { setting: 'server.auth.api_keys', flag: '--api-auth', env: 'GATEWAY_API_AUTH' };
const BASIC = { setting: 'server.auth.basic', flag: '--basic-auth', env: 'GATEWAY_BASIC_AUTH' };

/** Throws `credential_invalid`, or `no_credentials` if the API would be unreachable. */
export function processCredentials(config: Config, log: Log): ProcessCredentials {
  const { api_keys: keys, basic: pairs, native } = config.server.auth;
  keys.forEach((key, at) => checkKey(key, at + 1));
  pairs.forEach((pair, at) => checkPair(pair, at + 1, log));
  if (!native && keys.length === 0 && pairs.length === 0) throw new GatewayError('no_credentials');
  const digest = digester(derivedKey(config.encryption_key, 'credentials of the process'));
  const bearer = keys.map((key) => digest(`bearer ${key}`));
  const basic = pairs.map((pair) => digest(`basic ${pair}`));
  return {
    native,
    basic: basic.length > 0,
    how: usage({ native, hasKeys: keys.length > 0, hasPairs: pairs.length > 0 }),
    challenge: [
      ...(native || bearer.length > 0 ? ['Bearer'] : []),
      ...(basic.length > 0 ? ['Basic realm="gateway", charset="UTF-8"'] : []),
    ].join(', '),
    ofBearer: (key) => (bearer.length === 0 ? undefined : among(bearer, digest(`bearer ${key}`))),
    ofBasic: (pair) => among(basic, digest(`basic ${pair}`)),
  };
}

/**
 * The same in every process for one purpose, and does not reveal the encryption key. In Node 24,
 * `createHmac` takes 3 µs with a key object and 16 µs with bytes.
 */
export function derivedKey(encryptionKey: string | undefined, purpose: string): KeyObject {
  const bytes = Buffer.from((encryptionKey ?? '').trim(), 'base64');
  return createSecretKey(createHmac('sha256', bytes).update(purpose).digest());
}

/**
 * Digests have equal lengths, so their comparison takes constant time and does not reveal a
 * credential's length.
 */
function digester(key: KeyObject): (text: string) => Buffer {
  return (text) => createHmac('sha256', key).update(text).digest();
}

/**
 * Compares all known digests, even after a match, so that the time does not reveal which one
 * matched.
 */
function among(known: readonly Buffer[], given: Buffer): ProcessCaller | undefined {
  const matches = known.filter((it) => timingSafeEqual(it, given));
  return matches.length > 0 ? { type: 'process', id: given.toString('hex', 0, 12) } : undefined;
}

function usage({
  native,
  hasKeys,
  hasPairs,
}: {
  native: boolean;
  hasKeys: boolean;
  hasPairs: boolean;
}): string {
  const keys = [
    ...(native ? ['a key from `gateway bootstrap` or from a new project'] : []),
    ...(hasKeys ? ['a key of this process (--api-auth)'] : []),
  ];
  return `send ${[
    ...(keys.length > 0 ? [`\`Authorization: Bearer <api key>\`, ${keys.join(' or ')}`] : []),
    ...(hasPairs
      ? [
          '`Authorization: Basic <username:password in base64>`, credentials of this process (--basic-auth)',
        ]
      : []),
  ].join('; or ')}`;
}

function checkKey(key: string, number: number): void {
  const invalid = (reason: string) =>
    new GatewayError('credential_invalid', {
      ...API_KEYS,
      number,
      reason,
      fix: 'generate one with `openssl rand -hex 32`',
    });
  if (key.length < KEY_MIN)
    throw invalid(`has ${key.length} characters; an API key has at least ${KEY_MIN}`);
  if (!/^[!-~]+$/.test(key))
    throw invalid(
      'contains spaces or non-ASCII characters, which an Authorization header cannot contain',
    );
}

function checkPair(pair: string, number: number, log: Log): void {
  const invalid = (reason: string) =>
    new GatewayError('credential_invalid', {
      ...BASIC,
      number,
      reason,
      fix: 'give <username>:<password>',
    });
  const [, username, password = ''] = /^([^:]*):(.*)$/s.exec(pair) ?? [];
  if (username === undefined) throw invalid('has no colon between username and password');
  if (username === '') throw invalid('has no username before its colon');
  if (password === '') throw invalid('has no password after its colon');
  if (password.length < PASSWORD_SHORT) {
    log.warn(
      { entry: number },
      `A password of ${BASIC.setting} has fewer than ${PASSWORD_SHORT} characters and can be guessed; it opens every organisation.`,
    );
  }
}
