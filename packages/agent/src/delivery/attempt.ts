import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { Open } from '@gateway/core/crypto';
import { newId } from '@gateway/core/events';
import type { ProjectPace } from '@gateway/core/process';
import {
  deactivateEndpoint,
  type NotificationFacts,
  type Strategy,
  type EndpointAuthentication,
  type SignatureConfig,
  type StoredClientCertificate,
} from '@gateway/store/config';
import type { AttemptRecord, Wait } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import { whyNotOpened, type Endpoint } from '@gateway/ingest/routing/project';
import type { HeldDelivery } from '../model/delivery.js';
import { FUNCTION_WAIT, LOOKUP_WAIT } from '../flow-control/backpressure.js';
import type { AccessTokens } from '../request/access-tokens.js';
import { type Answer, type Sender, unsendable, type Request } from '../request/sender.js';
import { debugLog, type DebugLog } from '../telemetry/debug-log.js';
import { type AttemptTrace, endAttempt } from '../telemetry/tracing.js';
import type { SubscriptionFunctions } from './subscription-functions.js';

interface AttemptRunnerOptions extends Pick<
  AgentContext,
  'log' | 'clock' | 'lease' | 'measure' | 'tracing'
> {
  readonly sender: Sender;
  readonly requests: RequestBuilder;
  readonly accessTokens: AccessTokens;
  readonly goneEndpoints: GoneEndpoints;
  readonly functions: Pick<SubscriptionFunctions, 'mayChange' | 'run'>;
  readonly responsePace: ProjectPace;
}

/** No attempt was made. The delivery waits, is discarded, or is left to other agents. */
export type Unsent =
  | { readonly unsent: Wait }
  | { readonly unsent: 'discarded' | 'unreadable'; readonly reason: string }
  | { readonly unsent: 'lapsed' };

interface Attempt {
  readonly endpoint: Endpoint;
  readonly delivery: HeldDelivery;
  readonly startedAtMs: number;
  readonly trace: AttemptTrace | undefined;
  /** The output of the function for this attempt; undefined: the body is unchanged. */
  readonly transformedData: string | undefined;
  readonly done: (outcome: AttemptRecord | Unsent) => void;
}

/** Runs the function of the subscription, builds and sends the request, classifies the response. */
export class AttemptRunner {
  readonly #debugLog: DebugLog;

  constructor(private readonly options: AttemptRunnerOptions) {
    this.#debugLog = debugLog(options.log);
  }

  /** Calls `done` exactly once, possibly before returning. */
  run(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    startedAtMs: number,
    done: Attempt['done'],
  ): void {
    const { measure, functions } = this.options;
    measure?.step('wait', delivery.heldAtMs ?? startedAtMs, startedAtMs);
    if (functions.mayChange(delivery)) void this.#transform(endpoint, delivery, done);
    else this.#send(this.#begin(endpoint, delivery, startedAtMs, done));
  }

  #begin(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    startedAtMs: number,
    done: Attempt['done'],
    transformedData?: string,
  ): Attempt {
    return {
      endpoint,
      delivery,
      startedAtMs,
      trace: this.options.tracing?.attempting(delivery),
      transformedData,
      done,
    };
  }

  async #transform(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    done: Attempt['done'],
  ): Promise<void> {
    const { functions, clock } = this.options;
    const requestedAtMs = clock.now();
    const outcome = await functions.run(delivery);
    const begin = (of: HeldDelivery, data?: string) =>
      this.#begin(endpoint, of, performance.now(), done, data);
    switch (outcome.kind) {
      case 'made':
        return this.#send(
          begin(
            { ...delivery, body: Buffer.from(outcome.data), isTransformed: true },
            outcome.data,
          ),
        );
      case 'unchanged':
        return this.#send(begin(delivery));
      case 'dropped':
        return done({ unsent: 'discarded', reason: outcome.reason });
      case 'postponed':
        return done({ unsent: FUNCTION_WAIT });
      case 'failed': {
        const attempt = begin(delivery);
        const failed: Answer = {
          status: null,
          headers: {},
          body: '',
          failure: { class: 'function', message: outcome.reason },
        };
        return this.#end(
          attempt,
          classifyResponse(attempt, failed, requestedAtMs, outcome.durationMs),
        );
      }
    }
  }

  #send(attempt: Attempt): void {
    const { endpoint, delivery, trace } = attempt;
    // This order keeps the recorded attempt from ending before its response.
    let startedAtMs = performance.now();
    const { requests, accessTokens, sender, goneEndpoints, responsePace, clock, lease } =
      this.options;
    let requestedAtMs = clock.now();
    const answered = (answer: Answer) => {
      if (answer.isUnsent) return attempt.done({ unsent: LOOKUP_WAIT });
      if (answer.isUnreadable)
        return attempt.done({ unsent: 'unreadable', reason: answer.failure?.message ?? '' });
      const durationMs = performance.now() - startedAtMs;
      if (answer.status === 410) goneEndpoints.deactivate(endpoint);
      if (answer.status === 401) accessTokens.forget(endpoint);
      this.#end(attempt, classifyResponse(attempt, answer, requestedAtMs, durationMs));
    };
    accessTokens.of(endpoint, (token, failure) => {
      if (failure) return answered(failure);
      // The lease may have ended meanwhile: after a clock change the time to sign with is unknown.
      if (!lease.isHeld) return attempt.done({ unsent: 'lapsed' });
      // Excludes the wait for the token: the recorded time is the signed one.
      startedAtMs = performance.now();
      requestedAtMs = clock.now();
      let request;
      try {
        request = requests.build(endpoint, delivery, requestedAtMs, { trace, token });
      } catch (error) {
        return answered({
          ...unsendable((error as Error).message),
          isUnreadable: error instanceof Unreadable,
        });
      }
      sender.send(request, answered, responsePace);
    });
  }

  #end({ endpoint, delivery, startedAtMs, trace, done }: Attempt, record: AttemptRecord): void {
    this.options.measure?.step('request', startedAtMs);
    if (trace?.span) endAttempt(trace.span, { endpoint, delivery, attempt: record });
    this.#debugLog?.attempted(delivery, record);
    done(record);
  }
}

/** This agent has another key or another version. */
class Unreadable extends Error {}

interface Opened {
  readonly keys: readonly { readonly key: SigningKey; readonly expiresAtMs: number }[];
  readonly authentication: readonly string[];
  readonly certificate: Request['certificate'];
  /** Header names set by the gateway, which event headers do not replace. */
  ownNames?: ReadonlySet<string>;
}

/** Builds and signs the request of a delivery with the exact bytes of its data. */
export class RequestBuilder {
  readonly #userAgent: string;
  /** A configuration change creates new endpoint objects, so secrets are opened again. */
  readonly #opened = new WeakMap<Endpoint, Opened>();

  constructor(private readonly options: { readonly open: Open; readonly version: string }) {
    this.#userAgent = `gateway/${options.version}`;
  }

  /** Throws `Unreadable` if the key does not open a secret; another error without a live secret. */
  build(
    endpoint: Endpoint,
    delivery: HeldDelivery,
    nowMs: number,
    {
      trace,
      token,
    }: {
      trace?: Pick<AttemptTrace, 'traceparent' | 'tracestate'> | undefined;
      token?: string | null;
    } = {},
  ): Request {
    const opened = this.#openedOf(endpoint);
    const { keys, authentication } = opened;
    const live = keys.filter(({ expiresAtMs }) => expiresAtMs > nowMs).map(({ key }) => key);
    const newest = live[0];
    if (!newest)
      throw new Error(
        'The endpoint has no live secret to sign with. Give it one with expire_secret.',
      );
    const timestamp = Math.floor(nowMs / 1000);
    const headers = [
      'content-type',
      delivery.headers['content-type'] ?? 'application/json',
      'user-agent',
      delivery.headers['user-agent'] ?? this.#userAgent,
      'webhook-id',
      delivery.id,
      'webhook-timestamp',
      String(timestamp),
      'webhook-signature',
      standardSignature(live, delivery.id, timestamp, delivery.body),
      endpoint.signature.header,
      plainSignature(newest, delivery.body, endpoint.signature),
      ...authentication,
      ...(token ? ['authorization', `Bearer ${token}`] : []),
    ];
    const own = (opened.ownNames ??= new Set(
      headers.filter((_, k) => k % 2 === 0).map((name) => name.toLowerCase()),
    ));
    for (const name in delivery.headers) {
      if (!own.has(name) && !(trace && (name === 'traceparent' || name === 'tracestate')))
        headers.push(name, delivery.headers[name] as string);
    }
    if (trace) {
      headers.push('traceparent', trace.traceparent);
      if (trace.tracestate) headers.push('tracestate', trace.tracestate);
    }
    const { projectId, url, timeoutMs } = endpoint;
    return {
      projectId,
      url,
      headers,
      body: delivery.body,
      timeoutMs,
      certificate: opened.certificate,
    };
  }

  #openedOf(endpoint: Endpoint): Opened {
    let opened = this.#opened.get(endpoint);
    if (opened) return opened;
    try {
      opened = {
        keys: endpoint.sealedSecrets.map((secret) => ({
          key: signingKey(this.options.open(secret.value, ['endpoints', endpoint.id, 'secrets'])),
          expiresAtMs: secret.expires_at === null ? Infinity : Date.parse(secret.expires_at),
        })),
        authentication: endpoint.sealedAuthentication
          ? this.#authentication(endpoint.sealedAuthentication, endpoint.id)
          : [],
        certificate: endpoint.sealedCertificate
          ? this.#certificate(endpoint.sealedCertificate, endpoint.id)
          : undefined,
      };
    } catch (cause) {
      throw new Unreadable(whyNotOpened(cause), { cause });
    }
    this.#opened.set(endpoint, opened);
    return opened;
  }

  #certificate(
    { client_cert: cert, client_key: sealed }: StoredClientCertificate,
    endpointId: string,
  ): Request['certificate'] {
    const key = this.options.open(sealed, ['endpoints', endpointId, 'mtls_client_cert']);
    return { id: hash('sha256', `${cert}\n${key}`), cert, key };
  }

  #authentication(sealed: EndpointAuthentication, endpointId: string): string[] {
    const open = (secret: string) =>
      this.options.open(secret, ['endpoints', endpointId, 'authentication']);
    switch (sealed.type) {
      case 'api_key':
        return [sealed.api_key.header_name.toLowerCase(), open(sealed.api_key.header_value)];
      case 'basic':
        return [
          'authorization',
          `Basic ${Buffer.from(`${sealed.basic.username}:${open(sealed.basic.password)}`).toString('base64')}`,
        ];
      case 'bearer':
        return ['authorization', `Bearer ${open(sealed.bearer.token)}`];
      case 'oauth2':
        return [];
    }
  }
}

/** `createHmac` of Node 24 takes 16 µs with the bytes of a key, and 3 µs with a key object. */
interface SigningKey {
  /** UTF-8 bytes of the secret. */
  readonly plain: KeyObject;
  readonly standard: KeyObject;
}

/** The standard key is the base64 after `whsec_`, not validated, or else the UTF-8 bytes. */
export function signingKey(secret: string): SigningKey {
  const [, base64] = /^whsec_(.*)$/s.exec(secret) ?? [];
  const plain = createSecretKey(Buffer.from(secret));
  return {
    plain,
    standard: base64 === undefined ? plain : createSecretKey(Buffer.from(base64, 'base64')),
  };
}

/**
 * Returns one signature per live secret: receivers verify during a rotation.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 *
 * @param timestamp seconds since the epoch
 */
export function standardSignature(
  keys: readonly SigningKey[],
  id: string,
  timestamp: number,
  body: Buffer,
): string {
  let value = '';
  for (const key of keys) {
    const signature = createHmac('sha256', key.standard)
      .update(`${id}.${timestamp}.`)
      .update(body)
      .digest('base64');
    value += value === '' ? `v1,${signature}` : ` v1,${signature}`;
  }
  return value;
}

/** Returns the plain HMAC of the body, keyed with the whole newest secret. */
export function plainSignature(
  key: SigningKey,
  body: Buffer,
  { hash, encoding }: SignatureConfig,
): string {
  return createHmac(hash === 'SHA512' ? 'sha512' : 'sha256', key.plain)
    .update(body)
    .digest(encoding);
}

/** Returns the record of an attempt, whether or not its request could be sent. */
export function classifyResponse(
  { endpoint, delivery, trace, transformedData }: Attempt,
  answer: Answer,
  requestedAtMs: number,
  durationMs: number,
): AttemptRecord {
  const number = delivery.attempts + 1;
  const delivered =
    answer.failure === null &&
    answer.status !== null &&
    answer.status >= 200 &&
    answer.status < 300;
  const message = `The endpoint answered ${answer.status}. ${answer.remark ?? ''}`.trim();
  const failure = delivered ? null : (answer.failure ?? { class: 'status' as const, message });
  const gone = answer.status === 410;
  const dueInMs =
    delivered || gone
      ? null
      : retriesAtOnce(answer, endpoint.strategy, number)
        ? 0
        : nextAttemptInMs(
            endpoint.strategy,
            number,
            retryAfterSeconds(answer.headers['retry-after'], requestedAtMs + durationMs),
          );
  return {
    projectId: delivery.projectId,
    id: delivery.id,
    occurredAtMs: delivery.occurredAtMs,
    attemptId: newId(requestedAtMs),
    endpointId: delivery.endpointId,
    number,
    requestedAtMs,
    durationMs: Math.round(durationMs),
    url: endpoint.url,
    httpStatus: answer.status,
    errorClass: failure?.class ?? null,
    error: failure?.message ?? answer.remark ?? null,
    responseHeaders: answer.status === null ? null : JSON.stringify(answer.headers),
    responseBody: answer.body,
    status: delivered ? 'success' : dueInMs === null ? 'failure' : 'retry',
    dueInMs,
    reason:
      delivered || dueInMs !== null
        ? null
        : gone
          ? 'The endpoint answered 410 Gone and was deactivated.'
          : `No retry is left after attempt ${number}. ${failure?.message ?? ''}`.trim(),
    agentId: delivery.agentId,
    traceparent: trace?.traceparent ?? null,
    transformedData,
  };
}

/** Only a first attempt with another retry left: other idle connections may be lost too. */
function retriesAtOnce(
  { isIdleLoss }: Answer,
  { retry_count }: Strategy,
  attempt: number,
): boolean {
  return isIdleLoss === true && attempt === 1 && retry_count > 1;
}

const EXPONENTIAL_CAP_SECONDS = 7200;
const RETRY_AFTER_CAP_SECONDS = 24 * 3600;

/**
 * Returns milliseconds until the next attempt, at least the endpoint's `Retry-After`; null: no
 * retry is left.
 *
 * @param attempt number of the failed attempt, from 1
 */
export function nextAttemptInMs(
  strategy: Strategy,
  attempt: number,
  retryAfterSeconds: number | null,
  random: () => number = Math.random,
): number | null {
  if (attempt > strategy.retry_count) return null;
  let seconds = strategy.duration;
  if (strategy.type === 'exponential') {
    const full = Math.min(
      strategy.max_seconds ?? EXPONENTIAL_CAP_SECONDS,
      strategy.duration * 2 ** Math.min(attempt - 1, 40),
    );
    // The upper half is random: deliveries that failed together do not return together.
    seconds = full / 2 + (full / 2) * random();
  }
  if (retryAfterSeconds !== null)
    seconds = Math.max(seconds, Math.min(retryAfterSeconds, RETRY_AFTER_CAP_SECONDS));
  return Math.round(seconds * 1000);
}

/** Returns seconds (RFC 9110 10.2.3); null if the header is missing or invalid. */
export function retryAfterSeconds(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // Date.parse accepts nearly any text with a number; HTTP dates begin with the day of the week.
  const isDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text);
  // asctime has no zone and means UTC: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7
  const dateMs = isDate ? Date.parse(/([a-z]|[+-]\d{4})$/i.test(text) ? text : `${text} GMT`) : NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, (dateMs - nowMs) / 1000);
}

interface GoneEndpointsOptions extends Pick<AgentContext, 'database' | 'log'> {
  readonly notifier: { disabledFacts(reason: string): NotificationFacts | null; hurry(): void };
}

/**
 * Deactivates endpoints that answered 410 Gone, in the background. After an error the next 410
 * retries.
 */
export class GoneEndpoints {
  /** Requests in flight get a 410 too, and each write makes all agents reload the configuration. */
  readonly #gone = new WeakSet<Endpoint>();

  constructor(private readonly options: GoneEndpointsOptions) {}

  deactivate(endpoint: Endpoint): void {
    if (this.#gone.has(endpoint)) return;
    this.#gone.add(endpoint);
    const { database, log, notifier } = this.options;
    const { projectId, id } = endpoint;
    log.warn(
      { endpoint_id: id, project_id: projectId },
      'An endpoint answered 410 Gone and is deactivated.',
    );
    const facts = notifier.disabledFacts('The endpoint answered 410 Gone.');
    deactivateEndpoint(database.pool, projectId, id, 'It answered 410 Gone.', facts).then(
      () => notifier.hurry(),
      (error: unknown) => {
        this.#gone.delete(endpoint);
        log.warn(
          { error, project_id: projectId, endpoint_id: id },
          'An endpoint that answered 410 could not be deactivated; its next answer tries again.',
        );
      },
    );
  }
}
