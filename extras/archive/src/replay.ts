import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '@gateway/core/errors';
import { messageOf, newId, timeOfId } from '@gateway/core/events';
import { matchesType } from '@gateway/core/routing';
import { byId, onePerKey } from '@gateway/ingest/commit/new-events';
import {
  acceptEvents,
  type EventRef,
  type MessageType,
  type StorableEvent,
} from '@gateway/store/events';
import type { Database } from '@gateway/store/postgres';
import type {
  ArchivedDelivery,
  ArchivedEvent,
  ArchiveReplayOptions,
  ArchiveReplayStep,
  ArchiveSelection,
} from '@gateway/store/retention/archive';
import type { ObjectStore } from './object-store.js';
import { listArchive, readArchivedDay } from './read-archive.js';

const COMMIT_EVENTS = 500;
const COMMIT_BYTES = 4 * 1024 * 1024;
/** An event is not sent again twice within this time. */
const KEY_SECONDS = 7 * 86_400;
const RETRY_AFTER_SECONDS = 1;

/** An idempotency key of the archived id makes a second run continue the first. */
export async function* replayArchived(
  store: ObjectStore,
  selection: ArchiveSelection,
  { pool, dryRun, limit, perSecond }: ArchiveReplayOptions,
): AsyncGenerator<ArchiveReplayStep, void, void> {
  let left = limit;
  for await (const copies of inCommits(selectedCopies(store, selection))) {
    const events = copies.slice(0, left);
    left -= events.length;
    const startedAtMs = performance.now();
    yield { selected: events.length, created: dryRun ? [] : await commit(pool, events) };
    if (left === 0) return;
    if (!dryRun && perSecond > 0)
      await sleep((events.length * 1000) / perSecond - (performance.now() - startedAtMs));
  }
}

type Copy = StorableEvent & { readonly headers: string };

async function* selectedCopies(
  store: ObjectStore,
  selection: ArchiveSelection,
): AsyncGenerator<Copy> {
  const { projectId, firstId, lastId, eventType, sourceId } = selection;
  const [from, to] = [firstId, lastId].map((id) =>
    new Date(timeOfId(id)).toISOString().slice(0, 10),
  );
  for await (const manifest of listArchive(store, { projectId, from, to })) {
    for await (const page of readArchivedDay(store, manifest, { firstId, lastId })) {
      for (const event of page) {
        const isSelected =
          (sourceId === undefined || event.source_id === sourceId) &&
          (eventType === undefined || matchesType(eventType, event.event_type));
        if (isSelected) yield* copiesOf(event, selection);
      }
    }
  }
}

function copiesOf(event: ArchivedEvent, selection: ArchiveSelection): Copy[] {
  const { projectId, endpointId, outcome } = selection;
  if (endpointId === undefined && outcome === undefined)
    return [
      copyOf(projectId, event, {
        messageType: event.message_type as MessageType,
        endpointId: event.endpoint_id,
        ownerId: event.owner_id,
      }),
    ];
  const endpoints = (JSON.parse(event.deliveries) as ArchivedDelivery[]).filter(
    (it) =>
      (endpointId === undefined || it.endpoint_id === endpointId) &&
      (outcome === undefined || it.status === outcome),
  );
  return [...new Set(endpoints.map((it) => it.endpoint_id))].map((id) =>
    copyOf(projectId, event, { messageType: 'single', endpointId: id, ownerId: null }),
  );
}

function copyOf(
  projectId: string,
  { id: archivedId, ...event }: ArchivedEvent,
  target: Pick<Copy, 'messageType' | 'endpointId' | 'ownerId'>,
): Copy {
  const id = newId();
  const to = target.messageType === 'single' ? target.endpointId : null;
  return {
    projectId,
    id,
    occurredAtMs: timeOfId(id),
    sourceId: event.source_id,
    coordinates: `archive/${archivedId}`,
    digest: null,
    eventType: event.event_type,
    ...target,
    idempotencyKey: ['archive', archivedId, ...(to === null ? [] : [to])].join('/'),
    status: 'pending',
    outcome: null,
    headers: event.headers,
    message: JSON.stringify(
      messageOf({
        sourceId: event.source_id,
        coordinates: event.coordinates,
        occurredAtMs: timeOfId(archivedId),
        message: event.message,
      }) ?? null,
    ),
    notes: event.notes,
    data: event.data,
  };
}

/** Groups events by what one commit takes. */
async function* inCommits(copies: AsyncIterable<Copy>): AsyncGenerator<Copy[]> {
  let [group, bytes]: [Copy[], number] = [[], 0];
  for await (const copy of copies) {
    group.push(copy);
    bytes += copy.data.length + copy.headers.length;
    if (group.length < COMMIT_EVENTS && bytes < COMMIT_BYTES) continue;
    yield group;
    [group, bytes] = [[], 0];
  }
  if (group.length > 0) yield group;
}

async function commit(pool: Database['pool'], copies: readonly Copy[]): Promise<EventRef[]> {
  const events = copies.filter(onePerKey()).sort(byId);
  const { created, refused } = await acceptEvents(pool, {
    events,
    deliveries: [],
    agentId: 0,
    idempotencyWindowSeconds: KEY_SECONDS,
  });
  if (refused.size > 0)
    throw new GatewayError('project_moved', { retryAfterSeconds: RETRY_AFTER_SECONDS });
  return created === 'all' ? events : events.filter(({ id }) => created.has(id));
}
