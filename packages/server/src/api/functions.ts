import { GatewayError } from '@gateway/core/errors';
import type { NewEvent } from '@gateway/store/events';

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

/** Runs transform functions in confined child processes. This package must not import the sandbox: whoever starts the server gives one that can. */
export interface Functions {
  /** Rejects with a `SandboxError` when functions cannot run here. */
  preview(
    text: string,
    sample: { readonly body: Uint8Array; readonly headers?: Readonly<Record<string, string>>; readonly projectId?: string },
  ): Promise<FunctionPreview>;
  close(): Promise<void>;
}

export type OpenFunctions = () => Promise<Functions>;

/** Opens the functions with their first use. Without `open` every use rejects. All rejections are the GatewayError `functions_unavailable`. */
export function lazyFunctions(open: OpenFunctions | undefined): Functions {
  let opened: Promise<Functions> | undefined;
  return {
    async preview(...given) {
      if (!open) throw new GatewayError('functions_unavailable', { reason: 'this server was started without them', retryAfterSeconds: 60 });
      try {
        return await (await (opened ??= open())).preview(...given);
      } catch (cause) {
        if ((cause as Error).name !== 'SandboxError') throw cause;
        throw new GatewayError('functions_unavailable', { reason: (cause as Error).message, retryAfterSeconds: 5 }, { cause });
      }
    },
    close: async () => (await opened)?.close(),
  };
}
