// Made from the document of the API by `npm run docs`: change the routes of the server instead.
import type { Caller, CallOptions } from './call.js';
import type { Pages } from './pages.js';

export interface AcceptedInvitation {
  readonly token: string;
  /** At least 12 characters. */
  readonly password: string;
  readonly first_name?: string | undefined;
  readonly last_name?: string | undefined;
}

export interface Activity {
  /** Length of a step: 60, 600 or 3600, by the range. */
  readonly step_seconds: number;
  /** Oldest first; steps in which nothing ended are left out. */
  readonly content: readonly {
    readonly at: string;
    readonly events: {
      readonly processed: number;
      readonly failed: number;
    };
    readonly deliveries: {
      readonly success: number;
      readonly failure: number;
      readonly discarded: number;
    };
    readonly attempts: {
      readonly success: number;
      readonly failure: number;
    };
  }[];
}

export interface ApiKey {
  readonly uid: string;
  readonly name: string;
  readonly type: 'personal' | 'project' | 'session';
  /** What a key begins with: `gw_…`. */
  readonly mask: string;
  /** What it may do at most; null: all that its user may, or everything in its project. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner' | null | null;
  /** Of what the role allows, what the key may do; `write` includes `read`. Null: all of it. */
  readonly scopes: readonly Scope[] | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** To about a minute. */
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  readonly project_id: string;
}

export interface AuditEntry {
  readonly uid: string;
  readonly organisation_id: string;
  readonly project_id: string | null;
  readonly created_at: string;
  readonly actor: {
    /** A user, or the key of a project, a portal link, or of the process. */
    readonly type: 'user' | 'project' | 'portal' | 'process';
    readonly id: string;
    /** The email address of a user, the name of a key; null when it is gone. */
    readonly name: string | null;
    readonly key_id: string | null;
  };
  /** The resource and what was done: `endpoints.update`. */
  readonly action: string;
  readonly resource_id: string | null;
  /** The fields that changed; secrets are masked, long values are told by their length. */
  readonly changes: Readonly<
    Record<
      string,
      {
        readonly before?: unknown | undefined;
        readonly after?: unknown | undefined;
      }
    >
  >;
  readonly address: string | null;
  readonly request_id: string;
}

export interface BatchReplay {
  readonly count: number;
  readonly dry_run: boolean;
  /** Give it as `after` to go on; null when all is done. */
  readonly next: string | null;
}

export interface BatchRetry {
  /** Sent again now. */
  readonly due: number;
  /** Sent again when their paused endpoint is activated. */
  readonly held: number;
  /** Left alone: their endpoint is inactive or deleted. */
  readonly left: number;
  /** From 0 to 1, by time. */
  readonly progress: number;
  readonly dry_run: boolean;
  /** Give it as `after` to go on; null when all is done. */
  readonly next: string | null;
}

export interface ChangedApiKey {
  readonly name?: string | undefined;
  /** What it may do at most; null: everything. */
  readonly role?: 'viewer' | 'member' | 'admin' | null | null | undefined;
  /** Of what the role allows, what the key may do; `write` includes `read`. Null: all of it. */
  readonly scopes?: readonly Scope[] | null | undefined;
}

export interface ChangedEndpoint {
  readonly name?: string | undefined;
  readonly url?: string | undefined;
  readonly owner_id?: string | null | undefined;
  readonly description?: string | undefined;
  readonly authentication?:
    | {
        readonly type: 'api_key' | 'basic' | 'bearer' | 'oauth2';
        readonly api_key?:
          | {
              readonly header_name: string;
              readonly header_value: string;
            }
          | undefined;
        readonly basic?:
          | {
              readonly username: string;
              readonly password: string;
            }
          | undefined;
        readonly bearer?:
          | {
              readonly token: string;
            }
          | undefined;
        readonly oauth2?:
          | {
              /** Of the token server, which is asked for client credentials (RFC 6749, 4.4). */
              readonly url: string;
              readonly client_id: string;
              readonly client_secret: string;
              readonly scope?: string | undefined;
              readonly audience?: string | undefined;
            }
          | undefined;
      }
    | null
    | undefined;
  readonly mtls_client_cert?:
    | {
        /** PEM of the certificate, and behind it those that lead to its authority. */
        readonly client_cert: string;
        /** PEM of its private key, without a passphrase. Left out or masked, the stored one stays. */
        readonly client_key?: string | undefined;
        /** Ignored. */
        readonly expires_at?: string | undefined;
      }
    | null
    | undefined;
  /** Seconds that a request may take; 10 when it is left out. */
  readonly http_timeout?: number | undefined;
  /** Requests under way at a time, per agent. */
  readonly concurrency?: number | null | undefined;
  readonly strategy?:
    | {
        /** `linear` waits the same time before each retry; `exponential` doubles it. */
        readonly type: 'linear' | 'exponential';
        /** Seconds before the first retry. */
        readonly duration: number;
        /** Retries after the first attempt. */
        readonly retry_count: number;
        /** Cap of the exponential wait. */
        readonly max_seconds?: number | undefined;
      }
    | null
    | undefined;
  /** Requests in `rate_limit_duration` at most, of all agents together; 0 is no limit, null the project's. */
  readonly rate_limit?: number | null | undefined;
  /** Seconds that `rate_limit` is for; 1 when it is left out. */
  readonly rate_limit_duration?: number | null | undefined;
}

export interface ChangedEventType {
  readonly description?: string | undefined;
  /** JSON Schema 2020-12 of the data; null when it is unknown. */
  readonly json_schema?: unknown | undefined;
  /** Data of such an event; null when none is known. It is not checked against the schema. */
  readonly example?: unknown | undefined;
  readonly deprecated?: boolean | undefined;
}

export interface ChangedMember {
  /** Each role includes what those before it may. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner';
}

export interface ChangedPassword {
  readonly current_password: string;
  /** At least 12 characters. */
  readonly password: string;
}

export interface ChangedPortalLink {
  readonly name?: string | undefined;
  /** Whether the owner may create, change, pause and delete endpoints and subscribe them: to any event of the project that names neither owner nor endpoint. */
  readonly can_manage_endpoint?: boolean | undefined;
}

export interface ChangedProject {
  readonly name?: string | undefined;
  readonly config?:
    | {
        readonly strategy?:
          | {
              /** `linear` waits the same time before each retry; `exponential` doubles it. */
              readonly type: 'linear' | 'exponential';
              /** Seconds before the first retry. */
              readonly duration: number;
              /** Retries after the first attempt. */
              readonly retry_count: number;
              /** Cap of the exponential wait. */
              readonly max_seconds?: number | undefined;
            }
          | undefined;
        readonly signature?:
          | {
              /** Header of the plain HMAC signature. */
              readonly header?: string | undefined;
              readonly hash?: 'SHA256' | 'SHA512' | undefined;
              readonly encoding?: 'hex' | 'base64' | undefined;
            }
          | undefined;
        readonly ratelimit?:
          | {
              /** Requests to one endpoint in `duration`, of all agents together; 0 is no limit. */
              readonly count: number;
              /** Seconds. */
              readonly duration: number;
            }
          | null
          | undefined;
        readonly circuit_breaker?:
          | {
              /** Percent of the requests that fail, at most `limits.failure_threshold`. */
              readonly failure_threshold?: number | undefined;
              /** Requests below which nothing is decided, at most `limits.minimum_request_count`. */
              readonly minimum_request_count?: number | undefined;
              /** Minutes over which requests are counted. */
              readonly observability_window?: number | undefined;
              /** Seconds until it is tried again; each further time twice as long. */
              readonly error_timeout?: number | undefined;
            }
          | null
          | undefined;
        readonly retention?:
          | {
              /** Whole days that finished events, event deliveries and delivery attempts are kept, instead of `retention.days`. */
              readonly days: number;
            }
          | null
          | undefined;
        /** Whether events of types that the project does not have are accepted; deprecated ones are. `accept` when it is left out. */
        readonly unknown_event_types?: 'accept' | 'reject' | undefined;
      }
    | undefined;
}

export interface ChangedSource {
  readonly name?: string | undefined;
  /** `pub_sub` reads a broker; `http` takes what is posted to its URL. */
  readonly type?: 'pub_sub' | 'http' | undefined;
  /** The connection stands under the name of the type; its schema is that of the plugin. */
  readonly pub_sub?:
    | {
        /** The source plugin: kafka, sqs, or one of a third party. */
        readonly type: string;
        /** Readers over all agents: members of the consumer group, or pollers of the queue. Each agent runs at least one. */
        readonly workers?: number | undefined;
        readonly [name: string]: unknown;
      }
    | undefined;
  readonly verifier?: Verifier | undefined;
  /** Of requests that have none at event_type_location. */
  readonly event_type?: string | null | undefined;
  /** Where a request has its event type, such as `header.X-Topic` or `body.type`. */
  readonly event_type_location?: string | null | undefined;
  /** Where a request has what makes up its idempotency key. */
  readonly idempotency_keys?: readonly string[] | undefined;
  /** Headers that travel with the event. */
  readonly forward_headers?: readonly string[] | undefined;
  /** The answer to requests that were accepted. */
  readonly custom_response?:
    | {
        readonly body: string;
        readonly content_type: 'application/json' | 'text/plain';
      }
    | null
    | undefined;
  /** JavaScript with a function transform(payload). */
  readonly body_function?: string | null | undefined;
  readonly is_disabled?: boolean | undefined;
  /** Whether messages of up to 64 KB are kept with their events, as they came: `GET /events/:id/message` shows them. */
  readonly keep_messages?: boolean | undefined;
}

export interface ChangedSubscription {
  readonly name?: string | undefined;
  readonly endpoint_id?: string | undefined;
  readonly filter_config?:
    | {
        /** `*` is every type, `order.*` every one that begins with `order.`. */
        readonly event_types?: readonly string[] | undefined;
        readonly filter?:
          | {
              readonly headers?: Readonly<Record<string, unknown>> | undefined;
              readonly body?: Readonly<Record<string, unknown>> | undefined;
            }
          | undefined;
      }
    | undefined;
  /** It matches nothing. */
  readonly is_disabled?: boolean | undefined;
  /** JavaScript with a function transform(payload), which gets the data of an event and returns what is sent. Not over a portal link. */
  readonly function?: string | null | undefined;
}

export interface ChangedUser {
  readonly first_name?: string | undefined;
  readonly last_name?: string | undefined;
}

export interface CompletedSignIn {
  /** The query of the address that the browser was sent back to. */
  readonly query: string;
}

export interface ConnectionTest {
  /** The connection stands under the name of the type; its schema is that of the plugin. */
  readonly pub_sub?:
    | {
        /** The source plugin: kafka, sqs, or one of a third party. */
        readonly type: string;
        /** Readers over all agents: members of the consumer group, or pollers of the queue. Each agent runs at least one. */
        readonly workers?: number | undefined;
        readonly [name: string]: unknown;
      }
    | undefined;
  /** Takes the connection of this source, or its secrets where pub_sub masks or omits them. */
  readonly source_id?: string | undefined;
}

export interface ConnectionTestResult {
  /** What should be changed although the connection works, in sentences. */
  readonly advice: string | null;
}

export interface CreatedApiKey {
  readonly uid: string;
  readonly name: string;
  readonly type: 'personal' | 'project' | 'session';
  /** What a key begins with: `gw_…`. */
  readonly mask: string;
  /** What it may do at most; null: all that its user may, or everything in its project. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner' | null | null;
  /** Of what the role allows, what the key may do; `write` includes `read`. Null: all of it. */
  readonly scopes: readonly Scope[] | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** To about a minute. */
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  readonly project_id: string;
  /** Shown this once. */
  readonly key: string;
}

export interface CreatedEvent {
  readonly uid: string;
  /** There was an event with this idempotency key: `uid` is its id. */
  readonly duplicate: boolean;
}

export interface CreatedEvents {
  readonly created: number;
  readonly duplicates: number;
  readonly rejected: number;
  /** In the order of the request: the id of each event, or why it was not created. */
  readonly content: readonly {
    readonly uid?: string | undefined;
    readonly duplicate?: boolean | undefined;
    readonly errors?:
      | readonly {
          readonly field: string;
          readonly sentence: string;
        }[]
      | undefined;
  }[];
}

export interface CreatedInvitation {
  readonly uid: string;
  readonly organisation_id: string;
  readonly email: string;
  /** Each role includes what those before it may. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner';
  readonly created_at: string;
  readonly expires_at: string;
  readonly accepted_at: string | null;
  readonly revoked_at: string | null;
  /** Shown this once: whoever has it can accept the invitation. */
  readonly token: string;
}

export interface CreatedPersonalKey {
  readonly uid: string;
  readonly name: string;
  readonly type: 'personal' | 'project' | 'session';
  /** What a key begins with: `gw_…`. */
  readonly mask: string;
  /** What it may do at most; null: all that its user may, or everything in its project. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner' | null | null;
  /** Of what the role allows, what the key may do; `write` includes `read`. Null: all of it. */
  readonly scopes: readonly Scope[] | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** To about a minute. */
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  /** Shown this once. */
  readonly key: string;
}

export interface CreatedPortalLink {
  readonly uid: string;
  readonly project_id: string;
  readonly name: string;
  /** Whose endpoints the link shows: those with this owner_id. */
  readonly owner_id: string;
  /** Whether the owner may create, change, pause and delete endpoints and subscribe them: to any event of the project that names neither owner nor endpoint. */
  readonly can_manage_endpoint: boolean;
  readonly auth_type: 'refresh_token';
  /** What its token begins with: `gw_…`. */
  readonly mask: string;
  readonly created_at: string;
  readonly expires_at: string;
  /** To about a minute. */
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  /** An API key of this link. Shown this once. */
  readonly token: string;
  /** Opens the portal, with the token in its fragment; null when the server has no dashboard. */
  readonly url: string | null;
}

export interface CreatedProject {
  readonly uid: string;
  readonly organisation_id: string;
  readonly name: string;
  readonly type: 'outgoing' | 'incoming';
  readonly config: {
    readonly strategy?:
      | {
          /** `linear` waits the same time before each retry; `exponential` doubles it. */
          readonly type: 'linear' | 'exponential';
          /** Seconds before the first retry. */
          readonly duration: number;
          /** Retries after the first attempt. */
          readonly retry_count: number;
          /** Cap of the exponential wait. */
          readonly max_seconds?: number | undefined;
        }
      | undefined;
    readonly signature?:
      | {
          /** Header of the plain HMAC signature. */
          readonly header?: string | undefined;
          readonly hash?: 'SHA256' | 'SHA512' | undefined;
          readonly encoding?: 'hex' | 'base64' | undefined;
        }
      | undefined;
    readonly ratelimit?:
      | {
          /** Requests to one endpoint in `duration`, of all agents together; 0 is no limit. */
          readonly count: number;
          /** Seconds. */
          readonly duration: number;
        }
      | null
      | undefined;
    readonly circuit_breaker?:
      | {
          /** Percent of the requests that fail, at most `limits.failure_threshold`. */
          readonly failure_threshold?: number | undefined;
          /** Requests below which nothing is decided, at most `limits.minimum_request_count`. */
          readonly minimum_request_count?: number | undefined;
          /** Minutes over which requests are counted. */
          readonly observability_window?: number | undefined;
          /** Seconds until it is tried again; each further time twice as long. */
          readonly error_timeout?: number | undefined;
        }
      | null
      | undefined;
    readonly retention?:
      | {
          /** Whole days that finished events, event deliveries and delivery attempts are kept, instead of `retention.days`. */
          readonly days: number;
        }
      | null
      | undefined;
    /** Whether events of types that the project does not have are accepted; deprecated ones are. `accept` when it is left out. */
    readonly unknown_event_types?: 'accept' | 'reject' | undefined;
  };
  readonly created_at: string;
  readonly updated_at: string;
  readonly api_key: {
    readonly uid: string;
    readonly name: string;
    readonly type: 'project';
    /** Shown this once. */
    readonly key: string;
    readonly created_at: string;
    readonly expires_at: string | null;
  };
}

export interface DeliveryAttempt {
  readonly uid: string;
  readonly project_id: string;
  readonly event_delivery_id: string;
  readonly endpoint_id: string;
  readonly requested_at: string;
  readonly duration_ms: number;
  /** From 1. */
  readonly number: number;
  /** It was delivered. */
  readonly status: boolean;
  readonly http_status: number | null;
  readonly error_class: string | null;
  readonly error: string | null;
  readonly url: string;
  readonly response_headers: Readonly<Record<string, string>> | null;
  readonly response_body: string | null;
}

export interface DiscardedMessages {
  readonly count: number;
  /** From 0 to 1, by time. */
  readonly progress: number;
  readonly dry_run: boolean;
  /** Give it as `after` to go on; null when all is done. */
  readonly next: string | null;
}

export interface Endpoint {
  readonly uid: string;
  readonly project_id: string;
  readonly name: string;
  readonly url: string;
  readonly owner_id: string | null;
  readonly description: string;
  readonly status: 'active' | 'inactive' | 'paused';
  readonly status_reason: string | null;
  readonly secrets: readonly {
    readonly uid: string;
    /** Masked, but in the answer that creates it. */
    readonly value: string;
    readonly created_at: string;
    readonly expires_at: string | null;
  }[];
  readonly authentication: {
    readonly type: 'api_key' | 'basic' | 'bearer' | 'oauth2';
    readonly api_key?:
      | {
          readonly header_name: string;
          readonly header_value: string;
        }
      | undefined;
    readonly basic?:
      | {
          readonly username: string;
          readonly password: string;
        }
      | undefined;
    readonly bearer?:
      | {
          readonly token: string;
        }
      | undefined;
    readonly oauth2?:
      | {
          /** Of the token server, which is asked for client credentials (RFC 6749, 4.4). */
          readonly url: string;
          readonly client_id: string;
          readonly client_secret: string;
          readonly scope?: string | undefined;
          readonly audience?: string | undefined;
        }
      | undefined;
  } | null;
  readonly mtls_client_cert: {
    /** PEM of the certificate, and behind it those that lead to its authority. */
    readonly client_cert: string;
    /** Masked. */
    readonly client_key: string;
    /** The certificate is not valid from then on. */
    readonly expires_at: string;
  } | null;
  /** Seconds that a request may take. */
  readonly http_timeout: number;
  readonly concurrency: number | null;
  readonly strategy: {
    /** `linear` waits the same time before each retry; `exponential` doubles it. */
    readonly type: 'linear' | 'exponential';
    /** Seconds before the first retry. */
    readonly duration: number;
    /** Retries after the first attempt. */
    readonly retry_count: number;
    /** Cap of the exponential wait. */
    readonly max_seconds?: number | undefined;
  } | null;
  readonly rate_limit: number | null;
  readonly rate_limit_duration: number | null;
  /** Null while KV is away. */
  readonly circuit_breaker: {
    readonly state: 'closed' | 'open' | 'half_open';
    readonly since: string | null;
    readonly until: string | null;
    readonly requests: number;
    readonly failures: number;
  } | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface EndpointActivity {
  /** Endpoints without an attempt are left out. */
  readonly content: readonly {
    readonly endpoint_id: string;
    readonly attempts: {
      readonly success: number;
      readonly failure: number;
    };
  }[];
}

export interface Event {
  readonly uid: string;
  readonly project_id: string;
  readonly occurred_at: string;
  readonly created_at: string;
  readonly source_id: string | null;
  /** Where its source had the message; `api` for one that was created here. */
  readonly coordinates: string;
  readonly event_type: string;
  readonly message_type: 'single' | 'fanout' | 'broadcast';
  readonly endpoint_id: string | null;
  readonly owner_id: string | null;
  readonly idempotency_key: string | null;
  readonly status: 'pending' | 'processed' | 'failed';
  /** Null while it is pending: docs/reference/errors.md lists them. */
  readonly outcome: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** What was left out of it, usually nothing. */
  readonly notes: readonly string[];
  /** Null in a list when it is larger than 16 KB. */
  readonly data: Readonly<Record<string, unknown>> | null;
  readonly data_bytes: number;
}

export interface EventDelivery {
  readonly uid: string;
  readonly project_id: string;
  readonly occurred_at: string;
  readonly event_id: string;
  readonly endpoint_id: string;
  /** Null when no subscription decided, as of events for an endpoint or an owner. */
  readonly subscription_id: string | null;
  readonly status: 'scheduled' | 'processing' | 'retry' | 'success' | 'failure' | 'discarded';
  readonly attempts: number;
  /** Times that it was taken from an agent that had died: each may be a second request. */
  readonly recovered: number;
  readonly next_attempt_at: string | null;
  /** Why it failed or was discarded, or what it waits for. */
  readonly reason: string | null;
  /** The function of its subscription has made what its endpoint gets. */
  readonly is_transformed: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly event_metadata: {
    readonly uid: string;
    readonly event_type: string | null;
  };
  readonly endpoint_metadata: {
    readonly uid: string;
    readonly name: string | null;
    readonly url: string | null;
    /** `active`, `paused`, `inactive` or `deleted`. */
    readonly status: string | null;
  };
}

export interface EventExplanation {
  readonly event: {
    readonly uid: string;
    readonly project_id: string;
    readonly project_name: string;
    readonly source_id: string | null;
    readonly source_name: string | null;
    readonly coordinates: string;
    readonly occurred_at: string;
    readonly accepted_at: string;
    readonly event_type: string;
    readonly message_type: 'single' | 'fanout' | 'broadcast';
    readonly endpoint_id: string | null;
    readonly owner_id: string | null;
    readonly idempotency_key: string | null;
    readonly idempotency_key_held_until: string | null;
    readonly status: 'pending' | 'processed' | 'failed';
    readonly outcome: string | null;
    /** The outcome in words; null while the event is pending. */
    readonly sentence: string | null;
    readonly notes: readonly string[];
    /** Of its message, when that was quarantined first. */
    readonly quarantine_status: string | null;
    /** Of its message, which `GET /events/:id/message` shows; null when none is stored. */
    readonly message_bytes: number | null;
  };
  /** What decides where the event goes. */
  readonly rule: 'broadcast' | 'endpoint_id' | 'owner_id' | 'subscriptions';
  readonly rule_sentence: string;
  /** An endpoint or owner of the project that is named nearly as the event names it. */
  readonly meant: string | null;
  /** Agents that run now. */
  readonly agents: number;
  /** Pending events that were accepted earlier, counted up to 1,000. */
  readonly pending_before: number | null;
  /** By status. */
  readonly delivery_counts: Readonly<Record<string, number>>;
  /** The first 100, successful ones last. */
  readonly deliveries: readonly {
    readonly uid: string;
    readonly endpoint_id: string;
    readonly endpoint_name: string | null;
    readonly endpoint_url: string | null;
    readonly endpoint_status: string | null;
    readonly endpoint_status_reason: string | null;
    readonly subscription_id: string | null;
    readonly status: string;
    readonly attempts: number;
    readonly recovered: number;
    readonly next_attempt_at: string | null;
    /** It has no time because its endpoint is paused. */
    readonly held: boolean;
    readonly reason: string | null;
    readonly updated_at: string;
    readonly attempted_at: string | null;
    readonly http_status: number | null;
    readonly error_class: string | null;
    readonly error: string | null;
  }[];
  /** As they are now, when they decide: up to 100, those that match first. */
  readonly subscriptions: readonly {
    readonly uid: string;
    readonly name: string;
    readonly endpoint_id: string;
    readonly matches: boolean;
    /** Why it does not match; null when it does. */
    readonly mismatch: {
      /** What does not match; `endpoint`: its endpoint was deleted; `filter`: its filter cannot be used. */
      readonly part:
        'deleted' | 'disabled' | 'endpoint' | 'event_types' | 'headers' | 'body' | 'filter';
      /** Where in the headers or the body, with dots. */
      readonly path?: string | undefined;
      readonly operator?: string | undefined;
      /** By the filter, or the event types of the subscription. Cut when it is long. */
      readonly wanted?: unknown | undefined;
      /** In the event; left out when there is nothing. Cut when it is long. */
      readonly found?: unknown | undefined;
      readonly sentence?: string | undefined;
    } | null;
    /** It was changed or deleted after the event was accepted. */
    readonly changed_since: boolean;
  }[];
  /** Of which `subscriptions` shows some. */
  readonly subscription_count: number;
  /** Where the event would go with the current configuration; with endpointId by the subscriptions of that endpoint. Null when more than 1,000 subscriptions may match: give endpointId. */
  readonly now: {
    readonly outcome: string;
    readonly sentence: string;
    /** The first 1,000. */
    readonly endpoint_ids: readonly string[];
    readonly endpoint_count: number;
  } | null;
}

export interface EventMessage {
  readonly uid: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that the function of the source got. Null: more than 64 KB, which are not kept. */
  readonly raw: string | null;
  readonly raw_encoding: 'utf8' | 'base64';
  readonly raw_bytes: number;
}

export interface EventType {
  readonly uid: string;
  readonly project_id: string;
  readonly name: string;
  readonly description: string;
  /** JSON Schema 2020-12 of the data; null when it is unknown. */
  readonly json_schema: unknown;
  /** Data of such an event; null when none is known. It is not checked against the schema. */
  readonly example: unknown;
  readonly created_at: string;
  readonly updated_at: string;
  readonly deprecated_at: string | null;
}

export interface FilterMatch {
  /** Event types, headers and body do. */
  readonly matches: boolean;
  readonly headers: boolean;
  readonly body: boolean;
  /** What does not match, and why: one of each part. */
  readonly mismatches: readonly {
    /** What does not match; `endpoint`: its endpoint was deleted; `filter`: its filter cannot be used. */
    readonly part:
      'deleted' | 'disabled' | 'endpoint' | 'event_types' | 'headers' | 'body' | 'filter';
    /** Where in the headers or the body, with dots. */
    readonly path?: string | undefined;
    readonly operator?: string | undefined;
    /** By the filter, or the event types of the subscription. Cut when it is long. */
    readonly wanted?: unknown | undefined;
    /** In the event; left out when there is nothing. Cut when it is long. */
    readonly found?: unknown | undefined;
    readonly sentence?: string | undefined;
  }[];
}

export interface FilterTest {
  /** `*` is every type, `order.*` every one that begins with `order.`. */
  readonly event_types?: readonly string[] | undefined;
  readonly filter: {
    readonly headers?: Readonly<Record<string, unknown>> | undefined;
    readonly body?: Readonly<Record<string, unknown>> | undefined;
  };
  readonly sample: {
    /** Left out: the event types are not tested. */
    readonly event_type?: string | undefined;
    readonly headers?: Readonly<Record<string, string>> | undefined;
    /** The data of an event. */
    readonly body?: Readonly<Record<string, unknown>> | undefined;
  };
}

export interface FunctionTest {
  /** JavaScript with a function transform(payload). */
  readonly function?: string | undefined;
  /** Runs the stored function of this source; if it has none, the message stands as it is. */
  readonly source_id?: string | undefined;
  /** The message: any JSON, as it stands here byte for byte. */
  readonly payload?: unknown | undefined;
  /** The bytes of the message in place of payload, which need not be JSON. */
  readonly raw?: string | undefined;
  readonly raw_encoding?: 'utf8' | 'base64' | undefined;
  /** Takes this quarantined message, with raw in place of its bytes, and without a function that of its source. */
  readonly quarantine_id?: string | undefined;
  /** The same with the message that is kept of this event. */
  readonly event_id?: string | undefined;
  /** Of the message, for filters. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly type?: 'body' | undefined;
}

export interface FunctionTestResult {
  readonly outcome: 'accepted' | 'dropped' | 'quarantined';
  /** Why the message would be quarantined. */
  readonly refusal: {
    /** docs/reference/errors.md lists them. */
    readonly code: string;
    readonly reason: string;
    /** Of the function, if that is known. */
    readonly line: number | null;
  } | null;
  /** Null when the function was not called. */
  readonly duration_ms: number | null;
  /** What the function wrote to its console. */
  readonly log: readonly string[];
  readonly result_count: number;
  /** One for each object that the function returned, up to 20; the first 5 with their routes of up to 100 endpoints and subscriptions. */
  readonly results: readonly {
    /** What the function returned, as JSON. */
    readonly payload: unknown;
    /** Why the message would be quarantined. */
    readonly refusal: {
      /** docs/reference/errors.md lists them. */
      readonly code: string;
      readonly reason: string;
      /** Of the function, if that is known. */
      readonly line: number | null;
    } | null;
    readonly notes: readonly string[];
    readonly route: {
      readonly rule: 'broadcast' | 'endpoint_id' | 'owner_id' | 'subscriptions';
      readonly outcome: string;
      readonly sentence: string;
      readonly endpoint_count: number;
      readonly endpoints: readonly {
        readonly uid: string;
        readonly name: string;
        readonly subscription_id: string | null;
      }[];
      readonly subscriptions: readonly {
        readonly uid: string;
        readonly name: string;
        readonly matches: boolean;
        readonly mismatch: {
          /** What does not match; `endpoint`: its endpoint was deleted; `filter`: its filter cannot be used. */
          readonly part:
            'deleted' | 'disabled' | 'endpoint' | 'event_types' | 'headers' | 'body' | 'filter';
          /** Where in the headers or the body, with dots. */
          readonly path?: string | undefined;
          readonly operator?: string | undefined;
          /** By the filter, or the event types of the subscription. Cut when it is long. */
          readonly wanted?: unknown | undefined;
          /** In the event; left out when there is nothing. Cut when it is long. */
          readonly found?: unknown | undefined;
          readonly sentence?: string | undefined;
        } | null;
      }[];
    } | null;
  }[];
}

export interface ImportedEventTypes {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly content: readonly {
    readonly name: string;
    readonly result: 'created' | 'updated' | 'unchanged';
  }[];
}

export interface InstanceFeatureFlag {
  readonly name: string;
  readonly enabled: boolean;
  /** The flag, variable or file that set it, or `default`. */
  readonly origin: string;
  readonly stability: 'experimental' | 'beta' | 'stable';
  /** The package of the plugin that declares it. */
  readonly declared_by: string;
  readonly summary: string;
}

export interface InstanceHealth {
  readonly server: {
    readonly version: string;
    readonly state: 'ok' | 'degraded' | 'down';
    readonly components: readonly {
      readonly name: string;
      readonly state: 'ok' | 'degraded' | 'down';
      readonly reason?: string | undefined;
      readonly since: string;
    }[];
  };
  /** Oldest first, up to 1000. `/healthz` of each tells more. */
  readonly agents: readonly {
    readonly id: number;
    readonly name: string;
    /** Dead: its heartbeats have ended, and others take over its deliveries. */
    readonly state: 'alive' | 'dead';
    readonly reads_sources: boolean;
    readonly started_at: string;
    /** It is dead when it sends no heartbeat until then. */
    readonly expires_at: string;
  }[];
}

export interface InstanceLicense {
  readonly kind: 'community' | 'licensed';
  readonly organisation: string | null;
  readonly entitlements: readonly string[];
  /** No installed plugin declares them: they have no effect. */
  readonly unknown_entitlements: readonly string[];
  readonly issued_at: string | null;
  readonly expires_at: string | null;
  readonly days_left: number | null;
  /** Why the given token is not in force; the community licence is then. */
  readonly problem: {
    readonly code: string;
    readonly sentence: string;
    readonly fix: string;
  } | null;
}

export interface InstancePlugin {
  readonly name: string;
  readonly kind: 'source' | 'tracer' | 'metrics' | 'unknown';
  readonly version: string;
  /** `the installation`, or the folder of the plugin. */
  readonly from: string;
  readonly state: 'active' | 'inactive';
  readonly code?: string | undefined;
  /** Why it is inactive. */
  readonly reason?: string | undefined;
  readonly fix?: string | undefined;
}

export interface InstanceSetting {
  readonly key: string;
  /** Masked for secrets; null when it is not set. */
  readonly value: unknown;
  /** Null when there is none. */
  readonly default: unknown;
  /** The flag, variable or file that set it, or `default`. */
  readonly origin: string;
  readonly summary: string;
}

export interface Invitation {
  readonly uid: string;
  readonly organisation_id: string;
  readonly email: string;
  /** Each role includes what those before it may. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner';
  readonly created_at: string;
  readonly expires_at: string;
  readonly accepted_at: string | null;
  readonly revoked_at: string | null;
}

export interface InvitationToken {
  readonly token: string;
}

export interface Login {
  readonly email: string;
  readonly password: string;
}

export interface Member {
  readonly uid: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  /** Each role includes what those before it may. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner';
  readonly created_at: string;
}

export interface Membership {
  readonly uid: string;
  readonly name: string;
  readonly created_at: string;
  readonly updated_at: string;
  /** Each role includes what those before it may. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner';
}

export interface NewApiKey {
  readonly name: string;
  /** What it may do at most; null: everything. */
  readonly role?: 'viewer' | 'member' | 'admin' | null | null | undefined;
  /** Of what the role allows, what the key may do; `write` includes `read`. Null: all of it. */
  readonly scopes?: readonly Scope[] | null | undefined;
  readonly expires_at?: string | null | undefined;
}

export interface NewBroadcastEvent {
  readonly event_type: string;
  /** Sent to the endpoints byte for byte as it stands here. */
  readonly data: {
    readonly [name: string]: unknown;
  };
  readonly custom_headers?: Readonly<Record<string, string>> | undefined;
  readonly idempotency_key?: string | undefined;
}

export interface NewEndpoint {
  readonly name: string;
  readonly url: string;
  /** `whsec_` and base64 of 24 to 64 bytes, or any text of 12 characters or more, whose UTF-8 bytes are the key; made when it is left out. */
  readonly secret?: string | undefined;
  readonly owner_id?: string | null | undefined;
  readonly description?: string | undefined;
  readonly authentication?:
    | {
        readonly type: 'api_key' | 'basic' | 'bearer' | 'oauth2';
        readonly api_key?:
          | {
              readonly header_name: string;
              readonly header_value: string;
            }
          | undefined;
        readonly basic?:
          | {
              readonly username: string;
              readonly password: string;
            }
          | undefined;
        readonly bearer?:
          | {
              readonly token: string;
            }
          | undefined;
        readonly oauth2?:
          | {
              /** Of the token server, which is asked for client credentials (RFC 6749, 4.4). */
              readonly url: string;
              readonly client_id: string;
              readonly client_secret: string;
              readonly scope?: string | undefined;
              readonly audience?: string | undefined;
            }
          | undefined;
      }
    | null
    | undefined;
  readonly mtls_client_cert?:
    | {
        /** PEM of the certificate, and behind it those that lead to its authority. */
        readonly client_cert: string;
        /** PEM of its private key, without a passphrase. Left out or masked, the stored one stays. */
        readonly client_key?: string | undefined;
        /** Ignored. */
        readonly expires_at?: string | undefined;
      }
    | null
    | undefined;
  /** Seconds that a request may take; 10 when it is left out. */
  readonly http_timeout?: number | undefined;
  /** Requests under way at a time, per agent. */
  readonly concurrency?: number | null | undefined;
  readonly strategy?:
    | {
        /** `linear` waits the same time before each retry; `exponential` doubles it. */
        readonly type: 'linear' | 'exponential';
        /** Seconds before the first retry. */
        readonly duration: number;
        /** Retries after the first attempt. */
        readonly retry_count: number;
        /** Cap of the exponential wait. */
        readonly max_seconds?: number | undefined;
      }
    | null
    | undefined;
  /** Requests in `rate_limit_duration` at most, of all agents together; 0 is no limit, null the project's. */
  readonly rate_limit?: number | null | undefined;
  /** Seconds that `rate_limit` is for; 1 when it is left out. */
  readonly rate_limit_duration?: number | null | undefined;
}

export interface NewEvent {
  readonly event_type: string;
  /** Sent to the endpoints byte for byte as it stands here. */
  readonly data: {
    readonly [name: string]: unknown;
  };
  readonly custom_headers?: Readonly<Record<string, string>> | undefined;
  readonly idempotency_key?: string | undefined;
  readonly endpoint_id?: string | undefined;
}

export interface NewEventType {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema 2020-12 of the data; null when it is unknown. */
  readonly json_schema?: unknown | undefined;
  /** Data of such an event; null when none is known. It is not checked against the schema. */
  readonly example?: unknown | undefined;
  readonly deprecated?: boolean | undefined;
}

export interface NewEvents {
  readonly events: readonly {
    readonly event_type: string;
    /** Sent to the endpoints byte for byte as it stands here. */
    readonly data: {
      readonly [name: string]: unknown;
    };
    readonly custom_headers?: Readonly<Record<string, string>> | undefined;
    readonly idempotency_key?: string | undefined;
    readonly endpoint_id?: string | undefined;
    readonly owner_id?: string | undefined;
  }[];
}

export interface NewFanoutEvent {
  readonly event_type: string;
  /** Sent to the endpoints byte for byte as it stands here. */
  readonly data: {
    readonly [name: string]: unknown;
  };
  readonly custom_headers?: Readonly<Record<string, string>> | undefined;
  readonly idempotency_key?: string | undefined;
  readonly owner_id: string;
}

export interface NewInvitation {
  readonly email: string;
  /** Each role includes what those before it may. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner';
}

export interface NewPortalLink {
  readonly name: string;
  readonly owner_id: string;
  /** Whether the owner may create, change, pause and delete endpoints and subscribe them: to any event of the project that names neither owner nor endpoint. */
  readonly can_manage_endpoint?: boolean | undefined;
  /** When the token ends, within a year; a day from now when it is left out. */
  readonly expires_at?: string | undefined;
}

export interface NewProject {
  readonly name: string;
  readonly type?: 'outgoing' | 'incoming' | undefined;
  readonly organisation_id?: string | undefined;
  readonly config?:
    | {
        readonly strategy?:
          | {
              /** `linear` waits the same time before each retry; `exponential` doubles it. */
              readonly type: 'linear' | 'exponential';
              /** Seconds before the first retry. */
              readonly duration: number;
              /** Retries after the first attempt. */
              readonly retry_count: number;
              /** Cap of the exponential wait. */
              readonly max_seconds?: number | undefined;
            }
          | undefined;
        readonly signature?:
          | {
              /** Header of the plain HMAC signature. */
              readonly header?: string | undefined;
              readonly hash?: 'SHA256' | 'SHA512' | undefined;
              readonly encoding?: 'hex' | 'base64' | undefined;
            }
          | undefined;
        readonly ratelimit?:
          | {
              /** Requests to one endpoint in `duration`, of all agents together; 0 is no limit. */
              readonly count: number;
              /** Seconds. */
              readonly duration: number;
            }
          | null
          | undefined;
        readonly circuit_breaker?:
          | {
              /** Percent of the requests that fail, at most `limits.failure_threshold`. */
              readonly failure_threshold?: number | undefined;
              /** Requests below which nothing is decided, at most `limits.minimum_request_count`. */
              readonly minimum_request_count?: number | undefined;
              /** Minutes over which requests are counted. */
              readonly observability_window?: number | undefined;
              /** Seconds until it is tried again; each further time twice as long. */
              readonly error_timeout?: number | undefined;
            }
          | null
          | undefined;
        readonly retention?:
          | {
              /** Whole days that finished events, event deliveries and delivery attempts are kept, instead of `retention.days`. */
              readonly days: number;
            }
          | null
          | undefined;
        /** Whether events of types that the project does not have are accepted; deprecated ones are. `accept` when it is left out. */
        readonly unknown_event_types?: 'accept' | 'reject' | undefined;
      }
    | undefined;
}

export interface NewSecret {
  /** `whsec_` and base64 of 24 to 64 bytes, or any text of 12 characters or more, whose UTF-8 bytes are the key; made when it is left out. */
  readonly secret?: string | undefined;
  /** Hours for which the present secrets still sign; 0 ends them now. */
  readonly expiration?: number | undefined;
}

export interface NewSource {
  readonly name: string;
  /** `pub_sub` reads a broker; `http` takes what is posted to its URL. */
  readonly type: 'pub_sub' | 'http';
  /** The connection stands under the name of the type; its schema is that of the plugin. */
  readonly pub_sub?:
    | {
        /** The source plugin: kafka, sqs, or one of a third party. */
        readonly type: string;
        /** Readers over all agents: members of the consumer group, or pollers of the queue. Each agent runs at least one. */
        readonly workers?: number | undefined;
        readonly [name: string]: unknown;
      }
    | undefined;
  readonly verifier?: Verifier | undefined;
  /** Of requests that have none at event_type_location. */
  readonly event_type?: string | null | undefined;
  /** Where a request has its event type, such as `header.X-Topic` or `body.type`. */
  readonly event_type_location?: string | null | undefined;
  /** Where a request has what makes up its idempotency key. */
  readonly idempotency_keys?: readonly string[] | undefined;
  /** Headers that travel with the event. */
  readonly forward_headers?: readonly string[] | undefined;
  /** The answer to requests that were accepted. */
  readonly custom_response?:
    | {
        readonly body: string;
        readonly content_type: 'application/json' | 'text/plain';
      }
    | null
    | undefined;
  /** JavaScript with a function transform(payload). */
  readonly body_function?: string | null | undefined;
  readonly is_disabled?: boolean | undefined;
  /** Whether messages of up to 64 KB are kept with their events, as they came: `GET /events/:id/message` shows them. */
  readonly keep_messages?: boolean | undefined;
}

export interface NewSubscription {
  readonly name: string;
  readonly endpoint_id: string;
  readonly filter_config?:
    | {
        /** `*` is every type, `order.*` every one that begins with `order.`. */
        readonly event_types?: readonly string[] | undefined;
        readonly filter?:
          | {
              readonly headers?: Readonly<Record<string, unknown>> | undefined;
              readonly body?: Readonly<Record<string, unknown>> | undefined;
            }
          | undefined;
      }
    | undefined;
  /** It matches nothing. */
  readonly is_disabled?: boolean | undefined;
  /** JavaScript with a function transform(payload), which gets the data of an event and returns what is sent. Not over a portal link. */
  readonly function?: string | null | undefined;
}

export interface NewTestEvent {
  readonly event_type?: string | undefined;
  /** When it is left out, the `example` of the event type is sent, or the first of `examples` in its schema. */
  readonly data?:
    | {
        readonly [name: string]: unknown;
      }
    | undefined;
}

/** OpenAPI 3.0 or 3.1, in JSON. */
export interface OpenApiDocument {
  readonly [name: string]: unknown;
}

export interface OpenInvitation {
  readonly email: string;
  readonly role: 'viewer' | 'member' | 'admin' | 'owner';
  /** Its name. */
  readonly organisation: string;
  /** Whether a user has this email address: that user accepts with the password of the account. */
  readonly has_account: boolean;
  readonly expires_at: string;
}

export interface Organisation {
  readonly uid: string;
  readonly name: string;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface OrganisationName {
  readonly name: string;
}

export interface PersonalKey {
  readonly uid: string;
  readonly name: string;
  readonly type: 'personal' | 'project' | 'session';
  /** What a key begins with: `gw_…`. */
  readonly mask: string;
  /** What it may do at most; null: all that its user may, or everything in its project. */
  readonly role: 'viewer' | 'member' | 'admin' | 'owner' | null | null;
  /** Of what the role allows, what the key may do; `write` includes `read`. Null: all of it. */
  readonly scopes: readonly Scope[] | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** To about a minute. */
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}

export interface Portal {
  readonly project_id: string;
  readonly project_name: string;
  readonly name: string;
  readonly owner_id: string;
  readonly can_manage_endpoint: boolean;
  readonly expires_at: string;
}

export interface PortalLink {
  readonly uid: string;
  readonly project_id: string;
  readonly name: string;
  /** Whose endpoints the link shows: those with this owner_id. */
  readonly owner_id: string;
  /** Whether the owner may create, change, pause and delete endpoints and subscribe them: to any event of the project that names neither owner nor endpoint. */
  readonly can_manage_endpoint: boolean;
  readonly auth_type: 'refresh_token';
  /** What its token begins with: `gw_…`. */
  readonly mask: string;
  readonly created_at: string;
  readonly expires_at: string;
  /** To about a minute. */
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}

export interface PortalLinkRefresh {
  /** When the token ends, within a year; a day from now when it is left out. */
  readonly expires_at?: string | undefined;
}

export interface Project {
  readonly uid: string;
  readonly organisation_id: string;
  readonly name: string;
  readonly type: 'outgoing' | 'incoming';
  readonly config: {
    readonly strategy?:
      | {
          /** `linear` waits the same time before each retry; `exponential` doubles it. */
          readonly type: 'linear' | 'exponential';
          /** Seconds before the first retry. */
          readonly duration: number;
          /** Retries after the first attempt. */
          readonly retry_count: number;
          /** Cap of the exponential wait. */
          readonly max_seconds?: number | undefined;
        }
      | undefined;
    readonly signature?:
      | {
          /** Header of the plain HMAC signature. */
          readonly header?: string | undefined;
          readonly hash?: 'SHA256' | 'SHA512' | undefined;
          readonly encoding?: 'hex' | 'base64' | undefined;
        }
      | undefined;
    readonly ratelimit?:
      | {
          /** Requests to one endpoint in `duration`, of all agents together; 0 is no limit. */
          readonly count: number;
          /** Seconds. */
          readonly duration: number;
        }
      | null
      | undefined;
    readonly circuit_breaker?:
      | {
          /** Percent of the requests that fail, at most `limits.failure_threshold`. */
          readonly failure_threshold?: number | undefined;
          /** Requests below which nothing is decided, at most `limits.minimum_request_count`. */
          readonly minimum_request_count?: number | undefined;
          /** Minutes over which requests are counted. */
          readonly observability_window?: number | undefined;
          /** Seconds until it is tried again; each further time twice as long. */
          readonly error_timeout?: number | undefined;
        }
      | null
      | undefined;
    readonly retention?:
      | {
          /** Whole days that finished events, event deliveries and delivery attempts are kept, instead of `retention.days`. */
          readonly days: number;
        }
      | null
      | undefined;
    /** Whether events of types that the project does not have are accepted; deprecated ones are. `accept` when it is left out. */
    readonly unknown_event_types?: 'accept' | 'reject' | undefined;
  };
  readonly created_at: string;
  readonly updated_at: string;
}

export interface QuarantineEdit {
  /** The new bytes. */
  readonly raw: string;
  readonly raw_encoding?: 'utf8' | 'base64' | undefined;
}

export interface QuarantinedMessage {
  readonly uid: string;
  readonly project_id: string;
  readonly source_id: string;
  readonly occurred_at: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: 'quarantined' | 'replayed' | 'discarded';
  /** Where the source had it: topic, partition and offset, or the message id of the queue. */
  readonly coordinates: string;
  readonly code: string;
  readonly reason: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly edited_at: string | null;
  /** Of the bytes that a replay uses. */
  readonly raw_bytes: number;
}

export interface ReplayedEvent {
  readonly uid: string;
}

export interface ReplayedMessage {
  readonly uid: string;
  /** `accepted`: a replay would create events; `duplicate`: its events are there already; `dropped`: by its function; `refused`: it stays in quarantine. */
  readonly outcome: 'accepted' | 'replayed' | 'duplicate' | 'dropped' | 'refused';
  readonly event_ids: readonly string[];
  /** Why it is still refused. */
  readonly code: string | null;
  readonly reason: string | null;
}

export interface ReplayedMessages {
  /** Replayed messages. In a dry run: messages that would create events. */
  readonly replayed: number;
  /** Their events are there already. */
  readonly duplicates: number;
  /** By the function of their source. */
  readonly dropped: number;
  /** Still in quarantine. */
  readonly refused: number;
  /** Replayed, discarded or edited by somebody else meanwhile. */
  readonly changed: number;
  /** From 0 to 1, by time. */
  readonly progress: number;
  readonly dry_run: boolean;
  /** Give it as `after` to go on; null when all is done. */
  readonly next: string | null;
}

export interface Resend {
  readonly ids: readonly string[];
}

export interface Resent {
  readonly resent: number;
  readonly content: readonly {
    readonly uid: string;
    /** Why it is not sent again. */
    readonly error: string | null;
  }[];
}

export type Scope =
  | 'organisations:read'
  | 'organisations:write'
  | 'members:read'
  | 'members:write'
  | 'invitations:read'
  | 'invitations:write'
  | 'users:read'
  | 'users:write'
  | 'projects:read'
  | 'projects:write'
  | 'summary:read'
  | 'activity:read'
  | 'apiKeys:read'
  | 'apiKeys:write'
  | 'portalLinks:read'
  | 'portalLinks:write'
  | 'auditLog:read'
  | 'endpoints:read'
  | 'endpoints:write'
  | 'subscriptions:read'
  | 'subscriptions:write'
  | 'sources:read'
  | 'sources:write'
  | 'eventTypes:read'
  | 'eventTypes:write'
  | 'events:read'
  | 'events:write'
  | 'eventDeliveries:read'
  | 'eventDeliveries:write'
  | 'quarantine:read'
  | 'quarantine:write'
  | 'instance:read';

export interface SentEvent {
  readonly uid: string;
  readonly occurred_at: string;
  readonly event_type: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null when its subscription has a function that has not made it yet. */
  readonly data: Readonly<Record<string, unknown>> | null;
  /** The function of its subscription made the data. */
  readonly is_transformed: boolean;
  readonly data_bytes: number;
}

export interface Session {
  readonly user: User;
  readonly organisations: readonly {
    readonly uid: string;
    readonly name: string;
    readonly role: 'viewer' | 'member' | 'admin' | 'owner';
    readonly created_at: string;
    readonly updated_at: string;
  }[];
  /** Whether the user may see the settings, plugins and health of the instance. */
  readonly is_instance_admin: boolean;
  /** The session, or the key, that the request carried. */
  readonly key_id: string;
  /** Requests of the session that are no GET carry it in the header `x-csrf-token`. */
  readonly csrf_token: string;
  readonly expires_at: string;
}

export interface SignInMethods {
  /** Email address and password. */
  readonly password: boolean;
  readonly oidc: {
    /** Name of the OpenID Connect provider. */
    readonly label: string;
  } | null;
}

export interface Source {
  readonly uid: string;
  readonly project_id: string;
  readonly name: string;
  readonly type: 'pub_sub' | 'http';
  /** Null for sources of the type http. */
  readonly pub_sub: {
    /** The source plugin: kafka, sqs, or one of a third party. */
    readonly type: string;
    /** Readers over all agents: members of the consumer group, or pollers of the queue. Each agent runs at least one. */
    readonly workers?: number | undefined;
    readonly [name: string]: unknown;
  } | null;
  readonly mask_id: string | null;
  /** Where providers post to; a path when the server does not know its public name. */
  readonly url: string | null;
  readonly verifier: {
    /** `noop` accepts every request; the last ones are signatures of providers, which need `secret` alone. */
    readonly type:
      | 'noop'
      | 'basic_auth'
      | 'api_key'
      | 'hmac'
      | 'github'
      | 'shopify'
      | 'stripe'
      | 'slack'
      | 'zoom'
      | 'standard_webhooks';
    /** What the provider signs with. */
    readonly secret?: string | undefined;
    readonly basic_auth?:
      | {
          readonly username: string;
          /**  */
          readonly password?: string | undefined;
        }
      | undefined;
    readonly api_key?:
      | {
          readonly header_name: string;
          /**  */
          readonly header_value?: string | undefined;
        }
      | undefined;
    readonly hmac?:
      | {
          readonly header: string;
          readonly hash: 'SHA256' | 'SHA512';
          readonly encoding: 'hex' | 'base64';
          /**  */
          readonly secret?: string | undefined;
        }
      | undefined;
    /** The request by which the provider checks the URL. It is answered and makes no event. */
    readonly handshake?:
      | {
          readonly type:
            | 'hub_challenge'
            | 'websub'
            | 'slack'
            | 'monday'
            | 'microsoft_graph'
            | 'event_grid'
            | 'dropbox'
            | 'okta'
            | 'zoom'
            | 'x'
            | 'reachable';
          /** The expected `hub.verify_token`: required for `hub_challenge`, optional for `websub`. */
          readonly token?: string | undefined;
        }
      | undefined;
  } | null;
  /** Of requests that have none at event_type_location. */
  readonly event_type: string | null;
  /** Where a request has its event type, such as `header.X-Topic` or `body.type`. */
  readonly event_type_location: string | null;
  /** Where a request has what makes up its idempotency key. */
  readonly idempotency_keys: readonly string[] | null;
  /** Headers that travel with the event. */
  readonly forward_headers: readonly string[] | null;
  /** The answer to requests that were accepted. */
  readonly custom_response: {
    readonly body: string;
    readonly content_type: 'application/json' | 'text/plain';
  } | null;
  readonly body_function: string | null;
  readonly is_disabled: boolean;
  readonly keep_messages: boolean;
  readonly paused_at: string | null;
  /** When it is read again by itself; null while a person has paused it. */
  readonly resumes_at: string | null;
  readonly pause_reason: string | null;
  /** The agent, or the user or API key. */
  readonly paused_by: string | null;
  /** One after the other; 0 after a changed function, a resumption, or when it is enabled again. */
  readonly pauses: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface SourceLag {
  readonly uid: string;
  /** Messages at the broker that are not acknowledged yet; null when it is not known. */
  readonly messages: number | null;
  readonly partition_count: number;
  /** The 1000 with the largest lag, that one first. */
  readonly partitions: readonly {
    /** Empty for a queue. */
    readonly partition: string;
    readonly messages: number;
    /** Place of the next message; of Kafka an offset. Null for a queue. */
    readonly position: string | null;
    /** Place of the next message that will be produced. Null for a queue. */
    readonly end: string | null;
  }[];
  readonly reported_at: string | null;
  /** Why the lag is not known, in a sentence. */
  readonly reason: string | null;
}

export interface SourcePlugin {
  /** The `type` of a `pub_sub`, which has the connection under this name. */
  readonly name: string;
  /** JSON Schema of the connection. Fields with `x-secret` are masked in answers. */
  readonly connection: {
    readonly [name: string]: unknown;
  };
}

export interface SourceState {
  readonly uid: string;
  readonly name: string;
  /** `active`: an agent reads it, or it takes requests. `unknown`: no agent has told within half a minute. */
  readonly state: 'active' | 'connecting' | 'failing' | 'paused' | 'disabled' | 'unknown';
  /** Why it is not active, in sentences. */
  readonly reason: string | null;
  /** Messages at the broker that are not acknowledged yet; null when it is not known. */
  readonly messages: number | null;
  readonly reported_at: string | null;
}

export interface StartedSignIn {
  readonly url: string;
}

export interface Subscription {
  readonly uid: string;
  readonly project_id: string;
  readonly name: string;
  readonly endpoint_id: string;
  readonly is_disabled: boolean;
  /** Null over a portal link. */
  readonly function: string | null;
  readonly filter_config: {
    readonly event_types: readonly string[];
    readonly filter: {
      readonly headers: Readonly<Record<string, unknown>>;
      readonly body: Readonly<Record<string, unknown>>;
    };
  };
  readonly created_at: string;
  readonly updated_at: string;
}

export interface SubscriptionFunctionTest {
  /** JavaScript with a function transform(payload). */
  readonly function?: string | undefined;
  /** Runs the stored function of this subscription. */
  readonly subscription_id?: string | undefined;
  /** The data of an event: any JSON, as it stands here byte for byte. */
  readonly payload?: unknown | undefined;
  /** Takes the data of this event in place of payload. */
  readonly event_id?: string | undefined;
  readonly type?: 'body' | undefined;
}

export interface SubscriptionFunctionTestResult {
  /** Of null nothing is sent: `dropped`. */
  readonly outcome: 'accepted' | 'dropped' | 'failed';
  /** Why the attempt would fail. */
  readonly refusal: {
    /** docs/reference/errors.md lists them. */
    readonly code: string;
    readonly reason: string;
    /** Of the function, if that is known. */
    readonly line: number | null;
  } | null;
  /** Null when the function was not called. */
  readonly duration_ms: number | null;
  /** What the function wrote to its console. */
  readonly log: readonly string[];
  /** What would be sent; null unless it is accepted. */
  readonly payload: unknown;
}

export interface Summary {
  /** Counted up to 10000. */
  readonly pending_events: number;
  readonly oldest_pending_seconds: number | null;
  /** Counted up to 10000. */
  readonly waiting_deliveries: number;
  /** Counted up to 10000. */
  readonly held_deliveries: number;
  /** Counted up to 10000. */
  readonly processing_deliveries: number;
  /** Counted up to 10000. */
  readonly quarantined_messages: number;
  readonly endpoints: {
    readonly active: number;
    readonly paused: number;
    readonly inactive: number;
  };
  readonly sources: {
    readonly running: number;
    readonly paused: number;
    readonly disabled: number;
  };
  /** From the message to the first answer, of the last 1,000 deliveries that succeeded; null before the first. */
  readonly latency_ms: {
    /** Milliseconds. */
    readonly p50: number;
    /** Milliseconds. */
    readonly p95: number;
    /** Milliseconds. */
    readonly p99: number;
    readonly deliveries: number;
  } | null;
}

export interface TestEvent {
  readonly uid: string;
  readonly event_delivery_id: string;
}

export interface User {
  readonly uid: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface Verifier {
  /** `noop` accepts every request; the last ones are signatures of providers, which need `secret` alone. */
  readonly type:
    | 'noop'
    | 'basic_auth'
    | 'api_key'
    | 'hmac'
    | 'github'
    | 'shopify'
    | 'stripe'
    | 'slack'
    | 'zoom'
    | 'standard_webhooks';
  /** What the provider signs with. */
  readonly secret?: string | undefined;
  readonly basic_auth?:
    | {
        readonly username: string;
        /**  */
        readonly password?: string | undefined;
      }
    | undefined;
  readonly api_key?:
    | {
        readonly header_name: string;
        /**  */
        readonly header_value?: string | undefined;
      }
    | undefined;
  readonly hmac?:
    | {
        readonly header: string;
        readonly hash: 'SHA256' | 'SHA512';
        readonly encoding: 'hex' | 'base64';
        /**  */
        readonly secret?: string | undefined;
      }
    | undefined;
  /** The request by which the provider checks the URL. It is answered and makes no event. */
  readonly handshake?:
    | {
        readonly type:
          | 'hub_challenge'
          | 'websub'
          | 'slack'
          | 'monday'
          | 'microsoft_graph'
          | 'event_grid'
          | 'dropbox'
          | 'okta'
          | 'zoom'
          | 'x'
          | 'reachable';
        /** The expected `hub.verify_token`: required for `hub_challenge`, optional for `websub`. */
        readonly token?: string | undefined;
      }
    | undefined;
}

export interface WholeQuarantinedMessage {
  readonly uid: string;
  readonly project_id: string;
  readonly source_id: string;
  readonly occurred_at: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: 'quarantined' | 'replayed' | 'discarded';
  /** Where the source had it: topic, partition and offset, or the message id of the queue. */
  readonly coordinates: string;
  readonly code: string;
  readonly reason: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly edited_at: string | null;
  /** Of the bytes that a replay uses. */
  readonly raw_bytes: number;
  /** The bytes that a replay uses. */
  readonly raw: string;
  readonly raw_encoding: 'utf8' | 'base64';
  /** The bytes that came, once they were edited. */
  readonly original_raw?: string | undefined;
  readonly original_raw_encoding?: 'utf8' | 'base64' | undefined;
}

/** The methods of the client by resource. */
export function resources({ call, list }: Caller) {
  return {
    auth: {
      /** Tells how people sign in. */
      methods: (options?: CallOptions): Promise<SignInMethods> =>
        call({ method: 'GET', path: '/auth/methods', options }),
      /** Signs in with email address and password: sets the cookie of a session. */
      login: (body: Login, options?: CallOptions): Promise<Session> =>
        call({ method: 'POST', path: '/auth/login', body, options }),
      /** Shows the session: its user, organisations and CSRF token. */
      session: (options?: CallOptions): Promise<Session> =>
        call({ method: 'GET', path: '/auth/session', options }),
      /** Ends the session. */
      logout: (options?: CallOptions): Promise<null> =>
        call({ method: 'POST', path: '/auth/logout', options }),
      /** Shows the invitation of a token. It takes a POST, so that the token stands in no address. */
      showInvitation: (body: InvitationToken, options?: CallOptions): Promise<OpenInvitation> =>
        call({ method: 'POST', path: '/auth/invitation', body, options }),
      /** Accepts an invitation by its token and signs in. A person without an account gets one with this name and password; others give their password. */
      acceptInvitation: (body: AcceptedInvitation, options?: CallOptions): Promise<Session> =>
        call({ method: 'POST', path: '/auth/accept-invitation', body, options }),
      /** Begins to sign in with the OpenID Connect provider: answers the address to send the browser to, and sets a cookie that it has to bring back. */
      startOidc: (options?: CallOptions): Promise<StartedSignIn> =>
        call({ method: 'POST', path: '/auth/oidc/start', options }),
      /** Signs in with what the provider has sent the browser back with: sets the cookie of a session. */
      completeOidc: (body: CompletedSignIn, options?: CallOptions): Promise<Session> =>
        call({ method: 'POST', path: '/auth/oidc/complete', body, options }),
    },
    users: {
      /** Shows the user of the key. */
      me: (options?: CallOptions): Promise<User> =>
        call({ method: 'GET', path: '/users/me', options }),
      /** Changes the name of the user of the key. */
      updateMe: (body: ChangedUser, options?: CallOptions): Promise<User> =>
        call({ method: 'PUT', path: '/users/me', body, options }),
      /** Changes the password of the user, and ends all other sessions. */
      changePassword: (body: ChangedPassword, options?: CallOptions): Promise<null> =>
        call({ method: 'PUT', path: '/users/me/password', body, options }),
      /** Lists the personal API keys of the user, revoked and expired ones included. */
      listApiKeys: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
        },
        options?: CallOptions,
      ): Pages<PersonalKey> => list({ method: 'GET', path: '/users/me/api-keys', query, options }),
      /** Revokes a personal API key of the user: here at once, on other servers within a second. */
      revokeApiKey: (id: string, options?: CallOptions): Promise<PersonalKey> =>
        call({
          method: 'DELETE',
          path: '/users/me/api-keys/{id}',
          parameters: { id: id },
          options,
        }),
      /** Creates a personal API key, which is shown this once. */
      createApiKey: (body: NewApiKey, options?: CallOptions): Promise<CreatedPersonalKey> =>
        call({ method: 'POST', path: '/users/me/api-keys', body, isCreatedOnce: true, options }),
      /** Shows a personal API key of the user. */
      getApiKey: (id: string, options?: CallOptions): Promise<PersonalKey> =>
        call({ method: 'GET', path: '/users/me/api-keys/{id}', parameters: { id: id }, options }),
      /** Changes what is given of a personal API key of the user: here at once, on other servers within a second. */
      updateApiKey: (
        id: string,
        body: ChangedApiKey,
        options?: CallOptions,
      ): Promise<PersonalKey> =>
        call({
          method: 'PUT',
          path: '/users/me/api-keys/{id}',
          parameters: { id: id },
          body,
          options,
        }),
      /** Lists the sessions of the user, revoked and expired ones included. */
      listSessions: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
        },
        options?: CallOptions,
      ): Pages<PersonalKey> => list({ method: 'GET', path: '/users/me/sessions', query, options }),
      /** Revokes a session of the user: here at once, on other servers within a second. */
      revokeSession: (id: string, options?: CallOptions): Promise<PersonalKey> =>
        call({
          method: 'DELETE',
          path: '/users/me/sessions/{id}',
          parameters: { id: id },
          options,
        }),
    },
    organisations: {
      /** Creates an organisation, of which the user of the key becomes the owner. */
      create: (body: OrganisationName, options?: CallOptions): Promise<Organisation> =>
        call({ method: 'POST', path: '/organisations', body, isCreatedOnce: true, options }),
      /** Lists the organisations of the user of the key, with the role in each. */
      list: (
        options?: CallOptions,
      ): Promise<{
        readonly content: readonly Membership[];
      }> => call({ method: 'GET', path: '/organisations', options }),
      /** Shows an organisation. */
      get: (organisationId: string, options?: CallOptions): Promise<Membership> =>
        call({
          method: 'GET',
          path: '/organisations/{organisation_id}',
          parameters: { organisation_id: organisationId },
          options,
        }),
      /** Renames an organisation. */
      update: (
        organisationId: string,
        body: OrganisationName,
        options?: CallOptions,
      ): Promise<Organisation> =>
        call({
          method: 'PUT',
          path: '/organisations/{organisation_id}',
          parameters: { organisation_id: organisationId },
          body,
          options,
        }),
      /** Deletes an organisation that has no projects, with its members and its audit log. */
      delete: (organisationId: string, options?: CallOptions): Promise<null> =>
        call({
          method: 'DELETE',
          path: '/organisations/{organisation_id}',
          parameters: { organisation_id: organisationId },
          options,
        }),
    },
    members: {
      /** Lists the members of an organisation. */
      list: (
        organisationId: string,
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
        },
        options?: CallOptions,
      ): Pages<Member> =>
        list({
          method: 'GET',
          path: '/organisations/{organisation_id}/members',
          parameters: { organisation_id: organisationId },
          query,
          options,
        }),
      /** Shows a member of an organisation. */
      get: (organisationId: string, userId: string, options?: CallOptions): Promise<Member> =>
        call({
          method: 'GET',
          path: '/organisations/{organisation_id}/members/{user_id}',
          parameters: { organisation_id: organisationId, user_id: userId },
          options,
        }),
      /** Changes the role of a member. Only an owner may make or change an owner. */
      update: (
        organisationId: string,
        userId: string,
        body: ChangedMember,
        options?: CallOptions,
      ): Promise<Member> =>
        call({
          method: 'PUT',
          path: '/organisations/{organisation_id}/members/{user_id}',
          parameters: { organisation_id: organisationId, user_id: userId },
          body,
          options,
        }),
      /** Removes a member from an organisation. Only an owner may remove an owner. */
      delete: (organisationId: string, userId: string, options?: CallOptions): Promise<Member> =>
        call({
          method: 'DELETE',
          path: '/organisations/{organisation_id}/members/{user_id}',
          parameters: { organisation_id: organisationId, user_id: userId },
          options,
        }),
    },
    invitations: {
      /** Invites a person by email address. The answer has the token, this once: give the person the link <server>/#invitation=<token>. */
      create: (
        organisationId: string,
        body: NewInvitation,
        options?: CallOptions,
      ): Promise<CreatedInvitation> =>
        call({
          method: 'POST',
          path: '/organisations/{organisation_id}/invitations',
          parameters: { organisation_id: organisationId },
          body,
          isCreatedOnce: true,
          options,
        }),
      /** Lists the invitations of an organisation, accepted, expired and revoked ones included. */
      list: (
        organisationId: string,
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
        },
        options?: CallOptions,
      ): Pages<Invitation> =>
        list({
          method: 'GET',
          path: '/organisations/{organisation_id}/invitations',
          parameters: { organisation_id: organisationId },
          query,
          options,
        }),
      /** Revokes an invitation that was not accepted. */
      revoke: (organisationId: string, id: string, options?: CallOptions): Promise<Invitation> =>
        call({
          method: 'DELETE',
          path: '/organisations/{organisation_id}/invitations/{id}',
          parameters: { organisation_id: organisationId, id: id },
          options,
        }),
    },
    auditLog: {
      /** Lists who changed what in an organisation and its projects. */
      list: (
        organisationId: string,
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          readonly startDate?: string | undefined;
          readonly endDate?: string | undefined;
          readonly projectId?: string | undefined;
          readonly actorId?: string | undefined;
          readonly resourceId?: string | undefined;
          /** `endpoints.update`, or `endpoints.*` for all that is done to endpoints. */
          readonly action?: string | undefined;
        },
        options?: CallOptions,
      ): Pages<AuditEntry> =>
        list({
          method: 'GET',
          path: '/organisations/{organisation_id}/audit-log',
          parameters: { organisation_id: organisationId },
          query,
          options,
        }),
    },
    projects: {
      /** Creates a project with an API key of its own, which is shown this once. */
      create: (body: NewProject, options?: CallOptions): Promise<CreatedProject> =>
        call({ method: 'POST', path: '/projects', body, isCreatedOnce: true, options }),
      /** Lists the projects of the organisations of the user of the key. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          readonly orgID?: string | undefined;
        },
        options?: CallOptions,
      ): Pages<Project> => list({ method: 'GET', path: '/projects', query, options }),
      /** Shows a project. */
      get: (projectId: string, options?: CallOptions): Promise<Project> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}',
          parameters: { project_id: projectId },
          options,
        }),
      /** Changes what is given of a project. */
      update: (projectId: string, body: ChangedProject, options?: CallOptions): Promise<Project> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}',
          parameters: { project_id: projectId },
          body,
          options,
        }),
      /** Deletes a project: its sources stop, its keys are revoked, its waiting deliveries are discarded. */
      delete: (projectId: string, options?: CallOptions): Promise<null> =>
        call({
          method: 'DELETE',
          path: '/projects/{project_id}',
          parameters: { project_id: projectId },
          options,
        }),
    },
    summary: {
      /** Shows what is the matter in a project: what waits, what is held, quarantined or disabled, and how long deliveries take. */
      get: (options?: CallOptions): Promise<Summary> =>
        call({ method: 'GET', path: '/projects/{project_id}/summary', options }),
    },
    activity: {
      /** Shows how many events, deliveries and attempts ended when, of the project or of an endpoint, in the last seven days. */
      get: (
        query?: {
          readonly startDate?: string | undefined;
          readonly endDate?: string | undefined;
          readonly endpointId?: string | undefined;
        },
        options?: CallOptions,
      ): Promise<Activity> =>
        call({ method: 'GET', path: '/projects/{project_id}/activity', query, options }),
      /** Counts the attempts at each of some endpoints. Counted by ten minutes. */
      endpoints: (
        query: {
          readonly startDate?: string | undefined;
          readonly endDate?: string | undefined;
          readonly endpointId: readonly string[];
        },
        options?: CallOptions,
      ): Promise<EndpointActivity> =>
        call({ method: 'GET', path: '/projects/{project_id}/activity/endpoints', query, options }),
    },
    apiKeys: {
      /** Creates an API key of the project, which is shown this once. */
      create: (body: NewApiKey, options?: CallOptions): Promise<CreatedApiKey> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/api-keys',
          body,
          isCreatedOnce: true,
          options,
        }),
      /** Lists the API keys of the project, revoked and expired ones included. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
        },
        options?: CallOptions,
      ): Pages<ApiKey> =>
        list({ method: 'GET', path: '/projects/{project_id}/api-keys', query, options }),
      /** Shows an API key of the project. */
      get: (id: string, options?: CallOptions): Promise<ApiKey> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/api-keys/{id}',
          parameters: { id: id },
          options,
        }),
      /** Changes what is given of an API key of the project: here at once, on other servers within a second. */
      update: (id: string, body: ChangedApiKey, options?: CallOptions): Promise<ApiKey> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/api-keys/{id}',
          parameters: { id: id },
          body,
          options,
        }),
      /** Revokes an API key of the project: here at once, on other servers within a second. */
      revoke: (id: string, options?: CallOptions): Promise<ApiKey> =>
        call({
          method: 'DELETE',
          path: '/projects/{project_id}/api-keys/{id}',
          parameters: { id: id },
          options,
        }),
    },
    portalLinks: {
      /** Creates a portal link, with which an owner sees its endpoints and their deliveries. Its token is shown this once. */
      create: (body: NewPortalLink, options?: CallOptions): Promise<CreatedPortalLink> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/portal-links',
          body,
          isCreatedOnce: true,
          options,
        }),
      /** Lists the portal links of the project; those that ended are deleted a week later. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          readonly ownerId?: string | undefined;
        },
        options?: CallOptions,
      ): Pages<PortalLink> =>
        list({ method: 'GET', path: '/projects/{project_id}/portal-links', query, options }),
      /** Shows a portal link. */
      get: (id: string, options?: CallOptions): Promise<PortalLink> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/portal-links/{id}',
          parameters: { id: id },
          options,
        }),
      /** Changes what is given of a portal link: here at once, on other servers within a second. Its owner stays. */
      update: (id: string, body: ChangedPortalLink, options?: CallOptions): Promise<PortalLink> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/portal-links/{id}',
          parameters: { id: id },
          body,
          options,
        }),
      /** Revokes a portal link: here at once, on other servers within a second. */
      revoke: (id: string, options?: CallOptions): Promise<PortalLink> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/portal-links/{id}/revoke',
          parameters: { id: id },
          options,
        }),
      /** Gives a portal link that was not revoked another token, shown this once. The one before ends: here at once, on other servers within a second. */
      refreshToken: (
        id: string,
        body: PortalLinkRefresh,
        options?: CallOptions,
      ): Promise<CreatedPortalLink> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/portal-links/{id}/refresh_token',
          parameters: { id: id },
          body,
          options,
        }),
    },
    portal: {
      /** Shows what the portal link that makes the request reaches. */
      get: (options?: CallOptions): Promise<Portal> =>
        call({ method: 'GET', path: '/projects/{project_id}/portal', options }),
    },
    endpoints: {
      /** Creates an endpoint. Its secret is shown this once. */
      create: (body: NewEndpoint, options?: CallOptions): Promise<Endpoint> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/endpoints',
          body,
          isCreatedOnce: true,
          options,
        }),
      /** Lists endpoints. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          /** A part of name, URL or owner id, in any case. */
          readonly q?: string | undefined;
          readonly ownerId?: string | undefined;
          readonly status?: 'active' | 'inactive' | 'paused' | undefined;
          /** States of the circuit breaker. KV has them: while it is away, 503. */
          readonly circuitBreaker?: readonly ('closed' | 'open' | 'half_open')[] | undefined;
        },
        options?: CallOptions,
      ): Pages<Endpoint> =>
        list({ method: 'GET', path: '/projects/{project_id}/endpoints', query, options }),
      /** Shows an endpoint. */
      get: (id: string, options?: CallOptions): Promise<Endpoint> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/endpoints/{id}',
          parameters: { id: id },
          options,
        }),
      /** Changes what is given of an endpoint; null clears a field. Another origin asks for the authentication and the client key again. */
      update: (id: string, body: ChangedEndpoint, options?: CallOptions): Promise<Endpoint> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/endpoints/{id}',
          parameters: { id: id },
          body,
          options,
        }),
      /** Deletes an endpoint and its subscriptions; its waiting deliveries are discarded. */
      delete: (id: string, options?: CallOptions): Promise<null> =>
        call({
          method: 'DELETE',
          path: '/projects/{project_id}/endpoints/{id}',
          parameters: { id: id },
          options,
        }),
      /** Pauses an endpoint: its deliveries are held. */
      pause: (id: string, options?: CallOptions): Promise<Endpoint> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/endpoints/{id}/pause',
          parameters: { id: id },
          options,
        }),
      /** Activates an endpoint that is paused or inactive: what was held is sent. */
      activate: (id: string, options?: CallOptions): Promise<Endpoint> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/endpoints/{id}/activate',
          parameters: { id: id },
          options,
        }),
      /** Closes the circuit breaker of an endpoint: what waits for it is sent. */
      resetCircuitBreaker: (id: string, options?: CallOptions): Promise<Endpoint> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/endpoints/{id}/reset_circuit_breaker',
          parameters: { id: id },
          options,
        }),
      /** Gives an endpoint a new secret, shown this once; the present ones sign for some hours more. */
      expireSecret: (id: string, body: NewSecret, options?: CallOptions): Promise<Endpoint> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/endpoints/{id}/expire_secret',
          parameters: { id: id },
          body,
          options,
        }),
      /** Sends an event to an endpoint to test it, as any event is sent. Follow the delivery by `event_delivery_id`: it is there a moment later. */
      sendTest: (id: string, body: NewTestEvent, options?: CallOptions): Promise<TestEvent> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/endpoints/{id}/test',
          parameters: { id: id },
          body,
          isCreatedOnce: true,
          options,
        }),
    },
    subscriptions: {
      /** Subscribes an endpoint to events of the project. */
      create: (body: NewSubscription, options?: CallOptions): Promise<Subscription> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/subscriptions',
          body,
          isCreatedOnce: true,
          options,
        }),
      /** Lists subscriptions. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          /** A part of the name, in any case. */
          readonly q?: string | undefined;
          readonly endpointId?: string | undefined;
        },
        options?: CallOptions,
      ): Pages<Subscription> =>
        list({ method: 'GET', path: '/projects/{project_id}/subscriptions', query, options }),
      /** Tells whether a filter matches a sample, which is stored nowhere. */
      testFilter: (body: FilterTest, options?: CallOptions): Promise<FilterMatch> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/subscriptions/test_filter',
          body,
          options,
        }),
      /** Runs the function of a subscription on the data of an event as an agent would, and shows what would be sent. Changes nothing. */
      testFunction: (
        body: SubscriptionFunctionTest,
        options?: CallOptions,
      ): Promise<SubscriptionFunctionTestResult> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/subscriptions/test_function',
          body,
          options,
        }),
      /** Shows a subscription. */
      get: (id: string, options?: CallOptions): Promise<Subscription> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/subscriptions/{id}',
          parameters: { id: id },
          options,
        }),
      /** Changes what is given of a subscription. */
      update: (
        id: string,
        body: ChangedSubscription,
        options?: CallOptions,
      ): Promise<Subscription> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/subscriptions/{id}',
          parameters: { id: id },
          body,
          options,
        }),
      /** Disables a subscription, so that it matches nothing, or enables it again. */
      toggleStatus: (id: string, options?: CallOptions): Promise<Subscription> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/subscriptions/{id}/toggle_status',
          parameters: { id: id },
          options,
        }),
      /** Deletes a subscription. */
      delete: (id: string, options?: CallOptions): Promise<null> =>
        call({
          method: 'DELETE',
          path: '/projects/{project_id}/subscriptions/{id}',
          parameters: { id: id },
          options,
        }),
    },
    sources: {
      /** Creates a source. The connection to a broker is tested; a source of the type http has the URL that it takes messages at. */
      create: (
        body: NewSource,
        query?: {
          /** Saves the source without testing its connection. */
          readonly skip_check?: boolean | undefined;
        },
        options?: CallOptions,
      ): Promise<Source> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/sources',
          body,
          query,
          isCreatedOnce: true,
          options,
        }),
      /** Lists sources. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
        },
        options?: CallOptions,
      ): Pages<Source> =>
        list({ method: 'GET', path: '/projects/{project_id}/sources', query, options }),
      /** Lists the source plugins that are active here, with the schemas of their connections. */
      listTypes: (
        options?: CallOptions,
      ): Promise<{
        readonly content: readonly SourcePlugin[];
      }> => call({ method: 'GET', path: '/projects/{project_id}/sources/types', options }),
      /** Tests a connection, or that of a source, and changes nothing. */
      testConnection: (
        body: ConnectionTest,
        options?: CallOptions,
      ): Promise<ConnectionTestResult> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/sources/test_connection',
          body,
          options,
        }),
      /** Shows which sources are read, how far behind their brokers they are, and why others are not read. The newest 1000. */
      listStates: (
        options?: CallOptions,
      ): Promise<{
        readonly content: readonly SourceState[];
      }> => call({ method: 'GET', path: '/projects/{project_id}/sources/states', options }),
      /** Shows a source; secrets of its connection are masked. */
      get: (id: string, options?: CallOptions): Promise<Source> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/sources/{id}',
          parameters: { id: id },
          options,
        }),
      /** Changes what is given of a source; a secret that is masked or left out is kept while the address stays. A changed connection is tested; a changed function ends a pause that has lasted transform.pause_seconds, and shortens another to that. */
      update: (
        id: string,
        body: ChangedSource,
        query?: {
          /** Saves the source without testing its connection. */
          readonly skip_check?: boolean | undefined;
        },
        options?: CallOptions,
      ): Promise<Source> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/sources/{id}',
          parameters: { id: id },
          body,
          query,
          options,
        }),
      /** Pauses a source: agents stop reading it until it is resumed. Its messages stay with their broker. */
      pause: (id: string, options?: CallOptions): Promise<Source> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/sources/{id}/pause',
          parameters: { id: id },
          options,
        }),
      /** Resumes a source that a person has paused; one that is paused because its function overran again and again, once the pause has lasted transform.pause_seconds. */
      resume: (id: string, options?: CallOptions): Promise<Source> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/sources/{id}/resume',
          parameters: { id: id },
          options,
        }),
      /** Shows how far the agents are behind the broker of a source, by partition, as they have reported within half a minute. */
      listLag: (id: string, options?: CallOptions): Promise<SourceLag> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/sources/{id}/lag',
          parameters: { id: id },
          options,
        }),
      /** Runs a transform function on a sample as an agent would, and shows its output, and where the events would go. Changes nothing. */
      testFunction: (body: FunctionTest, options?: CallOptions): Promise<FunctionTestResult> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/sources/test_function',
          body,
          options,
        }),
      /** Deletes a source: agents stop reading it. */
      delete: (id: string, options?: CallOptions): Promise<null> =>
        call({
          method: 'DELETE',
          path: '/projects/{project_id}/sources/{id}',
          parameters: { id: id },
          options,
        }),
    },
    eventTypes: {
      /** Creates an event type. Whether events of types that are not there are accepted is up to `config.unknown_event_types` of the project. */
      create: (body: NewEventType, options?: CallOptions): Promise<EventType> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/event-types',
          body,
          isCreatedOnce: true,
          options,
        }),
      /** Creates and changes event types by the webhooks, x-webhooks and callbacks of an OpenAPI 3 document, all or nothing. References to other files are refused. */
      import: (body: OpenApiDocument, options?: CallOptions): Promise<ImportedEventTypes> =>
        call({ method: 'POST', path: '/projects/{project_id}/event-types/import', body, options }),
      /** Lists event types, those that were imported from OpenAPI documents and deprecated ones included. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          /** A part of the name, in any case. */
          readonly q?: string | undefined;
          readonly name?: string | undefined;
        },
        options?: CallOptions,
      ): Pages<EventType> =>
        list({ method: 'GET', path: '/projects/{project_id}/event-types', query, options }),
      /** Shows an event type with its schema. */
      get: (id: string, options?: CallOptions): Promise<EventType> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/event-types/{id}',
          parameters: { id: id },
          options,
        }),
      /** Changes what is given of an event type. Its name stays: events and subscriptions refer to it. */
      update: (id: string, body: ChangedEventType, options?: CallOptions): Promise<EventType> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/event-types/{id}',
          parameters: { id: id },
          body,
          options,
        }),
      /** Marks an event type as deprecated. Its events are delivered as before. */
      deprecate: (id: string, options?: CallOptions): Promise<EventType> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/event-types/{id}/deprecate',
          parameters: { id: id },
          options,
        }),
    },
    events: {
      /** Creates an event for one endpoint, or without endpoint_id for those that subscribe to it. */
      create: (body: NewEvent, options?: CallOptions): Promise<CreatedEvent> =>
        call({ method: 'POST', path: '/projects/{project_id}/events', body, options }),
      /** Creates an event for all endpoints of an owner. */
      fanout: (body: NewFanoutEvent, options?: CallOptions): Promise<CreatedEvent> =>
        call({ method: 'POST', path: '/projects/{project_id}/events/fanout', body, options }),
      /** Creates an event for all endpoints of the project. */
      broadcast: (body: NewBroadcastEvent, options?: CallOptions): Promise<CreatedEvent> =>
        call({ method: 'POST', path: '/projects/{project_id}/events/broadcast', body, options }),
      /** Creates up to 1,000 events: those that are valid, with a result for each. Several commits: after an error, events with idempotency keys can be sent again. */
      createBatch: (body: NewEvents, options?: CallOptions): Promise<CreatedEvents> =>
        call({ method: 'POST', path: '/projects/{project_id}/events/batch', body, options }),
      /** Lists events by the time of their messages. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          readonly startDate?: string | undefined;
          readonly endDate?: string | undefined;
          /** An id, or at least the first eight digits of one. */
          readonly query?: string | undefined;
          readonly sourceId?: string | undefined;
          readonly event_type?: string | undefined;
          readonly idempotencyKey?: string | undefined;
          readonly status?: 'pending' | 'processed' | 'failed' | undefined;
        },
        options?: CallOptions,
      ): Pages<Event> =>
        list({ method: 'GET', path: '/projects/{project_id}/events', query, options }),
      /** Shows an event. */
      get: (id: string, options?: CallOptions): Promise<Event> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/events/{id}',
          parameters: { id: id },
          options,
        }),
      /** Shows the message that an event was made of, if its source keeps messages, or if it was replayed from quarantine. One message may be that of several events. */
      getMessage: (id: string, options?: CallOptions): Promise<EventMessage> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/events/{id}/message',
          parameters: { id: id },
          options,
        }),
      /** Explains why an event went to these endpoints and not to others: the rule, its deliveries, and each subscription that does not match. */
      explain: (
        id: string,
        query?: {
          /** Only subscriptions of this endpoint. */
          readonly endpointId?: string | undefined;
        },
        options?: CallOptions,
      ): Promise<EventExplanation> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/events/{id}/explain',
          parameters: { id: id },
          query,
          options,
        }),
      /** Routes an event again by the subscriptions of now: endpoints that have no delivery of it get one. */
      replay: (
        id: string,
        query?: {
          /** Endpoints that have a delivery get another one by each matching subscription that has made none. */
          readonly force?: boolean | undefined;
        },
        options?: CallOptions,
      ): Promise<ReplayedEvent> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/events/{id}/replay',
          parameters: { id: id },
          query,
          options,
        }),
      /** Routes the selected events again, oldest first, as the replay of one does. Works for up to 10 s; `next` says where to go on. */
      batchReplay: (
        query: {
          readonly startDate: string;
          readonly endDate?: string | undefined;
          /** Counts, and changes nothing. */
          readonly dry_run?: boolean | undefined;
          /** `next` of the last answer, to go on from there. */
          readonly after?: string | undefined;
          /** Endpoints that have a delivery get another one by each matching subscription that has made none. */
          readonly force?: boolean | undefined;
          readonly event_type?: string | undefined;
          readonly sourceId?: string | undefined;
          readonly status?: 'processed' | 'failed' | undefined;
        },
        options?: CallOptions,
      ): Promise<BatchReplay> =>
        call({ method: 'POST', path: '/projects/{project_id}/events/batchreplay', query, options }),
    },
    eventDeliveries: {
      /** Lists event deliveries by the time of their messages. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          readonly startDate?: string | undefined;
          readonly endDate?: string | undefined;
          /** An id, or at least the first eight digits of one. */
          readonly query?: string | undefined;
          readonly status?:
            | readonly (
                'scheduled' | 'processing' | 'retry' | 'success' | 'failure' | 'discarded'
              )[]
            | undefined;
          readonly endpointId?: string | undefined;
          readonly eventId?: string | undefined;
          /** Not beside endpointId, unless eventId is given. */
          readonly event_type?: string | undefined;
        },
        options?: CallOptions,
      ): Pages<EventDelivery> =>
        list({ method: 'GET', path: '/projects/{project_id}/eventdeliveries', query, options }),
      /** Shows an event delivery. */
      get: (id: string, options?: CallOptions): Promise<EventDelivery> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/eventdeliveries/{id}',
          parameters: { id: id },
          options,
        }),
      /** Shows the event of a delivery as its endpoint gets it. */
      getEvent: (id: string, options?: CallOptions): Promise<SentEvent> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/eventdeliveries/{id}/event',
          parameters: { id: id },
          options,
        }),
      /** Lists the attempts of a delivery, newest first. */
      listDeliveryAttempts: (
        id: string,
        options?: CallOptions,
      ): Promise<{
        readonly content: readonly DeliveryAttempt[];
      }> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/eventdeliveries/{id}/deliveryattempts',
          parameters: { id: id },
          options,
        }),
      /** Shows a delivery attempt. */
      getDeliveryAttempt: (
        id: string,
        attemptId: string,
        options?: CallOptions,
      ): Promise<DeliveryAttempt> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/eventdeliveries/{id}/deliveryattempts/{attempt_id}',
          parameters: { id: id, attempt_id: attemptId },
          options,
        }),
      /** Sends a delivery again that has failed or was discarded. */
      resend: (
        id: string,
        query?: {
          /** Also sends again what was delivered. */
          readonly force?: boolean | undefined;
        },
        options?: CallOptions,
      ): Promise<EventDelivery> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/eventdeliveries/{id}/resend',
          parameters: { id: id },
          query,
          options,
        }),
      /** Sends the selected deliveries again: those that failed, or of another status. Works for up to 10 s; `next` says where to go on. */
      batchRetry: (
        query: {
          readonly startDate: string;
          readonly endDate?: string | undefined;
          /** Counts, and changes nothing. */
          readonly dry_run?: boolean | undefined;
          /** `next` of the last answer, to go on from there. */
          readonly after?: string | undefined;
          readonly status?: 'failure' | 'discarded' | 'success' | undefined;
          readonly endpointId?: string | undefined;
          readonly eventId?: string | undefined;
          readonly event_type?: string | undefined;
        },
        options?: CallOptions,
      ): Promise<BatchRetry> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/eventdeliveries/batchretry',
          query,
          options,
        }),
      /** Sends up to 200 deliveries again, delivered ones included, with a result for each. */
      forceResend: (body: Resend, options?: CallOptions): Promise<Resent> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/eventdeliveries/forceresend',
          body,
          options,
        }),
    },
    quarantine: {
      /** Lists messages that could not be accepted, by their time. */
      list: (
        query?: {
          readonly perPage?: number | undefined;
          readonly direction?: 'next' | 'prev' | undefined;
          readonly next_page_cursor?: string | undefined;
          readonly prev_page_cursor?: string | undefined;
          /** By time; DESC, the newest first, when it is left out. */
          readonly sort?: 'ASC' | 'DESC' | undefined;
          readonly startDate?: string | undefined;
          readonly endDate?: string | undefined;
          readonly sourceId?: string | undefined;
          readonly status?: 'quarantined' | 'replayed' | 'discarded' | undefined;
          readonly code?: string | undefined;
        },
        options?: CallOptions,
      ): Pages<QuarantinedMessage> =>
        list({ method: 'GET', path: '/projects/{project_id}/quarantine', query, options }),
      /** Shows a quarantined message with its bytes. */
      get: (id: string, options?: CallOptions): Promise<WholeQuarantinedMessage> =>
        call({
          method: 'GET',
          path: '/projects/{project_id}/quarantine/{id}',
          parameters: { id: id },
          options,
        }),
      /** Stores bytes for a quarantined message to be replayed with; those that came are kept. */
      update: (
        id: string,
        body: QuarantineEdit,
        options?: CallOptions,
      ): Promise<WholeQuarantinedMessage> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/quarantine/{id}',
          parameters: { id: id },
          body,
          options,
        }),
      /** Marks a quarantined message as not worth keeping. */
      discard: (id: string, options?: CallOptions): Promise<WholeQuarantinedMessage> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/quarantine/{id}/discard',
          parameters: { id: id },
          options,
        }),
      /** Replays a quarantined message with the present function of its source: its events are created, or it stays with the new reason. */
      replay: (
        id: string,
        query?: {
          /** Counts, and changes nothing. */
          readonly dry_run?: boolean | undefined;
        },
        options?: CallOptions,
      ): Promise<ReplayedMessage> =>
        call({
          method: 'PUT',
          path: '/projects/{project_id}/quarantine/{id}/replay',
          parameters: { id: id },
          query,
          options,
        }),
      /** Replays the selected quarantined messages, oldest first. Works for up to 10 s; `next` says where to go on. */
      batchReplay: (
        query: {
          readonly startDate: string;
          readonly endDate?: string | undefined;
          /** Counts, and changes nothing. */
          readonly dry_run?: boolean | undefined;
          /** `next` of the last answer, to go on from there. */
          readonly after?: string | undefined;
          readonly sourceId?: string | undefined;
          readonly code?: string | undefined;
        },
        options?: CallOptions,
      ): Promise<ReplayedMessages> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/quarantine/batchreplay',
          query,
          options,
        }),
      /** Discards the selected quarantined messages, oldest first. Works for up to 10 s; `next` says where to go on. */
      batchDiscard: (
        query: {
          readonly startDate: string;
          readonly endDate?: string | undefined;
          /** Counts, and changes nothing. */
          readonly dry_run?: boolean | undefined;
          /** `next` of the last answer, to go on from there. */
          readonly after?: string | undefined;
          readonly sourceId?: string | undefined;
          readonly code?: string | undefined;
        },
        options?: CallOptions,
      ): Promise<DiscardedMessages> =>
        call({
          method: 'POST',
          path: '/projects/{project_id}/quarantine/batchdiscard',
          query,
          options,
        }),
    },
    instance: {
      /** Lists the installed plugins, and why those that are inactive are. */
      listPlugins: (
        options?: CallOptions,
      ): Promise<{
        readonly content: readonly InstancePlugin[];
      }> => call({ method: 'GET', path: '/instance/plugins', options }),
      /** Lists the feature flags that plugins declare. */
      listFeatureFlags: (
        options?: CallOptions,
      ): Promise<{
        readonly content: readonly InstanceFeatureFlag[];
      }> => call({ method: 'GET', path: '/instance/feature-flags', options }),
      /** Shows the licence in force. */
      getLicense: (options?: CallOptions): Promise<InstanceLicense> =>
        call({ method: 'GET', path: '/instance/license', options }),
      /** Lists the settings of the server with their origins; secrets are masked. */
      listSettings: (
        options?: CallOptions,
      ): Promise<{
        readonly content: readonly InstanceSetting[];
      }> => call({ method: 'GET', path: '/instance/settings', options }),
      /** Shows the state of the server that answers and of its components, and the agents of the instance. */
      getHealth: (options?: CallOptions): Promise<InstanceHealth> =>
        call({ method: 'GET', path: '/instance/health', options }),
    },
  };
}

export type Resources = ReturnType<typeof resources>;
