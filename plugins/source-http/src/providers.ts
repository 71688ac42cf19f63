/** The MAC covers the signed parts, joined by `joint`, a dot by default. */
export interface HmacScheme {
  readonly header: string;
  readonly hash: 'SHA1' | 'SHA256' | 'SHA512';
  readonly encoding: 'hex' | 'base64';
  /**
   * For a header with several members. Those that begin with the mark are signatures, and any may
   * match.
   */
  readonly list?: { readonly separator: string; readonly mark: string };
  /** In epoch seconds: a header or a member of the list, at most five minutes old. */
  readonly timestamp?: { readonly header?: string; readonly mark?: string };
  readonly id?: string;
  /**
   * `form` is the fields of a form, sorted by name, as names and values without separators. Another
   * body is signed by its SHA-256 in the query parameter `bodySHA256`, and so by `url`.
   */
  readonly signed: readonly ('id' | 'timestamp' | 'body' | 'url' | 'form')[];
  readonly joint?: string;
  readonly version?: string;
  /** The secret is base64 after `whsec_`, not plain text. */
  readonly isKeyBase64?: boolean;
}

export interface Provider {
  readonly scheme: HmacScheme;
  /** If the provider sends more than `ingest.max_message_bytes`. */
  readonly max_bytes?: number;
  /** Default for events without a type at `event_type_location`. */
  readonly event_type?: string;
  /** Like the next two, a default for sources of this provider. */
  readonly event_type_location: string;
  readonly idempotency_keys?: readonly string[];
  readonly forward_headers?: readonly string[];
}

const SHA256 = { hash: 'SHA256', encoding: 'hex', signed: ['body'] } as const;
const SHA1 = { ...SHA256, hash: 'SHA1' } as const;

/** Slack and Zoom sign `v0:<timestamp>:<body>`. */
const VERSION_ZERO = {
  ...SHA256,
  list: { separator: ',', mark: 'v0=' },
  signed: ['timestamp', 'body'],
  joint: ':',
  version: 'v0',
} as const;

/** Svix, Clerk, Resend and others rename the Standard Webhooks headers. */
const ALIASES: Readonly<Record<string, string>> = {
  'webhook-id': 'svix-id',
  'webhook-timestamp': 'svix-timestamp',
  'webhook-signature': 'svix-signature',
};

/** Verification and idempotency keys read the same header. Takes a lower-case name or alias. */
export function headerOf<Value>(
  headers: Readonly<Record<string, Value | undefined>>,
  name: string,
): Value | undefined {
  const own = Object.hasOwn(headers, name) ? headers[name] : undefined;
  // Shopify omits the prefix for its newer subscriptions to events.
  const alias = name.startsWith('x-shopify-') ? name.slice('x-'.length) : ALIASES[name];
  return own ?? (alias === undefined ? undefined : headers[alias]);
}

export const PROVIDERS = {
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
  github: {
    scheme: { ...SHA256, header: 'x-hub-signature-256' },
    // https://docs.github.com/en/webhooks/webhook-events-and-payloads#payload-cap
    max_bytes: 25 * 1024 * 1024,
    event_type_location: 'header.X-GitHub-Event',
    idempotency_keys: ['header.X-GitHub-Delivery'],
    forward_headers: ['X-GitHub-Event', 'X-GitHub-Delivery'],
  },
  // https://shopify.dev/docs/apps/build/webhooks/subscribe/https
  shopify: {
    scheme: { ...SHA256, header: 'x-shopify-hmac-sha256', encoding: 'base64' },
    event_type_location: 'header.X-Shopify-Topic',
    idempotency_keys: ['header.X-Shopify-Webhook-Id'],
    forward_headers: [
      'X-Shopify-Topic',
      'X-Shopify-Shop-Domain',
      'X-Shopify-Webhook-Id',
      'X-Shopify-Triggered-At',
    ],
  },
  // https://docs.stripe.com/webhooks#verify-manually
  stripe: {
    scheme: {
      ...SHA256,
      header: 'stripe-signature',
      list: { separator: ',', mark: 'v1=' },
      timestamp: { mark: 't=' },
      signed: ['timestamp', 'body'],
    },
    event_type_location: 'body.type',
    idempotency_keys: ['body.id'],
  },
  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  slack: {
    scheme: {
      ...VERSION_ZERO,
      header: 'x-slack-signature',
      timestamp: { header: 'x-slack-request-timestamp' },
    },
    event_type_location: 'body.event.type',
    idempotency_keys: ['body.event_id'],
  },
  // https://developers.zoom.us/docs/api/webhooks/#verify-with-zooms-header
  zoom: {
    scheme: {
      ...VERSION_ZERO,
      header: 'x-zm-signature',
      timestamp: { header: 'x-zm-request-timestamp' },
    },
    event_type_location: 'body.event',
  },
  // https://www.twilio.com/docs/usage/security#validating-requests
  twilio: {
    scheme: {
      ...SHA1,
      header: 'x-twilio-signature',
      encoding: 'base64',
      signed: ['url', 'form'],
      joint: '',
    },
    event_type: 'webhook',
    event_type_location: 'body.EventType',
    idempotency_keys: ['header.I-Twilio-Idempotency-Token'],
  },
  // https://developers.intercom.com/docs/webhooks/webhook-notifications
  intercom: {
    scheme: { ...SHA1, header: 'x-hub-signature' },
    event_type_location: 'body.topic',
    idempotency_keys: ['body.id'],
  },
  // https://vercel.com/docs/webhooks/webhooks-api#securing-webhooks
  vercel: {
    scheme: { ...SHA1, header: 'x-vercel-signature' },
    event_type_location: 'body.type',
    idempotency_keys: ['body.id'],
  },
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
  standard_webhooks: {
    scheme: {
      ...SHA256,
      header: 'webhook-signature',
      encoding: 'base64',
      list: { separator: ' ', mark: 'v1,' },
      timestamp: { header: 'webhook-timestamp' },
      id: 'webhook-id',
      signed: ['id', 'timestamp', 'body'],
      isKeyBase64: true,
    },
    event_type_location: 'body.type',
    idempotency_keys: ['header.webhook-id'],
  },
} as const satisfies Record<string, Provider>;

export function providerOf(name: string): Provider | undefined {
  return Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name as keyof typeof PROVIDERS] : undefined;
}
