import { Type, type Static } from '@sinclair/typebox';
import type { InvalidField } from '@gateway/core/errors';
import { isObject, own } from '@gateway/core/json';
import { named, object, oneOf, optional } from '../http/schema.js';
import { HANDSHAKES } from './handshakes.js';
import { PROVIDERS } from './providers.js';
import { keyOf, secretOf } from './secrets.js';

const secret = (description: string, maxLength = 512) =>
  Type.String({ minLength: 1, maxLength, 'x-secret': true, description });
export const HeaderName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
  'x-sentence': 'must be a header name',
});

/** If the type changes, the secret is required again. */
export const verifierSchema = object({
  type: oneOf(
    [
      'noop',
      'basic_auth',
      'api_key',
      'hmac',
      ...(Object.keys(PROVIDERS) as (keyof typeof PROVIDERS)[]),
    ],
    {
      'x-address': true,
      description:
        '`noop` accepts every request; the last ones are signatures of providers, which need `secret` alone.',
    },
  ),
  ...optional({
    secret: secret('The signing secret of the provider.'),
    basic_auth: object({
      username: Type.String({ minLength: 1, maxLength: 200 }),
      password: Type.Optional(secret('')),
    }),
    api_key: object({ header_name: HeaderName, header_value: Type.Optional(secret('', 4096)) }),
    hmac: object({
      header: HeaderName,
      hash: oneOf(['SHA1', 'SHA256', 'SHA512']),
      encoding: oneOf(['hex', 'base64']),
      secret: Type.Optional(secret('')),
    }),
    handshake: object(
      {
        type: oneOf(Object.keys(HANDSHAKES)),
        token: Type.Optional(
          secret(
            'The expected `hub.verify_token`: required for `hub_challenge`, optional for `websub`.',
          ),
        ),
      },
      {
        description:
          'The request by which the provider checks the URL. It is answered and makes no event.',
      },
    ),
  }),
});
export const Verifier = named('Verifier', verifierSchema);

export type VerifierFields = Static<typeof Verifier>;

/** Per type, the required property and the name of its secret. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  noop: [],
  basic_auth: ['basic_auth', 'password'],
  api_key: ['api_key', 'header_value'],
  hmac: ['hmac', 'secret'],
};

const MEMBERS = ['secret', 'basic_auth', 'api_key', 'hmac'];

/** For missing, superfluous or malformed fields. Secrets must be decrypted. */
export function verifierProblems(verifier: Readonly<Record<string, unknown>>): InvalidField[] {
  const type = String(verifier['type']);
  const [member, inner] = own(NEEDS, type) ?? ['secret'];
  const problems = MEMBERS.filter((name) => name !== member && verifier[name] !== undefined).map(
    (name) => ({
      field: `verifier.${name}`,
      sentence: `does not belong to the type ${type}`,
    }),
  );
  problems.push(...handshakeProblems(verifier as VerifierFields));
  if (member === undefined) return problems;
  const given = verifier[member];
  if (given === undefined)
    return [...problems, { field: `verifier.${member}`, sentence: 'is missing' }];
  if (inner !== undefined && isObject(given) && given[inner] === undefined)
    problems.push({ field: `verifier.${member}.${inner}`, sentence: 'is missing' });
  const text = secretOf(verifier);
  const field = `verifier.${type === 'hmac' ? 'hmac.' : ''}secret`;
  if (/^\s|\s$/.test(text))
    problems.push({ field, sentence: 'begins or ends with a blank or a line break' });
  else if (type === 'standard_webhooks' && text.startsWith('v1,'))
    problems.push({
      field,
      sentence: 'begins with "v1,", which is not part of the secret; omit it',
    });
  else if (type === 'standard_webhooks' && text !== '' && !keyOf(text))
    problems.push({ field, sentence: 'must be whsec_ and at least 16 bytes in base64' });
  return problems;
}

function handshakeProblems(verifier: VerifierFields): InvalidField[] {
  const { type, token } = verifier.handshake ?? {};
  const { tokenIn, isTokenOptional, needsSecret } =
    (type === undefined ? undefined : HANDSHAKES[type]) ?? {};
  const problems: InvalidField[] = [];
  const field = 'verifier.handshake.token';
  if (tokenIn === undefined && token !== undefined)
    problems.push({ field, sentence: `does not belong to the handshake ${type}` });
  if (tokenIn !== undefined && !isTokenOptional && token === undefined)
    problems.push({ field, sentence: 'is missing' });
  if (needsSecret && secretOf(verifier) === '')
    problems.push({
      field: 'verifier.handshake.type',
      sentence: `requires a signature secret, which the type ${verifier.type} does not have`,
    });
  return problems;
}
