import type { IncomingHttpHeaders } from 'node:http';
import type { CheckContext, Message, PluginLog } from './source.js';

/**
 * A push source: a plugin of the kind `source` whose manifest has `"sourceKind": "push"`. No agent
 * reads it: each of its sources has a URL, and the plugin says what a request to it means.
 *
 * 1. When a source is stored, its connection is validated against the manifest's JSON Schema, `check`
 *   may complete it, and its secrets are sealed.
 * 2. When a request arrives, at a server or an agent, `open` is called before the body is received.
 * 3. `verify` is called once: before the body is received if `open` gave a credential, after it
 *   otherwise, and never if the credential is null. Core locks out addresses that guess.
 * 4. `receive` answers a handshake, or makes messages of the body.
 * 5. Core decodes, transforms and commits the messages as those of any source, and only then sends
 *   the answer. If that fails, it answers with 503, and the sender should repeat the request: only
 *   with an `idempotencyKey` is a message then accepted once.
 * 6. A request with GET, HEAD or OPTIONS has no body to sign, so `verify` is called only for a credential, and
 *   `receive` may only answer.
 *
 * Calls are concurrent, and each has ten seconds. One that takes longer, throws, or returns what the
 * contract does not allow fails its request with 503 and the name of the plugin.
 */
export interface PushSourcePlugin<
  Connection = Record<string, unknown>,
  Settings = Readonly<Record<string, unknown>>,
> {
  /**
   * Checks a connection before it is stored. May resolve with the connection to store instead, such
   * as with defaults that depend on other fields.
   * @throws `PluginError` with the `problems` of the fields
   */
  check(
    connection: Connection,
    context: PushCheckContext<Settings>,
  ): Promise<Connection | void> | Connection | void;

  /** Reads the head of a request. Without this function, each sender is verified by the body. */
  open?(request: PushRequest, connection: Connection): Promise<PushHead> | PushHead;

  /**
   * Resolves with undefined if the sender is who the source expects, otherwise with the reason, as
   * the end of a sentence: `its signature in x-signature is wrong`. Compares secrets in constant
   * time.
   */
  verify(
    request: PushRequest,
    connection: Connection,
  ): Promise<string | undefined> | string | undefined;

  /**
   * Resolves with an answer, with messages, or with both.
   * @throws `PluginError` with the status 400 or 401 to refuse the request
   */
  receive(
    request: PushRequest,
    connection: Connection,
    context: PushContext<Settings>,
  ): Promise<PushReceipt> | PushReceipt;
}

export interface PushRequest {
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST';
  /** As the sender used it, with its query. A path if the gateway does not know its public host. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Repeated headers are not joined. */
  readonly headersDistinct: Readonly<Record<string, readonly string[] | undefined>>;
  /** As received. Empty before the body is received. */
  readonly body: Uint8Array;
}

export interface PushHead {
  /**
   * The password or key in the head of the request, which `verify` compares. Core keeps a hash of
   * it, so that guesses do not lock out a sender with the right one. Null if the source accepts
   * every sender. Undefined if the sender is verified by the body, such as by its signature.
   */
  readonly credential?: string | null | undefined;
  /** Raises the largest body above `ingest.max_message_bytes`, to at most 25 MiB. */
  readonly maxBytes?: number | undefined;
}

export interface PushReceipt {
  /** Up to 1,000. */
  readonly messages?: readonly PushedMessage[] | undefined;
  /**
   * Sent after the commit of the messages. By default, core answers with the outcome. Required
   * without messages, except for GET and HEAD, which core then refuses with 405, and for OPTIONS.
   */
  readonly answer?: PushAnswer | undefined;
}

export interface PushAnswer {
  /** By default 200, or 202 if a message was quarantined. */
  readonly status?: number | undefined;
  /** No other, because an answer could be a page of the gateway's host, with scripts. */
  readonly contentType: 'application/json' | 'text/plain';
  readonly body: string;
  /** Only names that begin with `webhook-`, for handshakes. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Core gives a message its coordinates, and the time of its arrival. */
export type PushedMessage = Omit<Message, 'coordinates' | 'timestamp'>;

export interface PushCheckContext<Settings = Readonly<Record<string, unknown>>> extends Omit<
  CheckContext<Settings>,
  'workers'
> {
  /** Whether the source does not exist yet, so that it may get defaults. */
  readonly isNew: boolean;
  readonly projectType: 'outgoing' | 'incoming';
}

export interface PushContext<Settings = Readonly<Record<string, unknown>>> {
  /** As in `CheckContext`. */
  readonly settings: Settings;
  readonly sourceId: string;
  /** Aborts when core stops waiting. */
  readonly signal: AbortSignal;
  readonly log: PluginLog;
  /** Whether the source has a function, which gets the messages as they are handed over. */
  readonly isTransformed: boolean;
  /**
   * The body as JSON text, decoded by its content type: a form is an object of its fields. Resolves
   * with undefined if it is not JSON, or nested too deeply.
   */
  json(): Promise<JsonBody | undefined>;
}

export interface JsonBody {
  readonly text: string;
  /** The JSON text of a member as it is written, because parsing a number can lose digits. */
  at(path: readonly string[]): string | undefined;
}
