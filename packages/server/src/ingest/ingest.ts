import type { KeyObject } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Router, type RouterContext } from '@koa/router';
import { openConnection } from '@gateway/core/crypto';
import { GatewayError, isGatewayError } from '@gateway/core/errors';
import { networkOf } from '@gateway/core/http';
import { countIngest } from '@gateway/core/metrics/meter';
import { type GuardedPush, pushFailed, whySourceInactive } from '@gateway/core/plugins';
import { functionText } from '@gateway/ingest/message/ingest-source';
import type { Message, PushAnswer, PushHead, PushRequest } from '@gateway/plugin';
import type { HttpSource } from '@gateway/store/config';
import type { AppContext } from '../api/context.js';
import { receiveBody, requirePace, takeShare } from '../api/steps/body.js';
import { runSteps, type HttpExchange, type RequestStep } from '../api/steps/step.js';
import type { Account } from '../auth/login-guard.js';
import { derivedKey } from '../auth/process-credentials.js';
import { ENVELOPE_BYTES, PROVIDER_BYTES_MAX } from '../http/body.js';
import { send } from '../http/response.js';
import { jsonReader } from './json-body.js';
import { isMaskId } from './mask-id.js';
import { refusedBodies } from './refused-bodies.js';
import { httpSourceCache } from './source-cache.js';

const LOOK_UP = { effect: 'looks_up', withinMs: 10_000 } as const;
const COMMIT = { effect: 'creates', withinMs: 40_000 } as const;
const PAUSED_SECONDS = 60;
const NO_BODY = Buffer.alloc(0);

/** A source with its plugin. */
interface OpenedSource {
  readonly source: HttpSource;
  readonly push: GuardedPush;
  /** With plain secrets. */
  readonly connection: Record<string, unknown>;
}

interface SourceExchange extends HttpExchange, OpenedSource, PushHead {}

type SourceStep = RequestStep<SourceExchange>;

interface IngestOutcome {
  readonly outcome: 'accepted' | 'duplicate' | 'dropped' | 'quarantined';
  /** The first event or the quarantined message; null if dropped. */
  readonly uid: string | null;
  readonly events: number;
}

export function maskKey(encryptionKey: string | undefined): KeyObject {
  return derivedKey(encryptionKey, 'ids of http sources');
}

/** Signatures differ per request, so failures of signers count by address. */
function accountOf(id: string, credential?: string): Account {
  return {
    kind: credential === undefined ? 'signature' : 'source',
    name: id,
    credential: `${id} ${credential ?? 'signed'}`,
  };
}

/** `POST /ingest/<mask id>` needs no API key: the plugin of each source verifies its senders. */
export function ingestRouter(context: AppContext): Router {
  const { addressOf, config, database, kv, links, log, plugins, sealer } = context;
  const { logins } = context.auth;
  const { ask, limit, shardOf } = context.admission;
  const key = maskKey(config.encryption_key);
  const refused = refusedBodies(kv);
  const sources = httpSourceCache(database);
  const router = new Router({ prefix: `${config.root_path}/ingest` });

  function requestOf(request: IncomingMessage, body: Uint8Array = NO_BODY): PushRequest {
    const { headers, headersDistinct } = request;
    const method = request.method as PushRequest['method'];
    // Both the base and the path of the request begin with `root_path`.
    const url = links.ofRequest(request).replace(/^(\w+:\/\/[^/]*).*$/, '$1') + request.url;
    return { method, url, headers, headersDistinct, body };
  }

  /** Verifies before it counts, so that unverified requests cannot use up the source's limit. */
  async function admit(
    request: IncomingMessage,
    { source: { id }, push, connection }: OpenedSource,
    { credential, body }: { credential: string | null | undefined; body?: Buffer },
  ): Promise<void> {
    let reason: string | undefined;
    const verify = async () => {
      reason = await push.verify(requestOf(request, body), connection);
      return reason === undefined ? true : undefined;
    };
    if (credential !== null && !(await logins.check(request, accountOf(id, credential), verify)))
      throw new GatewayError('signature_invalid', { reason: reason! });
    await limit({ id: `source:${id}` });
  }

  async function find(maskId: string): Promise<HttpSource> {
    const source = isMaskId(maskId, key) ? await ask(() => sources(maskId), LOOK_UP) : undefined;
    if (!source || source.is_disabled)
      throw new GatewayError('not_found', {
        thing: 'source',
        fix: 'check the URL; a source may be disabled',
      });
    if (isPaused(source))
      throw new GatewayError('source_paused', { retryAfterSeconds: PAUSED_SECONDS });
    return source;
  }

  /**
   * Runs before the body is read. Admits a request with a password or key, and rejects one from a
   * locked-out address.
   */
  async function open(ctx: RouterContext): Promise<OpenedSource & PushHead> {
    const source = await find(ctx.params['mask_id'] ?? '');
    const { type, [type]: named } = source.pub_sub;
    const active = plugins.pushSources.get(type);
    if (!active) {
      const { reason } = whySourceInactive(plugins.table, type) ?? {
        reason: 'it is not installed',
      };
      throw pushFailed(type, reason);
    }
    const { connectionSchema: schema } = active;
    const sealed = (named as Record<string, unknown> | undefined) ?? { ...source.http };
    const connection = { ...openConnection(sealed, schema, source.id, sealer.open) };
    const push = await active.load().catch((error: Error) => {
      throw pushFailed(type, error.message, error);
    });
    const opened = { source, push, connection };
    const head = await push.open(requestOf(ctx.req), connection);
    if (head.credential === undefined) await logins.refuseLocked(ctx.req, accountOf(source.id));
    else await admit(ctx.req, opened, { credential: head.credential });
    return { ...opened, ...head };
  }

  const receive = (
    { req }: RouterContext,
    { source, push, connection }: OpenedSource,
    { bytes, bodyLimit }: Pick<HttpExchange, 'bytes' | 'bodyLimit'>,
  ) =>
    push.receive(requestOf(req, bytes), connection, {
      sourceId: source.id,
      isTransformed: functionText(source.body_function) !== null,
      json: jsonReader(bytes, req.headers['content-type'], bodyLimit),
      log,
    });

  // Also handles HEAD. These requests have no body to sign, so signatures are not verified.
  router.get('/:mask_id', async (ctx) => {
    const it = await open(ctx);
    if (it.credential === undefined) await limit({ id: `source:${it.source.id}` });
    const { answer } = await receive(ctx, it, { bytes: NO_BODY, bodyLimit: 0 });
    if (answer) return sendAnswer(ctx, answer);
    ctx.set('allow', 'POST');
    throw new GatewayError('method_not_allowed', {
      method: ctx.method,
      path: ctx.path,
      allowed: 'POST',
    });
  });

  router.options('/:mask_id', async (ctx) => {
    const it = await open(ctx);
    if (it.credential === undefined) await limit({ id: `source:${it.source.id}` });
    const { answer } = await receive(ctx, it, { bytes: NO_BODY, bodyLimit: 0 });
    ctx.set('allow', 'POST');
    if (answer) sendAnswer(ctx, answer);
    else ctx.status = 204;
  });

  const receiveWhole = receiveBody(context);
  const pace = requirePace(context);

  const receiveCounted: SourceStep = (it) =>
    receiveWhole(it).catch((error: unknown) => {
      if (isGatewayError(error, 'body_too_large')) {
        if (plugins.metrics) countIngest(plugins.meter, labelsOf(it.source), { failed: 1 });
        void refused(it.source, it.bodyLimit);
      }
      throw error;
    });

  const admitSigned: SourceStep = (it) =>
    it.credential === undefined
      ? admit(it.ctx.req, it, { credential: undefined, body: it.bytes })
      : undefined;

  /** A handshake is answered, and makes no message. */
  const acceptMessages: SourceStep = async (it) => {
    const { ctx, source, bytes, bodyLimit } = it;
    const { messages, answer } = await receive(ctx, it, it);
    if (messages.length === 0) return sendAnswer(ctx, answer!);
    // A message that was made of the body may be longer than what was received.
    const maxBytesOf = ({ body }: Message) =>
      bodyLimit + (body.length === bytes.length ? 0 : ENVELOPE_BYTES);
    const shards = async () => [await shardOf(source.project_id)];
    const commit = () =>
      Promise.all(messages.map((it) => accept(source, it, maxBytesOf(it), context)));
    sendOutcome(ctx, await ask(commit, { ...COMMIT, shards }), answer);
  };

  /** The second check of the pace is for requests that waited for their share. */
  const steps = [pace, receiveCounted, admitSigned, takeShare(context), pace, acceptMessages];

  router.post('/:mask_id', async (ctx) => {
    const opened = await open(ctx);
    const { source, maxBytes = 0 } = opened;
    await runSteps(steps, {
      ...opened,
      ctx,
      projectId: source.project_id,
      sender: { id: `${source.id} ${networkOf(addressOf(ctx.req))}`, isStranger: true },
      owner: source.id,
      bodyLimit: Math.max(config.ingest.max_message_bytes, Math.min(maxBytes, PROVIDER_BYTES_MAX)),
      createsEvents: true,
      bytes: NO_BODY,
      release: () => undefined,
    });
  });
  return router;
}

function isPaused({ paused_at: pausedAt, resumes_at: resumesAt }: HttpSource): boolean {
  return pausedAt !== null && !(resumesAt !== null && resumesAt.getTime() <= Date.now());
}

/** Commits a message as an agent does. */
async function accept(
  source: HttpSource,
  message: Message,
  maxMessageBytes: number,
  { functions, events, plugins }: AppContext,
): Promise<IngestOutcome> {
  const { project_id: projectId, id, body_function: text, keep_messages: keepsMessages } = source;
  const count = (end: 'accepted' | 'duplicate' | 'dropped' | 'failed') => {
    if (plugins.metrics) countIngest(plugins.meter, labelsOf(source), { [end]: 1 });
  };
  const ready = await functions.accept(
    { projectId, id, bodyFunction: functionText(text), keepsMessages, maxMessageBytes },
    message,
  );
  if (ready.events.length === 0 && !ready.quarantined) {
    count('dropped');
    return { outcome: 'dropped', uid: null, events: 0 };
  }
  const creations = await events.commit(ready);
  if (ready.quarantined) {
    count('failed');
    return { outcome: 'quarantined', uid: ready.quarantined.id, events: 0 };
  }
  const made = creations.filter(({ duplicate }) => !duplicate).length;
  const outcome = made > 0 ? 'accepted' : 'duplicate';
  count(outcome);
  return { outcome, uid: creations[0]!.id, events: made };
}

function labelsOf({ project_id: project, id: source }: HttpSource) {
  return { project, source };
}

const MESSAGES: Readonly<Record<IngestOutcome['outcome'], string>> = {
  accepted: 'event created',
  duplicate: 'an event with this idempotency key already exists',
  dropped: 'the function of the source dropped the message',
  quarantined: 'the message is quarantined',
};

/** The sender of several messages learns the first of these. */
const OUTCOMES = ['quarantined', 'accepted', 'duplicate', 'dropped'] as const;

function sendOutcome(
  ctx: RouterContext,
  outcomes: readonly IngestOutcome[],
  answer: PushAnswer | undefined,
): void {
  const named = OUTCOMES.map((it) => outcomes.find(({ outcome }) => outcome === it));
  const { outcome, uid } = named.find((it) => it !== undefined)!;
  const events = outcomes.reduce((sum, it) => sum + it.events, 0);
  // Providers repeat failed requests. A quarantined message need not be repeated, so its status is
  // a success too.
  const status = outcome === 'quarantined' ? 202 : 200;
  if (answer) return sendAnswer(ctx, { status, ...answer });
  send(ctx, status, { status: true, message: MESSAGES[outcome], data: { outcome, uid, events } });
}

function sendAnswer(
  ctx: RouterContext,
  { status = 200, contentType, body, headers = {} }: PushAnswer,
): void {
  ctx.set(headers);
  ctx.status = status;
  ctx.type = contentType;
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}
