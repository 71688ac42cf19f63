import { type KeyObject, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Router, type RouterContext } from '@koa/router';
import { openConnection } from '@gateway/core/crypto';
import { GatewayError, isGatewayError } from '@gateway/core/errors';
import { networkOf } from '@gateway/core/http';
import { functionText } from '@gateway/ingest/message/ingest-source';
import type { GivenMessage } from '@gateway/ingest/message/source-message';
import type { HttpSource } from '@gateway/store/config';
import { countIngest } from '@gateway/core/metrics/meter';
import type { AppContext } from '../api/context.js';
import { receiveBody, requirePace, takeShare } from '../api/steps/body.js';
import { ANSWERED, runSteps, type HttpExchange, type RequestStep } from '../api/steps/step.js';
import type { Account } from '../auth/login-guard.js';
import { derivedKey } from '../auth/process-credentials.js';
import { send } from '../http/response.js';
import { handshakeAnswer, type HandshakeAnswer } from './handshakes.js';
import { isMaskId } from './mask-id.js';
import { messageOf } from './message.js';
import { largestBodyOf } from './providers.js';
import { refusedBodies } from './refused-bodies.js';
import { httpSourceCache } from './source-cache.js';
import { Verifier, type VerifierFields } from './verifier.js';
import { credentialOf, whyUnverified } from './verify.js';

const LOOK_UP = { effect: 'looks_up', withinMs: 10_000 } as const;
const COMMIT = { effect: 'creates', withinMs: 40_000 } as const;
const PAUSED_SECONDS = 60;
const NO_BODY = Buffer.alloc(0);

interface SourceExchange extends HttpExchange {
  readonly source: HttpSource;
  readonly verifier: VerifierFields;
  readonly isSigned: boolean;
}

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
function accountOf(id: string, credential: string | undefined): Account {
  return {
    kind: credential === undefined ? 'signature' : 'source',
    name: id,
    credential: `${id} ${credential ?? 'signed'}`,
  };
}

/** `POST /ingest/<mask id>` needs no API key: each source defines its own verification. */
export function ingestRouter(context: AppContext): Router {
  const { addressOf, config, database, kv, links, plugins, sealer } = context;
  const { logins } = context.auth;
  const { ask, limit, shardOf } = context.admission;
  const key = maskKey(config.encryption_key);
  const refused = refusedBodies(kv);
  const sources = httpSourceCache(database);
  const router = new Router({ prefix: `${config.root_path}/ingest` });

  /** Verifies before it counts, so that unverified requests cannot use up the source's limit. */
  async function admit(
    request: IncomingMessage,
    { id }: HttpSource,
    verifier: VerifierFields,
    { credential, body }: { credential: string | undefined; body: Buffer },
  ): Promise<void> {
    let reason: string | undefined;
    const { headers } = request;
    // Both the base and the path of the request begin with `root_path`.
    const url = links.ofRequest(request).replace(/^(\w+:\/\/[^/]*).*$/, '$1') + request.url;
    const verify = async () =>
      (reason = whyUnverified(verifier, { headers, body, url })) === undefined ? true : undefined;
    if (credential !== '' && !(await logins.check(request, accountOf(id, credential), verify)))
      throw new GatewayError('signature_invalid', { reason: reason! });
    await limit({ id: `source:${id}` });
  }

  /**
   * Runs before the body is read. Admits a request with a password or key, and rejects one from a
   * locked-out address.
   */
  async function open(ctx: RouterContext) {
    const maskId = ctx.params['mask_id'] ?? '';
    const source = isMaskId(maskId, key) ? await ask(() => sources(maskId), LOOK_UP) : undefined;
    if (!source || source.is_disabled)
      throw new GatewayError('not_found', {
        thing: 'source',
        fix: 'check the URL; a source may be disabled',
      });
    if (isPaused(source))
      throw new GatewayError('source_paused', { retryAfterSeconds: PAUSED_SECONDS });
    const verifier = openConnection(
      source.http.verifier,
      Verifier,
      source.id,
      sealer.open,
    ) as VerifierFields;
    const credential = credentialOf(verifier, ctx.req.headers);
    if (credential !== undefined)
      await admit(ctx.req, source, verifier, { credential, body: NO_BODY });
    else await logins.refuseLocked(ctx.req, accountOf(source.id, credential));
    return { source, verifier, isSigned: credential === undefined };
  }

  // Also handles HEAD. These requests have no body to sign, so signatures are not verified.
  router.get('/:mask_id', async (ctx) => {
    const { source, verifier, isSigned } = await open(ctx);
    if (isSigned) await limit({ id: `source:${source.id}` });
    const answer = handshakeAnswer(verifier, {
      method: ctx.method,
      headers: ctx.req.headers,
      query: ctx.query,
    });
    if (answer) return void sendHandshake(ctx, answer);
    ctx.set('allow', 'POST');
    throw new GatewayError('method_not_allowed', {
      method: ctx.method,
      path: ctx.path,
      allowed: 'POST',
    });
  });

  const receive = receiveBody(context);
  const pace = requirePace(context);

  const receiveCounted: SourceStep = (it) =>
    receive(it).catch((error: unknown) => {
      if (isGatewayError(error, 'body_too_large')) {
        if (plugins.metrics) countIngest(plugins.meter, labelsOf(it.source), { failed: 1 });
        void refused(it.source, it.bodyLimit);
      }
      throw error;
    });

  const admitSigned: SourceStep = ({ ctx, source, verifier, isSigned, bytes: body }) =>
    isSigned ? admit(ctx.req, source, verifier, { credential: undefined, body }) : undefined;

  const shakeHands: SourceStep = ({ ctx, verifier, bytes: body }) => {
    const { method, query, req } = ctx;
    const handshake = handshakeAnswer(verifier, { method, headers: req.headers, query, body });
    return handshake && sendHandshake(ctx, handshake);
  };

  const acceptMessage: SourceStep = async ({ ctx, source, bytes: body, bodyLimit: maxBytes }) => {
    const message = {
      coordinates: `http/${randomUUID()}`,
      timestamp: Date.now(),
      body,
      contentType: ctx.req.headers['content-type'],
      maxBytes,
      ...messageOf(source, { request: ctx.req, query: ctx.query }),
    };
    const shards = async () => [await shardOf(source.project_id)];
    const outcome = await ask(() => accept(source, message, context), { ...COMMIT, shards });
    answer(ctx, source, outcome);
  };

  /** The second check of the pace is for requests that waited for their share. */
  const steps = [
    pace,
    receiveCounted,
    admitSigned,
    shakeHands,
    takeShare(context),
    pace,
    acceptMessage,
  ];

  router.post('/:mask_id', async (ctx) => {
    const opened = await open(ctx);
    const { source, verifier } = opened;
    await runSteps(steps, {
      ...opened,
      ctx,
      projectId: source.project_id,
      sender: { id: `${source.id} ${networkOf(addressOf(ctx.req))}`, isStranger: true },
      owner: source.id,
      bodyLimit: largestBodyOf(verifier.type, config.ingest.max_message_bytes),
      createsEvents: true,
      bytes: NO_BODY,
      release: () => undefined,
    });
  });
  return router;
}

function sendHandshake(ctx: RouterContext, { type, body }: HandshakeAnswer): typeof ANSWERED {
  ctx.status = 200;
  ctx.type = type;
  ctx.body = body;
  return ANSWERED;
}

function isPaused({ paused_at: pausedAt, resumes_at: resumesAt }: HttpSource): boolean {
  return pausedAt !== null && !(resumesAt !== null && resumesAt.getTime() <= Date.now());
}

/** Commits a message as an agent does. */
async function accept(
  source: HttpSource,
  message: GivenMessage,
  { functions, events, plugins }: AppContext,
): Promise<IngestOutcome> {
  const { project_id: projectId, id, body_function: text, keep_messages: keepsMessages } = source;
  const count = (end: 'accepted' | 'duplicate' | 'dropped' | 'failed') => {
    if (plugins.metrics) countIngest(plugins.meter, labelsOf(source), { [end]: 1 });
  };
  const ready = await functions.accept(
    { projectId, id, bodyFunction: functionText(text), keepsMessages },
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

function answer(
  ctx: RouterContext,
  { http: { custom_response: custom } }: HttpSource,
  data: IngestOutcome,
): void {
  // Providers repeat failed requests. A quarantined message need not be repeated, so its status is
  // a success too.
  send(ctx, data.outcome === 'quarantined' ? 202 : 200, {
    status: true,
    message: MESSAGES[data.outcome],
    data,
  });
  if (!custom) return;
  ctx.type = custom.content_type;
  ctx.body = custom.body;
}
