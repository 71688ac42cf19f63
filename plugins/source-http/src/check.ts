import { type FieldProblem, PluginError, type PushCheckContext } from '@gateway/plugin';
import type { Connection, Verifier } from './connection.js';
import { HANDSHAKES } from './handshakes.js';
import { providerOf } from './providers.js';
import { keyOf, secretOf } from './secrets.js';

/** For an incoming project's source that defines no type. */
const DEFAULT_EVENT_TYPE = 'webhook';

/**
 * A new source gets the provider's defaults.
 * @throws PluginError with the problems of the verifier
 */
export function check(
  given: Partial<Connection>,
  { isNew, projectType }: Pick<PushCheckContext, 'isNew' | 'projectType'>,
): Connection {
  const { verifier = { type: 'noop' } } = given;
  const problems = verifierProblems(verifier);
  if (problems.length > 0)
    throw new PluginError('The verifier is invalid.', { problems, fix: 'Correct its fields.' });
  if (!isNew) return given as Connection;
  const provider = providerOf(verifier.type);
  const usual = projectType === 'incoming' && !provider ? DEFAULT_EVENT_TYPE : null;
  const hasPlace = typeof given.event_type_location === 'string';
  return {
    event_type: hasPlace ? null : (provider?.event_type ?? usual),
    event_type_location: provider?.event_type_location ?? null,
    idempotency_keys: provider?.idempotency_keys ?? [],
    forward_headers: provider?.forward_headers ?? [],
    format: null,
    custom_response: null,
    ...given,
    verifier,
  };
}

/** Per type, the required member and the name of its secret. Providers need `secret`. */
const NEEDS: Readonly<Record<string, readonly [member?: keyof Verifier, secret?: string]>> = {
  noop: [],
  basic_auth: ['basic_auth', 'password'],
  api_key: ['api_key', 'header_value'],
  hmac: ['hmac', 'secret'],
};

/** For missing, superfluous or malformed fields. */
export function verifierProblems(verifier: Verifier): FieldProblem[] {
  const { type } = verifier;
  const [member, inner] = NEEDS[type] ?? ['secret'];
  const problems = (['secret', 'basic_auth', 'api_key', 'hmac'] as const)
    .filter((name) => name !== member && verifier[name] !== undefined)
    .map((name) => ({
      field: `verifier.${name}`,
      sentence: `does not belong to the type ${type}`,
    }));
  problems.push(...handshakeProblems(verifier));
  if (member === undefined) return problems;
  const given = verifier[member];
  if (given === undefined)
    return [...problems, { field: `verifier.${member}`, sentence: 'is missing' }];
  if (inner !== undefined && (given as Readonly<Record<string, unknown>>)[inner] === undefined)
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

function handshakeProblems(verifier: Verifier): FieldProblem[] {
  const { type, token } = verifier.handshake ?? {};
  const { tokenIn, isTokenOptional, needsSecret } =
    (type === undefined ? undefined : HANDSHAKES[type]) ?? {};
  const problems: FieldProblem[] = [];
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
