import { clip } from '@gateway/core/json';
import type { InFlightDelivery } from '../../../model/delivery.js';
import {
  notificationParts,
  oneLine,
  type Fact,
  type TextConfig,
} from '../../../model/notification-text.js';
import { notificationsOf } from '../../../model/operational-events.js';

/** An event as services for people show it. */
export interface ServiceMessage {
  /** The same for a problem and its end. */
  readonly id: string;
  readonly kind: string;
  readonly isRecovery: boolean;
  readonly subject: string;
  readonly opening: string;
  /** One entry for each notification; with several, first one for what they have in common. */
  readonly facts: readonly (readonly Fact[])[];
  readonly at: string;
  readonly project: string;
  readonly env: string;
}

export interface PresetTarget {
  readonly url: string;
  /** The bearer token of the endpoint. */
  readonly key: string;
}

export interface PresetRequest {
  /** By default the one of the endpoint. */
  readonly url?: string;
  /** Names and values by turns, in place of those of the authentication. */
  readonly headers?: readonly string[];
  readonly body: unknown;
}

/** How a service takes messages. */
export interface Preset {
  /** The part of the service's limits that a body uses. */
  usage?(body: unknown): number;
  request(message: ServiceMessage, target: PresetTarget): PresetRequest;
}

const SUBJECT_MAX = 500;
/** The characters of the data of an event that is none of the gateway's own. */
const DATA_MAX = 2_000;

/** @param max the characters of a name, URL or error */
export function messageOf(
  delivery: InFlightDelivery,
  max: number,
  config: TextConfig,
): ServiceMessage {
  const { env } = config;
  const { eventType, eventId, occurredAtMs, body } = delivery;
  const text = body.toString();
  try {
    const found = notificationsOf(eventType, text, max);
    if (found) {
      const { isRecovery, notifications } = found;
      const { id, kind, createdAt, project } = notifications[0]!;
      const { subject, opening, facts } = notificationParts(notifications, config);
      return {
        // The end of the first of several problems is not the end of all.
        id: notifications.length === 1 ? id : `${id}-${notifications.length}`,
        kind,
        isRecovery,
        subject: clip(isRecovery ? `Resolved: ${subject}` : subject, SUBJECT_MAX),
        opening: isRecovery ? 'This is over.' : opening,
        facts: commonFirst(facts),
        at: createdAt.toISOString(),
        project: oneLine(project ?? ''),
        env,
      };
    }
  } catch {
    // Its data is shown as that of any other event.
  }
  return {
    id: eventId,
    kind: oneLine(eventType),
    isRecovery: false,
    subject: oneLine(eventType),
    opening: oneLine(clip(text, DATA_MAX)),
    facts: [],
    at: new Date(occurredAtMs).toISOString(),
    project: '',
    env,
  };
}

/** Moves the facts that all notifications have in common to an entry before theirs. */
function commonFirst(facts: readonly (readonly Fact[])[]): readonly (readonly Fact[])[] {
  if (facts.length === 1) return facts;
  const isCommon = ([name, value]: Fact) =>
    facts.every((of) => of.some((it) => it[0] === name && it[1] === value));
  return [
    facts[0]!.filter(isCommon),
    ...facts.map((of) => of.filter((fact) => !isCommon(fact))),
  ].filter((of) => of.length > 0);
}

export const LINK = 'Link';
export const INVISIBLE = '\u200b';
