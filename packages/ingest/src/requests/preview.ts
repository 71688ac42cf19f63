import { contentTypeOf, type Message } from '@gateway/plugin';
import type { TransformResult } from '@gateway/sandbox';
import type { NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { CodecOf, CodecOfSource } from '../decode/codecs.js';
import { parseTransformOutput } from '../validate/parse-message.js';
import type { Prepare } from './prepare.js';

/** The code may be from another gateway version. */
export type StoredRejection = Pick<QuarantinedMessage, 'code' | 'reason'>;

export interface Preview {
  readonly kind: 'accepted' | 'dropped' | 'refused';
  /** Why the message would be quarantined. One bad result rejects the whole message. */
  readonly refusal: StoredRejection | null;
  /** One per object if the function returned an array. */
  readonly results: readonly {
    readonly json: string;
    readonly event: NewEvent | null;
    readonly refusal: StoredRejection | null;
  }[];
  readonly logs: readonly string[];
  /** Null if the function was not called. */
  readonly durationMs: number | null;
}

export interface SampleMessage {
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Beside body and headers, for a function that takes the message. */
  readonly message?: Partial<Omit<Message, 'body' | 'headers' | 'contentType'>>;
  /** All functions of a project share a part of the sandbox. */
  readonly projectId?: string;
  /** By default, the content type says how the body is decoded. */
  readonly codec?: CodecOfSource | undefined;
}

/**
 * Commits nothing. Rejects like `prepare`.
 *
 * @param bodyFunction if null, the message itself is the only result
 */
export async function preview(
  bodyFunction: string | null,
  { body, headers = {}, message, projectId = '', codec }: SampleMessage,
  prepare: Prepare,
  codecOf?: CodecOf,
): Promise<Preview> {
  const { events, quarantined, texts, called } = await prepare(
    { projectId, id: projectId, bodyFunction, codec: codec && codecOf?.(codec) },
    {
      coordinates: '',
      timestamp: Date.now(),
      ...message,
      body,
      headers,
      contentType: contentTypeOf(headers),
    },
  );
  const call = callOf(called);
  const isRefused = bodyFunction === null && quarantined;
  const results = (isRefused ? [] : (texts as readonly string[])).map((text, at) => {
    const json = text.replace(/^\ufeff/, '');
    const parsed = parseTransformOutput(json);
    return { json, event: events[at] ?? null, refusal: 'code' in parsed ? parsed : null };
  });
  if (!quarantined)
    return { kind: events.length > 0 ? 'accepted' : 'dropped', refusal: null, results, ...call };
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
