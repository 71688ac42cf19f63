import { contentTypeOf } from '@gateway/plugin';
import type { TransformResult } from '@gateway/sandbox';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import { decode } from '../decode/decode.js';
import { parseTransformOutput } from '../validate/parse-message.js';
import type { ReadyEvent } from '../message/ready-message.js';
import { runOnce, type RunOnceOptions } from './run-once.js';

/** The code may be from another gateway version. */
export type StoredRejection = Pick<QuarantinedMessage, 'code' | 'reason'>;

export interface Preview {
  readonly kind: 'accepted' | 'dropped' | 'refused';
  /** Why the message would be quarantined. One bad result rejects the whole message. */
  readonly refusal: StoredRejection | null;
  /** One per object if the function returned an array. */
  readonly results: readonly {
    readonly json: string;
    readonly event: ReadyEvent | null;
    readonly refusal: StoredRejection | null;
  }[];
  readonly logs: readonly string[];
  /** Null if the function was not called. */
  readonly durationMs: number | null;
}

export interface SampleMessage {
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** All functions of a project share a part of the sandbox. */
  readonly projectId?: string;
}

/**
 * Commits nothing. Rejects like `runOnce`.
 *
 * @param bodyFunction if null, the message itself is the only result
 */
export async function preview(
  bodyFunction: string | null,
  sample: SampleMessage,
  options: RunOnceOptions,
): Promise<Preview> {
  const { body, headers = {}, projectId = '' } = sample;
  const contentType = contentTypeOf(headers);
  const source = { projectId, id: projectId, bodyFunction };
  const { ready, called } = await runOnce(
    source,
    {
      coordinates: '',
      timestamp: Date.now(),
      body,
      headers,
      contentType,
    },
    options,
  );
  const call = callOf(called);
  if (ready === 'dropped') return { kind: 'dropped', refusal: null, results: [], ...call };
  const { events, quarantined } = ready;
  const texts =
    bodyFunction === null && !quarantined
      ? [(await decode({ body, contentType }, Infinity)) as string]
      : textsOf(called);
  const results = texts.map((json, at) => {
    const parsed = parseTransformOutput(json.replace(/^\ufeff/, ''));
    return { json, event: events[at] ?? null, refusal: 'code' in parsed ? parsed : null };
  });
  if (!quarantined) return { kind: 'accepted', refusal: null, results, ...call };
  const { code, reason } = quarantined;
  return { kind: 'refused', refusal: { code, reason }, results, ...call };
}

/** The duration is null if the function could not be called. */
export function callOf(called: TransformResult | undefined): Pick<Preview, 'logs' | 'durationMs'> {
  const isCompiled = !(
    called?.kind === 'refused' &&
    (called.code === 'not_compiled' || called.code === 'no_transform')
  );
  return { logs: called?.logs ?? [], durationMs: called && isCompiled ? called.durationMs : null };
}

function textsOf(result: TransformResult | undefined): readonly string[] {
  if (result?.kind === 'object') return [result.json];
  return result?.kind === 'array' ? result.items : [];
}
