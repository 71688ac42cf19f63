import { isDeepStrictEqual } from 'node:util';
import { compileFunction } from 'node:vm';
import { Type, type Static } from '@sinclair/typebox';
import { deleteSource, findSource, insertSource, listSources, resumeSource, updateSource, type SourceRow } from '@gateway/store/config';
import { didYouMean, GatewayError, type InvalidField } from '@gateway/core/errors';
import { withTimeout } from '@gateway/core/process';
import { newId } from '@gateway/core/events';
import { keepSecrets, maskConnection, openConnection, sealConnection } from '@gateway/core/crypto';
import { isObject } from '@gateway/core/json';
import { canonicalConnection } from '@gateway/core/plugins';
import { found, listRoute, projectRoute, type ProjectCall, type Route, type ServerContext } from '../api/route.js';
import { pageQuery } from '../http/list-query.js';
import { object, Id, integer, Name, named, nullable, oneOf, Timestamp, assertValid, connectionValidator } from '../http/schema.js';

const CHECK_MS = 10_000;
const SILENT = `nothing answered within ${CHECK_MS / 1000} seconds`;
const UNEXPLAINED_FIX = 'check the address and that this machine may reach it; ?skip_check=true saves the source without the test';

const PubSubSchema = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: 100, description: 'The source plugin: kafka, sqs, or one of a third party.' }),
    workers: Type.Optional(
      integer(1, 256, 'Readers over all agents: members of the consumer group, or pollers of the queue. Each agent runs at least one.'),
    ),
  },
  { description: 'The connection stands under the name of the type; its schema is that of the plugin.', additionalProperties: true },
);

const optional = {
  body_function: Type.Optional(nullable(Type.String({ maxLength: 50_000, description: 'JavaScript with a function transform(payload).' }))),
  is_disabled: Type.Optional(Type.Boolean()),
};
const NewSource = named('NewSource', object({ name: Name, type: oneOf(['pub_sub']), pub_sub: PubSubSchema, ...optional }));
const ChangedSource = named(
  'ChangedSource',
  object({
    name: Type.Optional(Name),
    type: Type.Optional(oneOf(['pub_sub'])),
    pub_sub: Type.Optional(PubSubSchema),
    ...optional,
  }),
);
const Source = named(
  'Source',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    type: oneOf(['pub_sub']),
    pub_sub: PubSubSchema,
    body_function: nullable(Type.String()),
    is_disabled: Type.Boolean(),
    paused_at: nullable(Timestamp),
    resumes_at: Type.Unsafe<Date | null>({ ...nullable(Timestamp), description: 'When it is read again by itself.' }),
    pause_reason: nullable(Type.String()),
    paused_by: Type.Unsafe<string | null>({ ...nullable(Type.String()), description: 'The agent.' }),
    pauses: Type.Integer({ description: 'One after the other; 0 after a changed function, a resumption, or when it is enabled again.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
);
const CheckQuery = object({ skip_check: Type.Optional(Type.Boolean({ description: 'Saves the source without testing its connection.' })) });

function view({ id, pub_sub, ...row }: SourceRow, context: ServerContext): unknown {
  return { uid: id, ...row, pub_sub: pubSubView(pub_sub, context) };
}

export const sourceRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources',
    'Creates a source after testing its connection.',
    { body: NewSource, query: CheckQuery, data: Source, status: 201 },
    async (call) => {
      const { project, body, query } = call;
      if (project.type !== 'outgoing')
        assertValid([{ field: 'type', sentence: `pub_sub sources belong to outgoing projects, and ${project.name} is ${project.type}` }]);
      const { body_function = null, is_disabled = false, ...plain } = body;
      validateFunction(body_function);
      const id = newId();
      const { sealed, connection } = readPubSub(body.pub_sub, undefined, { ...call, id });
      const advice = query.skip_check || is_disabled ? '' : await checkConnection(sealed, connection, call);
      const fields = { ...plain, id, pub_sub: sealed, body_function, is_disabled };
      const { sources_per_project, workers_per_project } = call.config.limits;
      const row = await insertSource(call.database.knex, project.id, fields, sources_per_project, workers_per_project);
      return { message: `source created${advice}`, data: view(row, call) };
    },
  ),
  listRoute(
    '/sources',
    'Lists sources.',
    { query: object(pageQuery), title: 'sources', data: Source },
    ({ database, project }, page) => listSources(database.knex, project.id, {}, page),
    view,
  ),
  projectRoute('GET /sources/:id', 'Shows a source; secrets of its connection are masked.', { data: Source }, async (call) => ({
    message: 'source',
    data: view(await find(call), call),
  })),
  projectRoute(
    'PUT /sources/:id',
    'Changes what is given of a source; a secret that is masked or left out is kept while the address stays. A changed connection is tested; a changed function ends a pause that has lasted transform.pause_seconds, and shortens another to that.',
    { body: ChangedSource, query: CheckQuery, data: Source },
    change,
  ),
  projectRoute(
    'POST /sources/:id/resume',
    'Resumes a source that is paused because its function overran again and again, once the pause has lasted transform.pause_seconds.',
    { data: Source },
    async (call) => {
      const { database, project, id, config } = call;
      const row = found(await resumeSource(database.knex, project.id, id, config.transform.pause_seconds), 'source', id);
      const message = row.resumes_at ? `source resumes at ${row.resumes_at.toISOString()}` : 'source resumed';
      return { message, data: view(row, call) };
    },
  ),
  projectRoute('DELETE /sources/:id', 'Deletes a source: agents stop reading it.', {}, async ({ database, project, id }) => {
    found(await deleteSource(database.knex, project.id, id), 'source', id);
    return { message: 'source deleted', data: null };
  }),
];

async function find({ database, project, id }: ProjectCall): Promise<SourceRow> {
  return found(await findSource(database.knex, project.id, id), 'source', id);
}

async function change(call: ProjectCall<Static<typeof ChangedSource>, Static<typeof CheckQuery>>) {
  const { database, project, id, body, query, config } = call;
  validateFunction(body.body_function);
  const stored = await find(call);
  const { pub_sub: given, ...plain } = body;
  const isEnabled = !(body.is_disabled ?? stored.is_disabled);
  const isReenabled = isEnabled && stored.is_disabled;
  // A source that is enabled again is tested as it is stored: while it was disabled its broker may have gone. Masked secrets are kept.
  const next = given ?? (isReenabled ? (pubSubView(stored.pub_sub, call) as GivenPubSub) : undefined);
  const read = next && readPubSub(next, stored.pub_sub, call);
  const isChanged = read !== undefined && (stored.is_disabled || !isDeepStrictEqual(read.sealed, stored.pub_sub));
  const advice = isChanged && isEnabled && !query.skip_check ? await checkConnection(read.sealed, read.connection, call) : '';
  const isCorrected = body.body_function !== undefined && body.body_function !== stored.body_function;
  const fields = { ...plain, ...(read ? { pub_sub: read.sealed } : {}) };
  const resumesAfter = isCorrected || isReenabled ? config.transform.pause_seconds : undefined;
  const maxWorkers = read && config.limits.workers_per_project;
  const row = found(await updateSource(database.knex, project.id, id, fields, resumesAfter, maxWorkers), 'source', id);
  return { message: `source updated${advice}`, data: view(row, call) };
}

const FILENAME = 'transform.js';

/** Compiles a transform function without running it. What only running shows, agents quarantine with a reason. */
function validateFunction(text: string | null | undefined): void {
  if (!text) return;
  const field = 'body_function';
  try {
    compileFunction(`'use strict';${text}`, [], { filename: FILENAME });
  } catch (error) {
    const line = new RegExp(`^${FILENAME}:(\\d+)`).exec((error as Error).stack ?? '')?.[1];
    const where = line === undefined ? '' : ` on line ${line}`;
    assertValid([{ field, sentence: `does not compile: ${(error as Error).message}${where}` }]);
  }
  if (!/\btransform\b/.test(text))
    assertValid([{ field, sentence: 'has no function named transform; write function transform(payload) { ... }' }]);
}

/** The `pub_sub` of a source in a request. The connection is under the name of its type. */
interface GivenPubSub {
  readonly type: string;
  readonly workers?: number;
  readonly [connection: string]: unknown;
}

type PubSub = SourceRow['pub_sub'];

/**
 * Validates a connection by the schema of its plugin and seals its secrets; masked or missing ones are kept. Returns it with open secrets for
 * `checkConnection`.
 */
function readPubSub(
  { type, workers = 1, ...rest }: GivenPubSub,
  stored: PubSub | undefined,
  { plugins, sealer, id }: Pick<ProjectCall, 'plugins' | 'sealer' | 'id'>,
): { sealed: PubSub; connection: Record<string, unknown> } {
  const source = plugins.sources.get(type);
  if (!source) {
    const known = [...plugins.sources.keys()].sort();
    const sentence = `is not a source that is active here; active are ${known.join(', ') || 'none'}${didYouMean(type, known)}`;
    throw new GatewayError('invalid_request', { problems: [{ field: 'pub_sub.type', sentence }] });
  }
  const { connectionSchema: schema } = source;
  const before = stored?.type === type ? (stored[type] as Record<string, unknown>) : undefined;
  const plainBefore = before && openConnection(before, schema, id, sealer.open);
  assertValid(shapeProblems(type, rest));
  const given = canonicalConnection(rest[type] as Record<string, unknown>, schema);
  const { connection, problems } = keepSecrets(given, schema, plainBefore, `pub_sub.${type}`);
  assertValid(problems);
  assertValid(connectionValidator(schema, `pub_sub.${type}`)(connection));
  const kept = before && plainBefore && { sealed: before, plain: plainBefore };
  const sealed = sealConnection(connection, schema, id, sealer, kept);
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
function pubSubView(pubSub: PubSub, { plugins }: ServerContext): unknown {
  const { type, workers } = pubSub;
  const source = plugins.sources.get(type);
  return { type, workers, [type]: source ? maskConnection(pubSub[type] as Record<string, unknown>, source.connectionSchema) : null };
}

/**
 * Asks the plugin whether the broker answers. Resolves with what it advises all the same, as sentences after which the message of an answer ends. Throws
 * `source_check_failed` with the reason and fix of the plugin.
 */
async function checkConnection(
  { type: kind, workers }: Pick<PubSub, 'type' | 'workers'>,
  connection: Record<string, unknown>,
  { plugins, log, tests, project }: Pick<ProjectCall, 'plugins' | 'log' | 'tests' | 'project'>,
): Promise<string> {
  await tests(project);
  const source = plugins.sources.get(kind)!;
  const ended = new AbortController();
  try {
    const plugin = await source.load();
    const check = plugin.check(connection, { signal: ended.signal, settings: source.settings, ...(workers !== undefined && { workers }) });
    const advice = await withTimeout(check, CHECK_MS, SILENT);
    return advice ? `. ${advice.message} ${advice.fix}` : '';
  } catch (cause) {
    const { message, fix, said } = cause as { message?: string; fix?: string; said?: string };
    // Other errors may repeat what a server said, whichever one the caller has named.
    const reason =
      fix !== undefined || message === SILENT ? message! : 'the server answered in a way that is not understood; the log says how';
    log.info({ source_type: kind, reason: message ?? String(cause), said }, 'A connection of a source does not work.');
    throw new GatewayError('source_check_failed', { kind, reason, fix: fix ?? UNEXPLAINED_FIX }, { cause });
  } finally {
    ended.abort();
  }
}
