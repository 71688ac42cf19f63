import type { OperationalType } from '@gateway/core/events';
import { clip } from '@gateway/core/json';
import { maskUrls } from '@gateway/core/logging';
import { TOLD_BY, type NotificationFacts, type NotificationKind } from '@gateway/store/config';
import type { Told } from './notification-text.js';

export function operationalType(
  { kind, facts }: Pick<Told, 'kind' | 'facts'>,
  isRecovery: boolean,
): OperationalType {
  if (facts.resumes_at !== undefined) return 'gateway.source.paused';
  const [raised, ended] = TOLD_BY[kind] as readonly [OperationalType, OperationalType?];
  return (isRecovery && ended) || raised;
}

/** The data of an event about notifications of one type: the first, and the `others`. */
export function operationalData(
  eventType: OperationalType,
  notifications: readonly Told[],
): string {
  const [first, ...others] = notifications.map((it) => entryOf(eventType, it));
  return JSON.stringify({ ...first, ...(others.length > 0 && { others }) });
}

function entryOf(eventType: OperationalType, notification: Told): Record<string, unknown> {
  const { id, kind, projectId, project, subject, name, url, createdAt } = notification;
  const { error, resumes_at: resumesAt, mail: _, ...facts } = notification.facts;
  const [thing] = kind.split('_') as [string];
  return {
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
}

interface Thing {
  readonly uid: string;
  readonly name: string | null;
  readonly url?: string;
}
interface Entry extends NotificationFacts {
  readonly type: string;
  readonly id: string;
  readonly raised_at: string;
  readonly project: { readonly uid: string; readonly name: string | null };
  readonly endpoint?: Thing;
  readonly source?: Thing;
}

/**
 * The notifications that an event is about, with texts of at most `max` characters. Undefined for any
 * other event. Throws if a function or a caller of the API has given the data another form.
 */
export function notificationsOf(
  eventType: string,
  data: string,
  max: number,
): { readonly isRecovery: boolean; readonly notifications: readonly Told[] } | undefined {
  const found = (Object.entries(TOLD_BY) as [NotificationKind, readonly string[]][]).find(
    ([, types]) => types.includes(eventType),
  );
  if (!found) return undefined;
  const [kind, [, ended]] = found;
  const { others = [], ...first } = JSON.parse(data, (_, value: unknown) =>
    typeof value === 'string' ? clip(value, max) : value,
  ) as Entry & { readonly others?: readonly Entry[] };
  const notifications = [first, ...others].map(
    ({ type: _, id, raised_at, project, endpoint, source, ...facts }): Told => {
      const { uid, name, url = null } = (endpoint ?? source)!;
      return {
        id,
        kind,
        projectId: project.uid,
        subject: uid,
        facts,
        createdAt: new Date(raised_at),
        project: project.name,
        organisation: null,
        name,
        url,
      };
    },
  );
  return { isRecovery: ended === eventType, notifications };
}
