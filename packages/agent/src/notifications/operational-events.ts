import type { OperationalType } from '@gateway/core/events';
import { maskUrls } from '@gateway/core/logging';
import type { ChannelNotification, NotificationKind } from '@gateway/store/config';

/** By kind of notification: when it is raised, and when its cause has ended. */
const TYPES: Readonly<
  Record<NotificationKind, readonly [raised: OperationalType, ended?: OperationalType]>
> = {
  endpoint_disabled: ['gateway.endpoint.disabled', 'gateway.endpoint.activated'],
  endpoint_disabling: ['gateway.endpoint.disabling'],
  endpoint_failing: ['gateway.endpoint.failing', 'gateway.endpoint.recovered'],
  endpoint_breaker: ['gateway.endpoint.breaker_opened', 'gateway.endpoint.breaker_closed'],
  endpoint_exhausted: ['gateway.delivery.exhausted'],
  source_failing: ['gateway.source.failing', 'gateway.source.recovered'],
  source_lost: ['gateway.source.lost'],
  channel_test: ['gateway.channel.test'],
};

export function operationalEvent(notification: ChannelNotification): {
  eventType: OperationalType;
  data: string;
} {
  const { id, kind, projectId, project, subject, name, url, createdAt, isRecovery } = notification;
  const { error, resumes_at: resumesAt, mail: _, ...facts } = notification.facts;
  const [raised, ended] = TYPES[kind];
  const eventType =
    resumesAt !== undefined ? 'gateway.source.paused' : (isRecovery && ended) || raised;
  const [thing] = kind.split('_') as [string];
  const data = {
    type: eventType,
    id,
    raised_at: createdAt.toISOString(),
    project: { uid: projectId, name: project },
    [thing]: {
      uid: subject.split(' ')[0],
      name,
      ...(url !== null && { url: maskUrls(url) }),
    },
    ...facts,
    ...(resumesAt !== undefined && { resumes_at: new Date(resumesAt).toISOString() }),
    ...(error !== undefined && { error: maskUrls(error) }),
  };
  return { eventType, data: JSON.stringify(data) };
}
