import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { operationalEvent } from '#agent/notifications/operational-events';
import { OPERATIONAL_TYPES, type OperationalType } from '#core/events/operational';
import type { ChannelNotification } from '#store/config/notification-channels';
import type { NotificationKind } from '#store/config/notifications';

const events = suite('agent/notifications/operational-events');

const GUIDE = new URL('../../../docs/guides/operational-events.md', import.meta.url);
const ENDED: Partial<Record<OperationalType, NotificationKind>> = {
  'gateway.endpoint.activated': 'endpoint_disabled',
  'gateway.endpoint.recovered': 'endpoint_failing',
  'gateway.endpoint.breaker_closed': 'endpoint_breaker',
  'gateway.source.recovered': 'source_failing',
};
const RAISED: Partial<Record<OperationalType, NotificationKind>> = {
  'gateway.endpoint.disabled': 'endpoint_disabled',
  'gateway.endpoint.disabling': 'endpoint_disabling',
  'gateway.endpoint.failing': 'endpoint_failing',
  'gateway.endpoint.breaker_opened': 'endpoint_breaker',
  'gateway.delivery.exhausted': 'endpoint_exhausted',
  'gateway.source.failing': 'source_failing',
  'gateway.source.paused': 'source_failing',
  'gateway.source.lost': 'source_lost',
  'gateway.channel.test': 'channel_test',
};

interface Thing {
  readonly uid: string;
  readonly name: string;
  readonly url?: string;
}
interface Sample {
  readonly type: OperationalType;
  readonly id: string;
  readonly raised_at: string;
  readonly project: Thing;
  readonly endpoint?: Thing;
  readonly source?: Thing;
  readonly channel?: Thing;
  readonly [fact: string]: unknown;
}

const samples = [...fs.readFileSync(GUIDE, 'utf8').matchAll(/```json\n(.*?)```/gs)].map(
  ([, text]) => JSON.parse(text!) as Sample,
);

/** The notification of which a sample of the guide is the event. */
function notificationOf(sample: Sample): ChannelNotification {
  const { type, id, raised_at, project, endpoint, source, channel, ...facts } = sample;
  const { uid, name, url = null } = (endpoint ?? source ?? channel)!;
  return {
    n: '1',
    kind: (ENDED[type] ?? RAISED[type])!,
    isRecovery: type in ENDED,
    id,
    projectId: project.uid,
    project: project.name,
    organisation: 'Shop Ltd',
    subject: type === 'gateway.source.lost' ? `${uid} 3` : uid,
    name,
    url,
    facts,
    attempts: 0,
    createdAt: new Date(raised_at),
    queuedAt: new Date(),
    admins: [],
  };
}

events('the guide shows an event of each type as it is made', () => {
  assert.equal(samples.map(({ type }) => type).sort(), [...OPERATIONAL_TYPES].sort());
  for (const sample of samples) {
    const { eventType, data } = operationalEvent(notificationOf(sample));
    assert.is(eventType, sample.type);
    assert.equal(JSON.parse(data), sample);
  }
});

events(
  'passwords in URLs and errors are masked, addresses of admins are left out, and times have one form',
  () => {
    const [sample] = samples.filter(({ type }) => type === 'gateway.source.paused');
    const { data } = operationalEvent({
      ...notificationOf(sample!),
      url: 'https://shop:hunter2@example.com/hooks',
      facts: {
        error: 'It failed: https://shop:hunter2@example.com.',
        resumes_at: '2026-03-31T16:15:09+02:00',
        mail: { left: ['admin@example.com'], reached: true },
      },
    });
    assert.not.match(data, 'hunter2');
    assert.not.match(data, 'admin@');
    assert.match(data, '"resumes_at":"2026-03-31T14:15:09.000Z"');
  },
);

events.run();
