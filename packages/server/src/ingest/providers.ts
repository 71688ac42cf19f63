/** How a provider signs its requests: a MAC of the parts, joined by dots. */
export interface HmacScheme {
  readonly header: string;
  readonly hash: 'SHA256' | 'SHA512';
  readonly encoding: 'hex' | 'base64';
  /** The header has several members, of which those with this mark are signatures; any of them may match. */
  readonly list?: { readonly separator: string; readonly mark: string };
  /** When it was signed, in seconds: a header, or a member of the list. */
  readonly timestamp?: { readonly header?: string; readonly mark?: string; readonly toleranceSeconds: number };
  /** Header with the id that is signed. */
  readonly id?: string;
  readonly signed: readonly ('id' | 'timestamp' | 'body')[];
  /** The secret is base64 after `whsec_`, not the text itself. */
  readonly isKeyBase64?: boolean;
}

export interface Provider {
  readonly scheme: HmacScheme;
  /** Settings of a source of this provider, unless others are given. */
  readonly event_type_location: string;
  readonly idempotency_keys: readonly string[];
  readonly forward_headers: readonly string[];
}

/** Replays are refused after this time, as the libraries of the providers do by default. */
const TOLERANCE_SECONDS = 300;

export const PROVIDERS = {
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
  github: {
    scheme: { header: 'x-hub-signature-256', hash: 'SHA256', encoding: 'hex', signed: ['body'] },
    event_type_location: 'header.X-GitHub-Event',
    idempotency_keys: ['header.X-GitHub-Delivery'],
    forward_headers: ['X-GitHub-Event', 'X-GitHub-Delivery'],
  },
  // https://shopify.dev/docs/apps/build/webhooks/subscribe/https
  shopify: {
    scheme: { header: 'x-shopify-hmac-sha256', hash: 'SHA256', encoding: 'base64', signed: ['body'] },
    event_type_location: 'header.X-Shopify-Topic',
    idempotency_keys: ['header.X-Shopify-Webhook-Id'],
    forward_headers: ['X-Shopify-Topic', 'X-Shopify-Shop-Domain', 'X-Shopify-Webhook-Id', 'X-Shopify-Triggered-At'],
  },
  // https://docs.stripe.com/webhooks#verify-manually
  stripe: {
    scheme: {
      header: 'stripe-signature',
      hash: 'SHA256',
      encoding: 'hex',
      list: { separator: ',', mark: 'v1=' },
      timestamp: { mark: 't=', toleranceSeconds: TOLERANCE_SECONDS },
      signed: ['timestamp', 'body'],
    },
    event_type_location: 'body.type',
    idempotency_keys: ['body.id'],
    forward_headers: [],
  },
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
  standard_webhooks: {
    scheme: {
      header: 'webhook-signature',
      hash: 'SHA256',
      encoding: 'base64',
      list: { separator: ' ', mark: 'v1,' },
      timestamp: { header: 'webhook-timestamp', toleranceSeconds: TOLERANCE_SECONDS },
      id: 'webhook-id',
      signed: ['id', 'timestamp', 'body'],
      isKeyBase64: true,
    },
    event_type_location: 'body.type',
    idempotency_keys: ['header.webhook-id'],
    forward_headers: [],
  },
} as const satisfies Record<string, Provider>;

export type ProviderName = keyof typeof PROVIDERS;

/** The provider of this name, if it is one. */
export function providerOf(name: string): Provider | undefined {
  return Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name as ProviderName] : undefined;
}
