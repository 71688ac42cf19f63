import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Told } from '#agent/model/notification-text';
import { notificationsOf, operationalData, operationalType } from '#agent/model/operational-events';
import { OPERATIONAL_TYPES, type OperationalType } from '#core/events/operational';
import { TOLD_BY, type NotificationKind } from '#store/config/notifications';

const events = suite('agent/model/operational-events');

const GUIDE = new URL('../../../docs/guides/operational-events.md', import.meta.url);
const KINDS = Object.entries(TOLD_BY) as [NotificationKind, readonly OperationalType[]][];

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
  readonly [fact: string]: unknown;
}

const samples = [...fs.readFileSync(GUIDE, 'utf8').matchAll(/```json\n(.*?)```/gs)].map(
  ([, text]) => JSON.parse(text!) as Sample,
);

/** The notification of which a sample of the guide is the event. */
function notificationOf(sample: Sample): { isRecovery: boolean; notification: Told } {
  const { type, id, raised_at, project, endpoint, source, ...facts } = sample;
  const { uid, name, url = null } = (endpoint ?? source)!;
  const [kind, [, ended]] = KINDS.find(([, types]) => types.includes(type))!;
  const notification = {
    kind,
    id,
    projectId: project.uid,
    project: project.name,
    organisation: null,
    subject: type === 'gateway.source.lost' ? `${uid} 3` : uid,
    name,
    url,
    facts,
    createdAt: new Date(raised_at),
  };
  return { isRecovery: type === ended, notification };
}

events('the guide shows an event of each type as it is made, and it is read again', () => {
  assert.equal(samples.map(({ type }) => type).sort(), [...OPERATIONAL_TYPES].sort());
  for (const sample of samples) {
    const { notification, isRecovery } = notificationOf(sample);
    const eventType = operationalType(notification, isRecovery);
    assert.is(eventType, sample.type);
    const data = operationalData(eventType, [notification]);
    assert.equal(JSON.parse(data), sample);
    const subject = notification.subject.replace(/ .*/, '');
    assert.equal(notificationsOf(eventType, data, 500), {
      isRecovery,
      notifications: [{ ...notification, subject }],
    });
  }
});

events('several notifications are in one event, and their texts are cut', () => {
  const [sample] = samples;
  const { notification } = notificationOf(sample!);
  const other = { ...notification, id: 'other', name: 'x'.repeat(100) };
  const data = operationalData(sample!.type, [notification, other]);
  assert.is(JSON.parse(data).others[0].id, 'other');
  const { notifications } = notificationsOf(sample!.type, data, 40)!;
  assert.equal(
    notifications.map(({ id, name }) => [id, name!.length <= 40]),
    [
      [notification.id, true],
      ['other', true],
    ],
  );
});

events(
  'passwords in URLs and errors are masked, addresses are left out, times have one form',
  () => {
    const sample = samples.find(({ type }) => type === 'gateway.source.paused')!;
    const data = operationalData('gateway.source.paused', [
      {
        ...notificationOf(sample).notification,
        url: 'https://shop:hunter2@example.com/hooks',
        facts: {
          error: 'It failed: https://shop:hunter2@example.com.',
          resumes_at: '2026-03-31T16:15:09+02:00',
          mail: { left: ['admin@example.com'], reached: true },
        },
      },
    ]);
    assert.not.match(data, 'hunter2');
    assert.not.match(data, 'admin@');
    assert.match(data, '"resumes_at":"2026-03-31T14:15:09.000Z"');
  },
);

events.run();
