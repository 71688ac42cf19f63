import { didYouMean, GatewayError, type InvalidField } from '@gateway/core/errors';
import { withTimeout } from '@gateway/core/process';
import type { SourceRow } from '@gateway/store/config';
import { keepSecrets, maskConnection, openConnection, sealConnection } from '@gateway/core/crypto';
import { isObject } from '@gateway/core/json';
import { canonicalConnection } from '@gateway/core/plugins';
import type { ServerContext } from '../api/route.js';
import { assertValid, connectionValidator } from '../http/validate.js';

const CHECK_MS = 10_000;

/** The `pub_sub` of a source in a request. The connection is under the name of its type. */
export interface GivenPubSub {
  readonly type: string;
  readonly workers?: number;
  readonly [connection: string]: unknown;
}

export type PubSub = SourceRow['pub_sub'];

/**
 * Validates a connection by the schema of its plugin and seals its secrets; masked or missing ones are kept. Returns it with open secrets for
 * `checkConnection`.
 */
export function readPubSub(
  { type, workers = 1, ...rest }: GivenPubSub,
  stored: PubSub | undefined,
  { plugins, sealer }: ServerContext,
): { sealed: PubSub; connection: Record<string, unknown> } {
  const source = plugins.sources.get(type);
  if (!source) {
    const known = [...plugins.sources.keys()].sort();
    const sentence = `is not a source that is active here; active are ${known.join(', ') || 'none'}${didYouMean(type, known)}`;
    throw new GatewayError('invalid_request', { problems: [{ field: 'pub_sub.type', sentence }] });
  }
  const { connectionSchema: schema } = source;
  const before = stored?.type === type ? (stored[type] as Record<string, unknown>) : undefined;
  const plainBefore = before && openConnection(before, schema, (text) => sealer.open(text));
  assertValid(shapeProblems(type, rest));
  const given = canonicalConnection(rest[type] as Record<string, unknown>, schema);
  const { connection, problems } = keepSecrets(given, schema, plainBefore, `pub_sub.${type}`);
  assertValid(problems);
  assertValid(connectionValidator(schema, `pub_sub.${type}`)(connection));
  const kept = before && plainBefore && { sealed: before, plain: plainBefore };
  const sealed = sealConnection(connection, schema, (text) => sealer.seal(text), kept);
  return { sealed: { type, workers, [type]: sealed }, connection };
}

function shapeProblems(type: string, rest: Readonly<Record<string, unknown>>): InvalidField[] {
  const { [type]: connection, ...others } = rest;
  const foreign = Object.keys(others).map((name) => ({
    field: `pub_sub.${name}`,
    sentence: `does not belong to the type ${type}${didYouMean(name, [type, 'workers', 'type'])}`,
  }));
  if (isObject(connection)) return foreign;
  return [...foreign, { field: `pub_sub.${type}`, sentence: connection === undefined ? 'is missing' : 'must be an object' }];
}

/** A `pub_sub` in a response. Without its plugin the connection is null: only its schema says what is secret. */
export function pubSubView(pubSub: PubSub, { plugins }: ServerContext): unknown {
  const { type, workers } = pubSub;
  const source = plugins.sources.get(type);
  return { type, workers, [type]: source ? maskConnection(pubSub[type] as Record<string, unknown>, source.connectionSchema) : null };
}

/** Asks the plugin whether the broker answers. Throws `source_check_failed` with the reason and fix of the plugin. */
export async function checkConnection(kind: string, connection: Record<string, unknown>, { plugins }: ServerContext): Promise<void> {
  const source = plugins.sources.get(kind)!;
  const ended = new AbortController();
  try {
    const plugin = await source.load();
    const check = plugin.check(connection, { signal: ended.signal, settings: source.settings });
    await withTimeout(check, CHECK_MS, `nothing answered within ${CHECK_MS / 1000} seconds`);
  } catch (cause) {
    const {
      message: reason = String(cause),
      fix = 'check the address and that this machine may reach it; ?skip_check=true saves the source without the test',
    } = cause as { message?: string; fix?: string };
    throw new GatewayError('source_check_failed', { kind, reason, fix }, { cause });
  } finally {
    ended.abort();
  }
}
