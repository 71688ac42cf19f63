import { eventId, partsOfStored } from '@gateway/core/events';
import { contentTypeOf } from '@gateway/plugin';
import { type NewEvent, readVerdicts } from '@gateway/store/events';
import { rejectsContent, type Planes } from '@gateway/store/postgres';
import {
  dropReplayedMessage,
  rejectReplayedMessage,
  replayQuarantinedMessage,
  type ReplayableMessage,
} from '@gateway/store/quarantine';
import type { CodecOf } from '../decode/codecs.js';
import { byId, onePerKey } from '../commit/new-events.js';
import { functionText } from '../message/ingest-source.js';
import { databaseRefused } from '../validate/reject-codes.js';
import type { StoredRejection } from './preview.js';
import type { Prepare } from './prepare.js';

export type DryRun =
  | { readonly kind: 'accepted'; readonly events: readonly NewEvent[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly refusal: StoredRejection };

export type Replayed =
  /** Events were committed as pending. `ids` are those of the new events. */
  | { readonly kind: 'replayed'; readonly ids: readonly string[] }
  /** No event is new. `ids` are those of the existing events. */
  | { readonly kind: 'duplicate'; readonly ids: readonly string[] }
  | Exclude<DryRun, { kind: 'accepted' }>
  /** The message was replayed, discarded or edited concurrently, so nothing was done. */
  | { readonly kind: 'changed' };

interface CommitReplayOptions {
  readonly planes: Planes;
  readonly idempotencyWindowSeconds: number;
}

const DROPPED_REASON = 'The transform function dropped the message when it was replayed.';

/** Transforms and validates without changing anything. Rejects like `prepare`. */
export async function dryRun(
  message: ReplayableMessage,
  prepare: Prepare,
  codecOf?: CodecOf,
): Promise<DryRun> {
  const { projectId, sourceId, bodyFunction, coordinates, occurredAtMs, body, headers } = message;
  // People edit text, not what a codec decodes.
  const codec = message.editedAt === null ? message.codec : null;
  const { events, quarantined } = await prepare(
    {
      projectId,
      id: sourceId,
      bodyFunction: functionText(bodyFunction),
      ...(codec && { codec: codecOf?.({ sourceId, codec }) }),
      // The bodies of HTTP sources were limited when they were received, some to more than the
      // setting.
      ...(coordinates.startsWith('http/') && { maxMessageBytes: Infinity }),
    },
    {
      coordinates,
      timestamp: occurredAtMs,
      body,
      headers,
      contentType: contentTypeOf(headers),
      ...partsOfStored(message.message),
    },
  );
  if (!quarantined) return events.length > 0 ? { kind: 'accepted', events } : { kind: 'dropped' };
  const { code, reason } = quarantined;
  return { kind: 'refused', refusal: { code, reason } };
}

/**
 * One transaction with the message's new status. Coordinates, time and event ids are kept, unless
 * another message has the ids. The events are pending: the caller signals them, or an agent finds
 * them a few seconds later. Rejects like `prepare`, and with Postgres errors.
 */
export async function replay(
  message: ReplayableMessage,
  prepare: Prepare,
  { codecOf, ...options }: CommitReplayOptions & { readonly codecOf?: CodecOf | undefined },
): Promise<Replayed> {
  const { data } = options.planes;
  const result = await dryRun(message, prepare, codecOf);
  if (result.kind === 'refused') return reject(data, message, result.refusal);
  if (result.kind === 'dropped')
    return (await dropReplayedMessage(data, message, DROPPED_REASON))
      ? result
      : { kind: 'changed' };
  try {
    return await commit(message, result.events, options);
  } catch (error) {
    if (!rejectsContent(error)) throw error;
    return reject(data, message, databaseRefused(error as Error));
  }
}

async function commit(
  message: ReplayableMessage,
  parsed: readonly NewEvent[],
  { planes, idempotencyWindowSeconds }: CommitReplayOptions,
): Promise<Replayed> {
  const events = await distinguished(planes.data, message, parsed);
  const pending = events.filter(onePerKey()).sort(byId);
  const accepted = await replayQuarantinedMessage(planes, message, {
    events: pending,
    idempotencyWindowSeconds,
  });
  if (accepted === undefined) return { kind: 'changed' };
  const ids = pending.map(({ id }) => id).filter((id) => accepted === 'all' || accepted.has(id));
  if (ids.length > 0) return { kind: 'replayed', ids };
  const verdicts = await readVerdicts(planes.data, events);
  const idOf = (event: NewEvent) => {
    const verdict = verdicts.get(event);
    return verdict?.is === 'duplicate' ? verdict.id : event.id;
  };
  return { kind: 'duplicate', ids: events.map(idOf) };
}

async function reject(
  pool: Planes['data'],
  message: ReplayableMessage,
  refusal: StoredRejection,
): Promise<Replayed> {
  return (await rejectReplayedMessage(pool, message, refusal))
    ? { kind: 'refused', refusal }
    : { kind: 'changed' };
}

/**
 * Events whose ids another message already has get new ids: a replay asserts that the messages
 * differ.
 */
async function distinguished(
  pool: Planes['data'],
  message: ReplayableMessage,
  events: readonly NewEvent[],
): Promise<NewEvent[]> {
  const { sourceId, coordinates, occurredAtMs, digest } = message;
  const own = events.map((event) => ({ ...event, digest }));
  const verdicts = await readVerdicts(pool, own);
  const idOf = (ordinal: number) => eventId(sourceId, coordinates, occurredAtMs, ordinal, digest);
  return own.map((event, ordinal) =>
    ['collision', 'unclear'].includes(verdicts.get(event)!.is)
      ? { ...event, id: idOf(ordinal) }
      : event,
  );
}
