import type { PluginError } from '@gateway/plugin';
import type { SourceRow } from '@gateway/store/config';
import { keepSecrets, maskConnection, openConnection, sealConnection } from '@gateway/core/crypto';
import { didYouMean, GatewayError, type InvalidField } from '@gateway/core/errors';
import { isObject } from '@gateway/core/json';
import { canonicalConnection, whySourceInactive } from '@gateway/core/plugins';
import { withTimeout } from '@gateway/core/process';
import {
  assertValid,
  connectionValidator,
  integer,
  invalid,
  Type,
  type ProjectCall,
} from '../../api/vocabulary.js';

const CHECK_MS = 10_000;
const SILENT = `nothing answered within ${CHECK_MS / 1000} seconds`;
const UNEXPLAINED_FIX =
  'check the address and that this machine can reach it; ?skip_check=true saves the source without the test';

export const PubSubSchema = Type.Object(
  {
    type: Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'The source plugin: kafka, sqs, or one of a third party.',
    }),
    workers: Type.Optional(
      integer(
        1,
        256,
        'Number of readers across all agents: consumer group members or queue pollers. Each agent runs at least one.',
      ),
    ),
  },
  {
    description:
      'The connection stands under the name of the type; its schema is that of the plugin.',
    additionalProperties: true,
  },
);

/** The property named after the type is the connection. */
export interface GivenPubSub {
  readonly type: string;
  readonly workers?: number;
  readonly [connection: string]: unknown;
}

type PubSub = SourceRow['pub_sub'];

/**
 * Seals the connection's secrets after validation with its plugin's schema. Masked or missing
 * secrets keep their stored values. Also returns the connection with plain secrets. Throws
 * `invalid_request` for invalid settings or an inactive plugin.
 */
export function readPubSub(
  given: GivenPubSub,
  stored: PubSub | undefined,
  { plugins, sealer, id }: Pick<ProjectCall, 'plugins' | 'sealer' | 'id'>,
): { sealed: PubSub; connection: Record<string, unknown> } {
  const { type, workers = 1 } = given;
  const { connectionSchema: schema } = requireBroker(type, plugins);
  const before = stored?.type === type ? (stored[type] as Record<string, unknown>) : undefined;
  const kept = storedConnection(before, schema, { sealer, id });
  const connection = requireConnection(given, schema, kept?.plain);
  const sealed = sealConnection(connection, schema, id, sealer, kept);
  return { sealed: { type, workers, [type]: sealed }, connection };
}

/** A stored connection, whose unchanged secrets keep their sealed values. */
export function storedConnection(
  sealed: Record<string, unknown> | undefined,
  schema: Readonly<Record<string, unknown>>,
  { sealer, id }: Pick<ProjectCall, 'sealer' | 'id'>,
) {
  return sealed && { sealed, plain: openConnection(sealed, schema, id, sealer.open) };
}

function requireBroker(type: string, { sources, pushSources, table }: ProjectCall['plugins']) {
  const source = sources.get(type);
  if (source) return source;
  if (pushSources.has(type))
    throw invalid('pub_sub.type', 'takes requests to a URL; give its source the type http');
  const inactive = whySourceInactive(table, type);
  if (inactive)
    throw invalid(
      'pub_sub.type',
      `names a source plugin that is inactive: ${inactive.reason}; ${inactive.fix}`,
    );
  const known = [...sources.keys()].sort();
  const sentence = `is not an active source plugin; active plugins: ${known.join(', ') || 'none'}${didYouMean(type, known)}`;
  throw invalid('pub_sub.type', sentence);
}

/**
 * The connection in `pub_sub`, with the stored secrets that are masked or missing.
 *
 * @param before the stored connection with plain secrets
 */
export function requireConnection(
  { type, workers: _, ...rest }: GivenPubSub,
  schema: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>> | undefined,
  prefix = `pub_sub.${type}`,
): Record<string, unknown> {
  assertValid(shapeProblems(type, rest));
  const given = canonicalConnection(rest[type] as Record<string, unknown>, schema);
  const { connection, problems } = keepSecrets(given, schema, before, prefix);
  assertValid(problems);
  assertValid(connectionValidator(schema, prefix)(connection));
  return { ...connection };
}

function shapeProblems(type: string, rest: Readonly<Record<string, unknown>>): InvalidField[] {
  const { [type]: connection, ...others } = rest;
  const foreign = Object.keys(others).map((name) => ({
    field: `pub_sub.${name}`,
    sentence: `does not belong to the type ${type}${didYouMean(name, [type, 'workers', 'type'])}`,
  }));
  if (isObject(connection)) return foreign;
  return [
    ...foreign,
    {
      field: `pub_sub.${type}`,
      sentence: connection === undefined ? 'is missing' : 'must be an object',
    },
  ];
}

/**
 * The connection is null if its plugin is inactive, because only the plugin's schema identifies the
 * secrets.
 */
export function pubSubView(pubSub: PubSub, { plugins }: Pick<ProjectCall, 'plugins'>): unknown {
  const { type, workers } = pubSub;
  const source = plugins.sources.get(type) ?? plugins.pushSources.get(type);
  return {
    type,
    workers,
    [type]: source
      ? maskConnection(pubSub[type] as Record<string, unknown>, source.connectionSchema)
      : null,
  };
}

/** Returns the plugin's advice, or null. Throws `source_check_failed`. */
export async function checkConnection(
  { type: kind, workers }: Pick<PubSub, 'type' | 'workers'>,
  connection: Record<string, unknown>,
  { plugins, log, limits, project }: Pick<ProjectCall, 'plugins' | 'log' | 'limits' | 'project'>,
): Promise<string | null> {
  await limits.tests(project);
  const source = plugins.sources.get(kind)!;
  const ended = new AbortController();
  try {
    const plugin = await source.load();
    const check = plugin.check(connection, {
      signal: ended.signal,
      settings: source.settings,
      ...(workers !== undefined && { workers }),
    });
    const advice = await withTimeout(check, CHECK_MS, SILENT);
    return advice ? `${advice.message} ${advice.fix}` : null;
  } catch (cause) {
    throw checkFailed(kind, cause, { log });
  } finally {
    ended.abort();
  }
}

/**
 * @param prefix of the fields that a push source names
 */
export function checkFailed(
  kind: string,
  cause: unknown,
  {
    log,
    prefix = '',
    code = 'source_check_failed',
  }: Pick<ProjectCall, 'log'> & {
    readonly prefix?: string;
    readonly code?: 'source_check_failed' | 'source_not_moved';
  },
): GatewayError {
  const { message, fix, said, problems } = cause as Partial<PluginError>;
  if (Array.isArray(problems) && problems.length > 0)
    return new GatewayError('invalid_request', {
      problems: problems.map(({ field, sentence }) => ({
        field: [prefix, field].filter(Boolean).join('.'),
        sentence: String(sentence),
      })),
    });
  // Other errors can quote the response of a server chosen by the caller, so they are only
  // logged.
  const reason =
    fix !== undefined || message === SILENT
      ? message!
      : 'the server sent an unexpected response; see the server log';
  log.info(
    { source_type: kind, code, reason: message ?? String(cause), said },
    'A source could not be checked or moved.',
  );
  return new GatewayError(code, { kind, reason, fix: fix ?? UNEXPLAINED_FIX }, { cause });
}
