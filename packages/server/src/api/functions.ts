import { GatewayError } from '@gateway/core/errors';
import type { NewEvent } from '@gateway/store/events';
import type { Database } from '@gateway/store/postgres';
import type { ReplayableMessage } from '@gateway/store/quarantine';

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

/** What became of a quarantined message, or would become of it (`accepted`). */
export type ReplayResult =
  | { readonly kind: 'accepted' | 'dropped' | 'changed' }
  | { readonly kind: 'replayed' | 'duplicate'; readonly ids: readonly string[] }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Runs transform functions in confined child processes. This package must not import the sandbox: whoever starts the server gives one that can. */
export interface Functions {
  /** Rejects with a `SandboxError` when functions cannot run here. */
  preview(
    text: string,
    sample: { readonly body: Uint8Array; readonly headers?: Readonly<Record<string, string>>; readonly projectId?: string },
  ): Promise<FunctionPreview>;
  /** Replays messages at once, those without a function too. Rejected results: a `SandboxError`, or an error of Postgres. */
  replay(
    pool: Database['pool'],
    messages: readonly ReplayableMessage[],
    options: { readonly dryRun: boolean },
  ): Promise<readonly PromiseSettledResult<ReplayResult>[]>;
  close(): Promise<void>;
}

export type OpenFunctions = () => Promise<Functions>;

/** Opens the functions with their first use. Without `open` every use rejects. A sandbox that cannot start becomes the GatewayError `functions_unavailable`. */
export function lazyFunctions(open: OpenFunctions | undefined): Functions {
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
