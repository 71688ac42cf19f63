import type { TransformResult } from '@gateway/sandbox';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import { parseTransformOutput } from '../message/parse-message.js';
import type { ReadyEvent } from '../message/ready-message.js';
import { runOnce, type RunOnceOptions } from './run-once.js';

/** A stored rejection, whose code may be from another gateway version. */
export type StoredRejection = Pick<QuarantinedMessage, 'code' | 'reason'>;

export interface Preview {
  readonly kind: 'accepted' | 'dropped' | 'refused';
  /** Why the message would be quarantined, or null. One bad result rejects the whole message. */
  readonly refusal: StoredRejection | null;
  /** The function's results, one per object if it returned an array. */
  readonly results: readonly {
    readonly json: string;
    readonly event: ReadyEvent | null;
    readonly refusal: StoredRejection | null;
  }[];
  readonly logs: readonly string[];
  /** The duration of the call, or null if there was none. */
  readonly durationMs: number | null;
}

export interface SampleMessage {
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** The function's project. All functions of a project share a part of the sandbox. */
  readonly projectId?: string;
}

/**
 * Processes a sample message without committing anything, and returns the result. Rejects like
 * `runOnce`.
 *
 * @param bodyFunction the function's text; if null, the message itself is the only result
 */
export async function preview(
  bodyFunction: string | null,
  sample: SampleMessage,
  options: RunOnceOptions,
): Promise<Preview> {
  const { body, headers = {}, projectId = '' } = sample;
  const source = { projectId, id: projectId, bodyFunction };
  const { ready, called } = await runOnce(
    source,
    { coordinates: '', timestamp: Date.now(), body, headers },
    options,
  );
  const call = callOf(called);
  if (ready === 'dropped') return { kind: 'dropped', refusal: null, results: [], ...call };
  const { events, quarantined } = ready;
  const texts = bodyFunction === null && !quarantined ? [textOf(body)] : textsOf(called);
  const results = texts.map((json, at) => {
    const parsed = parseTransformOutput(json);
    return { json, event: events[at] ?? null, refusal: 'code' in parsed ? parsed : null };
  });
  if (!quarantined) return { kind: 'accepted', refusal: null, results, ...call };
  const { code, reason } = quarantined;
  return { kind: 'refused', refusal: { code, reason }, results, ...call };
}

/**
 * Returns the console output and duration of a call. The duration is null if the function could not
 * be called.
 */
export function callOf(called: TransformResult | undefined): Pick<Preview, 'logs' | 'durationMs'> {
  const isCompiled = !(
    called?.kind === 'refused' &&
    (called.code === 'not_compiled' || called.code === 'no_transform')
  );
  return { logs: called?.logs ?? [], durationMs: called && isCompiled ? called.durationMs : null };
}

/** Decodes a body without its byte order mark. */
function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body);
}

function textsOf(result: TransformResult | undefined): readonly string[] {
  if (result?.kind === 'object') return [result.json];
  return result?.kind === 'array' ? result.items : [];
}
