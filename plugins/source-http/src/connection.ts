/** As in `connection.json`. */
export interface Connection {
  readonly verifier: Verifier;
  /** For requests without a type at `event_type_location`. */
  readonly event_type: string | null;
  /** Such as `header.X-Topic`, `body.type` or `query.type`. */
  readonly event_type_location: string | null;
  /** The locations of the parts of a request's idempotency key. */
  readonly idempotency_keys: readonly string[];
  readonly forward_headers: readonly string[];
  /** Requests are CloudEvents, which have their type and idempotency key. */
  readonly format?: 'cloudevents' | null;
  readonly custom_response: {
    readonly body: string;
    readonly content_type: 'application/json' | 'text/plain';
  } | null;
}

export interface Verifier {
  /** One of those below, `noop`, or a provider. */
  readonly type: string;
  readonly secret?: string | undefined;
  readonly basic_auth?: { readonly username: string; readonly password?: string };
  readonly api_key?: { readonly header_name: string; readonly header_value?: string };
  readonly hmac?: {
    readonly header: string;
    readonly hash: 'SHA1' | 'SHA256' | 'SHA512';
    readonly encoding: 'hex' | 'base64';
    readonly secret?: string;
  };
  readonly handshake?: { readonly type: string; readonly token?: string | undefined } | undefined;
}
