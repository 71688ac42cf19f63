import { hash } from 'node:crypto';
import type { Open } from '@gateway/core/crypto';
import { fillTemplate, type TemplateMessage } from '@gateway/core/events';
import { whyNotOpened, type Endpoint } from '@gateway/ingest/routing/project';
import {
  isServiceFormat,
  type EndpointAuthentication,
  type SignatureScheme,
  type StoredClientCertificate,
} from '@gateway/store/config';
import type { Attempt, InFlightDelivery } from '../../model/delivery.js';
import type { TextConfig } from '../../model/notification-text.js';
import { asCloudEvent } from './cloudevents.js';
import { messageSignature } from './message-signature.js';
import { presetRequest } from './presets/presets.js';
import type { EndpointRequest } from './sender.js';
import {
  asymmetricSignature,
  plainSignature,
  privateKey,
  signingKey,
  standardSignature,
  type SigningKey,
} from './signature.js';

/**
 * Thrown if this agent cannot decrypt an endpoint's secrets, because its key or version differs.
 */
export class Unreadable extends Error {}

interface Opened {
  readonly url: string;
  /** The bearer token, which a preset may send in another place. */
  readonly key: string;
  readonly keys: readonly SigningKey[];
  readonly schemes: ReadonlySet<SignatureScheme>;
  /** Names of the headers of the signature. */
  readonly names: { readonly id: string; readonly timestamp: string; readonly signature: string };
  readonly authentication: readonly string[];
  /** Names and values in turn, which the endpoint sets. */
  readonly headers: readonly string[];
  readonly templates: readonly { readonly name: string; readonly text: string }[];
  readonly certificate: EndpointRequest['certificate'];
  /** Lowercase names of headers set by the gateway. Event headers with these names are skipped. */
  ownNames?: ReadonlySet<string>;
}

/**
 * Builds and signs delivery requests, with the exact bytes of the event data, or in the format of the
 * endpoint.
 */
export class RequestBuilder {
  readonly #userAgent: string;
  /**
   * Decrypted secrets by endpoint. A configuration change creates new endpoint objects, whose
   * secrets are decrypted again.
   */
  readonly #opened = new WeakMap<Endpoint, Opened>();

  constructor(
    private readonly options: {
      readonly open: Open;
      readonly version: string;
      readonly texts: TextConfig;
    },
  ) {
    this.#userAgent = `gateway/${options.version}`;
  }

  /**
   * Builds and signs the request for an attempt.
   *
   * @throws Unreadable if a secret cannot be decrypted
   * @throws Error if the endpoint has no live secret
   */
  build(
    endpoint: Endpoint,
    given: InFlightDelivery,
    nowMs: number,
    trace?: Pick<NonNullable<Attempt['trace']>, 'traceparent' | 'tracestate'>,
    token?: string | null,
    message?: TemplateMessage,
  ): EndpointRequest {
    const opened = this.#openedOf(endpoint);
    const { keys, names, schemes } = opened;
    const { format } = endpoint;
    const isService = isServiceFormat(format);
    const delivery = format && !isService ? asCloudEvent(given, format) : given;
    const made = isService && presetRequest(format, delivery, opened, this.options.texts);
    const { url = opened.url, headers: authentication = opened.authentication } = made || {};
    const body = made ? Buffer.from(JSON.stringify(made.body)) : delivery.body;
    const live = keys.filter(({ expiresAtMs }) => expiresAtMs > nowMs);
    const newest = live[0];
    if (!newest)
      throw new Error(
        'The endpoint has no valid secret to sign with. Create one with expire_secret.',
      );
    const timestamp = Math.floor(nowMs / 1000);
    const headers = [
      'content-type',
      (made ? undefined : delivery.headers['content-type']) ?? 'application/json',
      // Common firewalls refuse requests without it.
      'accept',
      delivery.headers['accept'] ?? '*/*',
      'user-agent',
      delivery.headers['user-agent'] ?? this.#userAgent,
      names.id,
      delivery.id,
      names.timestamp,
      String(timestamp),
    ];
    if (schemes.has('hmac')) {
      let signature = standardSignature(live, delivery.id, timestamp, body);
      if (schemes.has('ed25519'))
        signature += ` ${asymmetricSignature(live, delivery.id, timestamp, body)}`;
      headers.push(names.signature, signature);
      if (endpoint.signature.header.toLowerCase() !== names.signature)
        headers.push(endpoint.signature.header, plainSignature(newest, body, endpoint.signature));
    } else if (schemes.has('ed25519'))
      headers.push(names.signature, asymmetricSignature(live, delivery.id, timestamp, body));
    if (schemes.has('rfc9421-ed25519') || schemes.has('rfc9421-hmac')) {
      const signed = [
        ['content-type', headers[1]!],
        [names.id, delivery.id],
        [names.timestamp, String(timestamp)],
      ] as const;
      const message = { url, body, headers: signed, created: timestamp };
      headers.push(...messageSignature(live, schemes, message));
    }
    for (const text of authentication) headers.push(text);
    for (const text of opened.headers) headers.push(text);
    if (token) headers.push('authorization', `Bearer ${token}`);
    const own = (opened.ownNames ??= new Set(
      [...headers.filter((_, k) => k % 2 === 0), ...opened.templates.map(({ name }) => name)].map(
        (name) => name.toLowerCase(),
      ),
    ));
    for (const { name, text } of opened.templates) {
      const value = message && fillTemplate(text, message);
      if (value !== undefined) headers.push(name, value);
    }
    for (const name in delivery.headers) {
      if (!own.has(name) && !(trace && (name === 'traceparent' || name === 'tracestate')))
        headers.push(name, delivery.headers[name] as string);
    }
    if (trace) {
      headers.push('traceparent', trace.traceparent);
      if (trace.tracestate) headers.push('tracestate', trace.tracestate);
    }
    return {
      projectId: endpoint.projectId,
      url,
      headers,
      body,
      timeoutMs: endpoint.timeoutMs,
      certificate: opened.certificate,
    };
  }

  #openedOf(endpoint: Endpoint): Opened {
    let opened = this.#opened.get(endpoint);
    if (opened) return opened;
    const { authentication } = endpoint;
    const place = ['endpoints', endpoint.id, 'authentication'] as const;
    try {
      opened = {
        url:
          authentication?.type === 'secret_url'
            ? this.options.open(authentication.secret_url.url, place)
            : endpoint.url,
        key:
          authentication?.type === 'bearer'
            ? this.options.open(authentication.bearer.token, place)
            : '',
        keys: endpoint.secrets.map((secret) => ({
          id: secret.id,
          ...signingKey(this.options.open(secret.value, ['endpoints', endpoint.id, 'secrets'])),
          ed25519:
            secret.ed25519 &&
            privateKey(
              this.options.open(secret.ed25519.private_key, ['endpoints', endpoint.id, 'secrets']),
            ),
          expiresAtMs: secret.expires_at === null ? Infinity : Date.parse(secret.expires_at),
        })),
        schemes: new Set(endpoint.signatures ?? ['hmac']),
        names: signatureNames(endpoint.signaturePrefix ?? 'webhook'),
        ...this.#headers(endpoint),
        authentication: authentication ? this.#authentication(authentication, endpoint.id) : [],
        certificate: endpoint.mtlsClientCert
          ? this.#certificate(endpoint.mtlsClientCert, endpoint.id)
          : undefined,
      };
    } catch (cause) {
      throw new Unreadable(whyNotOpened(cause), { cause });
    }
    this.#opened.set(endpoint, opened);
    return opened;
  }

  /** The project may have given its plain signature the name of one since. */
  #headers({ id, headers, signature }: Endpoint): Pick<Opened, 'headers' | 'templates'> {
    const plain = signature.header.toLowerCase();
    const opened = (headers ?? []).flatMap(({ name, value, is_template: isTemplate }) => {
      const text = this.options.open(value, ['endpoints', id, 'headers']);
      return name === plain ? [] : [{ name, text, isTemplate }];
    });
    return {
      headers: opened.flatMap(({ name, text, isTemplate }) => (isTemplate ? [] : [name, text])),
      templates: opened.filter(({ isTemplate }) => isTemplate),
    };
  }

  #certificate(
    { client_cert: cert, client_key: sealed }: StoredClientCertificate,
    endpointId: string,
  ): EndpointRequest['certificate'] {
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
      case 'secret_url':
        return [];
    }
  }
}

function signatureNames(prefix: string): Opened['names'] {
  return {
    id: `${prefix}-id`,
    timestamp: `${prefix}-timestamp`,
    signature: `${prefix}-signature`,
  };
}
