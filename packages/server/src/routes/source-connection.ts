import { withTimeout } from '@gateway/core/process';
import { didYouMean, GatewayError, type InvalidField } from '@gateway/core/errors';
import type { ActiveSource } from '@gateway/core/plugins';
import type { SourceRow } from '@gateway/store/config';
import { keepSecrets, maskConnection, openConnection, sealConnection } from '@gateway/core/crypto';
import { isObject } from '@gateway/core/json';
import { refuse } from '../http/mount.js';
import type { Parts } from '../http/server-context.js';
import { connectionValidator, type Validator } from '../http/validate.js';

const CHECK_MS = 10_000;

/** The `pub_sub` of a source as a request gives it: the connection stands under the name of its type. */
export interface GivenPubSub {
  readonly type: string;
  readonly workers?: number;
  readonly [connection: string]: unknown;
}

export type PubSub = SourceRow['pub_sub'];

const validators = new WeakMap<object, Validator>();

/**
 * Checks a connection against the schema of its plugin and seals its secrets; what is masked or left out is kept from the stored record.
 *
 * @returns what to store, and the connection with open secrets for `checkConnection`
 * @throws GatewayError `invalid_request`
 */
export function readPubSub(
  given: GivenPubSub,
  stored: PubSub | undefined,
  { plugins, sealer }: Parts,
): { sealed: PubSub; connection: Record<string, unknown> } {
  const { type, workers = 1, ...rest } = given;
  const source = plugins.sources.get(type);
  if (!source) {
    const known = [...plugins.sources.keys()].sort();
    const sentence = `is not a source that is active here; active are ${known.join(', ') || 'none'}${didYouMean(type, known)}`;
    throw new GatewayError('invalid_request', { problems: [{ field: 'pub_sub.type', sentence }] });
  }
  const { connectionSchema: schema } = source;
  const before = stored?.type === type ? (stored[type] as Record<string, unknown>) : undefined;
  const plainBefore = before && openConnection(before, schema, (text) => sealer.open(text));
  refuse(shapeProblems(type, rest));
  const { connection, problems } = keepSecrets(rest[type] as Record<string, unknown>, schema, plainBefore, `pub_sub.${type}`);
  refuse(problems);
  refuse(validatorOf(source, type)(connection));
  const sealed = sealConnection(
    connection,
    schema,
    (text) => sealer.seal(text),
    before && plainBefore && { sealed: before, plain: plainBefore },
  );
  return { sealed: { type, workers, [type]: sealed }, connection };
}

function shapeProblems(type: string, rest: Readonly<Record<string, unknown>>): InvalidField[] {
  const connection = rest[type];
  const others = Object.keys(rest).filter((name) => name !== type);
  return [
    ...others.map((name) => ({
      field: `pub_sub.${name}`,
      sentence: `does not belong to the type ${type}${didYouMean(name, [type, 'workers', 'type'])}`,
    })),
    ...(connection === undefined ? [{ field: `pub_sub.${type}`, sentence: 'is missing' }] : []),
    ...(connection !== undefined && !isObject(connection) ? [{ field: `pub_sub.${type}`, sentence: 'must be an object' }] : []),
  ];
}

function validatorOf(source: ActiveSource, type: string): Validator {
  let validator = validators.get(source.connectionSchema);
  if (!validator) validators.set(source.connectionSchema, (validator = connectionValidator(source.connectionSchema, `pub_sub.${type}`)));
  return validator;
}

/** A `pub_sub` as answers show it. The record of a plugin that is gone shows no connection, since nobody knows its secrets. */
export function pubSubView(pubSub: PubSub, { plugins }: Parts): unknown {
  const { type, workers } = pubSub;
  const source = plugins.sources.get(type);
  return { type, workers, [type]: source ? maskConnection(pubSub[type] as Record<string, unknown>, source.connectionSchema) : null };
}

/**
 * Asks the plugin whether the broker answers with this connection.
 *
 * @throws GatewayError `source_check_failed` with the plugin's sentence and remedy
 */
export async function checkConnection(kind: string, connection: Record<string, unknown>, { plugins }: Parts): Promise<void> {
  const source = plugins.sources.get(kind)!;
  const plugin = await source.load();
  const ended = new AbortController();
  try {
    const check = plugin.check(connection, { signal: ended.signal, settings: source.settings });
    await withTimeout(check, CHECK_MS, `nothing answered within ${CHECK_MS / 1000} seconds`);
  } catch (cause) {
    const { message, fix } = cause as { message?: string; fix?: string };
    throw new GatewayError(
      'source_check_failed',
      {
        kind,
        reason: message ?? String(cause),
        fix: fix ?? 'check the address and that this machine may reach it; ?skip_check=true saves the source without the test',
      },
      { cause },
    );
  } finally {
    ended.abort();
  }
}
