import { eventId, messageDigest, newId } from '#core/events/ids';
import type { Outcome } from '@gateway/plugin';
import { ReadyMessage } from '#ingest/message/ready-message';
import type { Rejection } from '#ingest/validate/reject-codes';
import type { NewEvent } from '#store/events/events';
import type { QuarantinedMessage } from '#store/quarantine/messages';
import { quarantinedMessage } from '../store/batches.js';

let last = 0;

/** Messages ready to be committed, and their outcomes. */
export class Messages {
  readonly projectId: string;
  readonly sourceId = newId();
  /** Outcomes by coordinates, in the order of settling. */
  readonly settled: [coordinates: string, outcome: Outcome][] = [];

  constructor(projectId: string) {
    this.projectId = projectId;
  }

  get outcomes(): Outcome[] {
    return this.settled.map(([, outcome]) => outcome);
  }

  get counts(): Partial<Record<Outcome, number>> {
    const counts: Partial<Record<Outcome, number>> = {};
    for (const outcome of this.outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
    return counts;
  }

  coordinates(): string {
    return `orders/0/${last++}`;
  }

  event(coordinates: string, fields: Partial<NewEvent> = {}, ordinal = 0): NewEvent {
    const { occurredAtMs = Date.now() } = fields;
    return {
      projectId: this.projectId,
      id: eventId(this.sourceId, coordinates, occurredAtMs, ordinal),
      occurredAtMs,
      sourceId: this.sourceId,
      coordinates,
      digest: messageDigest(Buffer.from(coordinates)),
      eventType: 'order.paid',
      messageType: 'single',
      endpointId: null,
      ownerId: null,
      idempotencyKey: null,
      headers: {},
      notes: null,
      data: '{"n":1}',
      status: 'pending',
      outcome: null,
      ...fields,
    };
  }

  /** A message with one event, or with the given events. */
  ready(fields: Partial<NewEvent> = {}, events?: readonly NewEvent[]): ReadyMessage {
    const { coordinates = events?.[0]?.coordinates ?? this.coordinates() } = fields;
    const message: ReadyMessage = new ReadyMessage(
      this.projectId,
      events ?? [this.event(coordinates, fields)],
      (outcome) => void this.settled.push([coordinates, outcome]),
    );
    return Object.assign(message, {
      reject: (rejection: Rejection) => {
        message.events = [];
        message.quarantined = this.quarantined(coordinates, rejection);
      },
      distinguish: (ids: ReadonlySet<string>) => {
        const idOf = (event: NewEvent) =>
          eventId(this.sourceId, coordinates, event.occurredAtMs, 0, event.digest ?? '');
        message.events = message.events
          .filter(({ id }) => ids.has(id))
          .map((event) => ({ ...event, id: idOf(event) }));
      },
    });
  }

  /** A message that can never be accepted. */
  hopeless(fields: Partial<QuarantinedMessage> = {}): ReadyMessage {
    const { coordinates = this.coordinates() } = fields;
    return Object.assign(this.ready({ coordinates }), {
      events: [],
      quarantined: this.quarantined(coordinates, fields),
    });
  }

  many(
    count: number,
    fields: Partial<NewEvent> | ((n: number) => Partial<NewEvent>) = {},
  ): ReadyMessage[] {
    return Array.from({ length: count }, (_, n) =>
      this.ready(typeof fields === 'function' ? fields(n) : fields),
    );
  }

  quarantined(coordinates: string, fields: Partial<QuarantinedMessage> = {}): QuarantinedMessage {
    return quarantinedMessage({
      projectId: this.projectId,
      sourceId: this.sourceId,
      coordinates,
      ...fields,
    });
  }
}
