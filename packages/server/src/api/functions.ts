import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { KeptMessage, NewEvent } from '@gateway/store/events';
import type { Database } from '@gateway/store/postgres';
import type { QuarantinedMessage, ReplayableMessage } from '@gateway/store/quarantine';

/** Why a message is rejected: a code of the reasons for quarantine, and a sentence with the line of the function if that is known. */
export interface Refusal {
  readonly code: string;
  readonly reason: string;
}

export interface PreviewedEvent extends Pick<
  NewEvent,
  'eventType' | 'messageType' | 'endpointId' | 'ownerId' | 'idempotencyKey' | 'notes' | 'data'
> {
  readonly headers: Readonly<Record<string, string>>;
}

export interface FunctionPreview {
  readonly kind: 'accepted' | 'dropped' | 'refused';
  readonly refusal: Refusal | null;
  readonly results: readonly { readonly json: string; readonly event: PreviewedEvent | null; readonly refusal: Refusal | null }[];
  readonly logs: readonly string[];
  /** Null when the function was not called. */
  readonly durationMs: number | null;
}

/** What the function of a subscription makes of the data of an event. */
export interface TransformedData {
  readonly outcome: 'accepted' | 'dropped' | 'failed';
  /** JSON text; null unless it is accepted. */
  readonly data: string | null;
  readonly refusal: Refusal | null;
  readonly logs: readonly string[];
  /** Null when the function was not called. */
  readonly durationMs: number | null;
}

/** What became of a quarantined message, or would become of it (`accepted`). */
export type ReplayResult =
  | { readonly kind: 'accepted' | 'dropped' | 'changed' }
  | { readonly kind: 'replayed' | 'duplicate'; readonly ids: readonly string[] }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** A message of an HTTP source. */
export interface SourceMessage {
  readonly coordinates: string;
  readonly timestamp: number;
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

export type AcceptedEvent = Omit<NewEvent, 'status' | 'outcome' | 'headers'> & { readonly headers: Readonly<Record<string, string>> };

/** What becomes of a message. */
export type AcceptedMessage =
  | { readonly kind: 'accepted'; readonly events: readonly AcceptedEvent[]; readonly kept: KeptMessage | null }
  | { readonly kind: 'quarantined'; readonly message: QuarantinedMessage }
  | { readonly kind: 'dropped' };

/** Transforms and parses messages as agents do, functions in confined child processes. This package must not import the sandbox: whoever starts the server gives one that can. */
export interface Functions {
  /** Without a text the message is parsed as it stands. Rejects with a `SandboxError` when functions cannot run here. */
  preview(
    text: string | null,
    sample: { readonly body: Uint8Array; readonly headers?: Readonly<Record<string, string>>; readonly projectId?: string },
  ): Promise<FunctionPreview>;
  /** Runs the function of a subscription. Rejects as `preview` does. @param sample the data of an event, as JSON text */
  transform(text: string, sample: { readonly data: string; readonly projectId: string }): Promise<TransformedData>;
  /** Replays messages at once, those without a function too. Rejected results: a `SandboxError`, or an error of Postgres. */
  replay(
    messages: readonly ReplayableMessage[],
    options: { readonly dryRun: boolean },
  ): Promise<readonly PromiseSettledResult<ReplayResult>[]>;
  /** Transforms and parses a message; commits nothing. Rejects as `preview` does. */
  accept(
    source: { readonly projectId: string; readonly id: string; readonly bodyFunction: string | null; readonly keepsMessages: boolean },
    message: SourceMessage,
  ): Promise<AcceptedMessage>;
  close(): Promise<void>;
}

/** What functions need of a server. */
export type OpenFunctions = (parts: { readonly config: Config; readonly database: Database; readonly log: Log }) => Promise<Functions>;

/** Opens the functions with their first use. Without `open` every use rejects. A sandbox that cannot start becomes the GatewayError `functions_unavailable`. */
export function lazyFunctions(open: (() => Promise<Functions>) | undefined): Functions {
  let opened: Promise<Functions> | undefined;
  const functions = (): Promise<Functions> => {
    if (!open) throw new GatewayError('functions_unavailable', { reason: 'this server was started without them', retryAfterSeconds: 60 });
    return (opened ??= open());
  };
  return {
    async preview(...given) {
      return (await functions()).preview(...given).catch((cause: unknown) => {
        throw unavailable(cause);
      });
    },
    async transform(...given) {
      return (await functions()).transform(...given).catch((cause: unknown) => {
        throw unavailable(cause);
      });
    },
    async accept(...given) {
      return (await functions()).accept(...given).catch((cause: unknown) => {
        throw unavailable(cause);
      });
    },
    async replay(...given) {
      const results = await (await functions()).replay(...given);
      return results.map((it) => (it.status === 'rejected' ? { ...it, reason: unavailable(it.reason) } : it));
    },
    close: async () => (await opened)?.close(),
  };
}

function unavailable(cause: unknown): unknown {
  if ((cause as Error).name !== 'SandboxError') return cause;
  return new GatewayError('functions_unavailable', { reason: (cause as Error).message, retryAfterSeconds: 5 }, { cause });
}
