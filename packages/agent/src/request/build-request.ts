import type { EndpointAuthentication, SignatureConfig } from '@gateway/store/config';
import { createHmac } from 'node:crypto';
import type { Endpoint } from '../config/config-cache.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { AttemptTrace } from '../telemetry/tracing.js';
import type { Request } from './sender.js';

interface Opened {
  readonly keys: readonly { readonly key: SigningKey; readonly expiresAtMs: number }[];
  readonly authentication: readonly string[];
  /** Header names that the gateway sets, which event headers do not replace. */
  ownNames?: ReadonlySet<string>;
}

/** Builds the request of a delivery: the exact bytes of its data, signed, with the headers of the event. */
export class RequestBuilder {
  readonly #userAgent: string;
  /** Opened secrets. Each change of the configuration makes new endpoint objects, so they are opened again. */
  readonly #opened = new WeakMap<Endpoint, Opened>();

  constructor(private readonly options: { readonly open: (sealed: string) => string; readonly version: string }) {
    this.#userAgent = `gateway/${options.version}`;
  }

  /** Throws when the encryption key does not open a secret. @param trace replaces the trace context of the event */
  build(endpoint: Endpoint, delivery: HeldDelivery, nowMs: number, trace?: Pick<AttemptTrace, 'traceparent' | 'tracestate'>): Request {
    const opened = this.#openedOf(endpoint);
    const { keys, authentication } = opened;
    const live = keys.filter(({ expiresAtMs }) => expiresAtMs > nowMs).map(({ key }) => key);
    const newest = live[0];
    if (!newest) throw new Error('The endpoint has no live secret to sign with. Give it one with expire_secret.');
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
    ];
    const own = (opened.ownNames ??= new Set(headers.filter((_, k) => k % 2 === 0).map((name) => name.toLowerCase())));
    for (const name in delivery.headers) {
      if (!own.has(name) && !(trace && (name === 'traceparent' || name === 'tracestate')))
        headers.push(name, delivery.headers[name] as string);
    }
    if (trace) {
      headers.push('traceparent', trace.traceparent);
      if (trace.tracestate) headers.push('tracestate', trace.tracestate);
    }
    return { url: endpoint.url, headers, body: delivery.body, timeoutMs: endpoint.timeoutMs };
  }

  #openedOf(endpoint: Endpoint): Opened {
    let opened = this.#opened.get(endpoint);
    if (!opened) {
      opened = {
        keys: endpoint.sealedSecrets.map((secret) => ({
          key: signingKey(this.options.open(secret.value)),
          expiresAtMs: secret.expires_at === null ? Infinity : Date.parse(secret.expires_at),
        })),
        authentication: endpoint.sealedAuthentication ? this.#authentication(endpoint.sealedAuthentication) : [],
      };
      this.#opened.set(endpoint, opened);
    }
    return opened;
  }

  #authentication(sealed: EndpointAuthentication): string[] {
    switch (sealed.type) {
      case 'api_key':
        return [sealed.api_key.header_name.toLowerCase(), this.options.open(sealed.api_key.header_value)];
      case 'basic':
        return [
          'authorization',
          `Basic ${Buffer.from(`${sealed.basic.username}:${this.options.open(sealed.basic.password)}`).toString('base64')}`,
        ];
      case 'bearer':
        return ['authorization', `Bearer ${this.options.open(sealed.bearer.token)}`];
    }
  }
}

export interface SigningKey {
  readonly secret: string;
  /** The decoded base64 after `whsec_`: the key of the Standard Webhooks signature. */
  readonly bytes: Buffer;
}

/** Decodes a secret, with or without the prefix `whsec_`. Does not check that it is base64. */
export function signingKey(secret: string): SigningKey {
  return { secret, bytes: Buffer.from(secret.replace(/^whsec_/, ''), 'base64') };
}

/**
 * One signature per live secret, so that receivers verify during a rotation. @param timestamp seconds since the epoch
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function standardSignature(keys: readonly SigningKey[], id: string, timestamp: number, body: Buffer): string {
  let value = '';
  for (const key of keys) {
    const signature = createHmac('sha256', key.bytes).update(`${id}.${timestamp}.`).update(body).digest('base64');
    value += value === '' ? `v1,${signature}` : ` v1,${signature}`;
  }
  return value;
}

/** The plain HMAC of the body. Its key is the whole text of the newest secret. */
export function plainSignature(key: SigningKey, body: Buffer, { hash, encoding }: SignatureConfig): string {
  return createHmac(hash === 'SHA512' ? 'sha512' : 'sha256', key.secret)
    .update(body)
    .digest(encoding);
}
