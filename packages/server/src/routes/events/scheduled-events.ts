import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { eventId, newId } from '@gateway/core/events';
import {
  cancelScheduled,
  findScheduled,
  listScheduled,
  moveScheduled,
  type ScheduledRow,
} from '@gateway/store/config';
import {
  assertValid,
  found,
  Id,
  int,
  listRoute,
  namedObject,
  nullable,
  object,
  oneOf,
  pageQuery,
  projectItem,
  RawJson,
  string,
  Timestamp,
  Type,
  withUid,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';

const DAYS_MAX = 90;

/** With a zone: https://www.rfc-editor.org/rfc/rfc3339#section-5.6 */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i;

export const DeliverAt = Type.String({
  maxLength: 40,
  format: 'date-time',
  examples: ['2026-12-24T08:00:00Z'],
  description: `When the event is delivered, at most ${DAYS_MAX} days ahead. A time in the past is now.`,
});

/** Undefined if it is not later than now. */
export function laterTime(text: string | undefined, problems: InvalidField[]): Date | undefined {
  if (text === undefined) return undefined;
  const at = new Date(text);
  const refuse = (sentence: string) => void problems.push({ field: 'deliver_at', sentence });
  if (!TIME.test(text) || Number.isNaN(at.getTime()))
    refuse('must be a time with a zone, such as 2026-12-24T08:00:00Z');
  else if (at.getTime() > Date.now() + DAYS_MAX * 86_400_000)
    refuse(`is more than ${DAYS_MAX} days ahead`);
  else if (at.getTime() > Date.now()) return at;
  return undefined;
}

/** An id of an event has the time of the event, which decides in which day it is stored. */
export function scheduledId(at: Date): string {
  return eventId(newId(), 'scheduled', at.getTime());
}

const fields = {
  uid: Id,
  project_id: Id,
  deliver_at: Timestamp,
  created_at: Timestamp,
  event_type: string(),
  message_type: oneOf(['single', 'fanout', 'broadcast']),
  endpoint_id: nullable(string()),
  owner_id: nullable(string()),
  idempotency_key: nullable(string()),
  data_bytes: int(),
};
const Scheduled = namedObject('ScheduledEvent', fields);
const WholeScheduled = namedObject('WholeScheduledEvent', {
  ...fields,
  headers: Type.Record(string(), string()),
  data: Type.Record(string(), Type.Unknown()),
});

async function requireScheduled({ database, project, id }: ProjectCall) {
  return found(await findScheduled(database.knex, project.id, id), 'scheduled event', id);
}

/** Throws `not_found` that says when the event is delivered. */
export async function assertNotScheduled(
  { database, project }: Pick<ProjectCall, 'database' | 'project'>,
  id: string,
): Promise<void> {
  const scheduled = await findScheduled(database.knex, project.id, id);
  if (!scheduled) return;
  const at = scheduled.deliver_at.toISOString();
  const fix = `it is scheduled for ${at}: see GET /scheduled-events/${id}`;
  throw new GatewayError('not_found', { thing: 'event', id, fix });
}

/** Throws `not_found` or, for an event that is due, `conflict`. */
async function requireLater(call: ProjectCall, isDone: boolean): Promise<void> {
  if (isDone) return;
  await requireScheduled(call);
  throw new GatewayError('conflict', {
    sentence: 'the scheduled event is due, and becomes an event now',
    fix: `see GET /events/${call.id}`,
  });
}

const view = ({ id, data, ...row }: ScheduledRow & { readonly data: string }) => ({
  uid: id,
  ...row,
  data: new RawJson(data),
});

const item = { thing: 'scheduled event', isAudited: false } as const;

export const scheduledEventRoutes: readonly Route[] = [
  listRoute(
    '/scheduled-events',
    'Lists the events that are delivered later, by the time of their delivery.',
    { query: object(pageQuery), title: 'scheduled events', data: Scheduled },
    ({ database, project }, page) => listScheduled(database.knex, project.id, page),
  ),
  projectItem(
    'GET /scheduled-events/:id',
    'Shows an event that is delivered later, with its data.',
    { thing: 'scheduled event', data: WholeScheduled },
    requireScheduled,
    view,
  ),
  projectItem(
    'PUT /scheduled-events/:id',
    'Delivers an event at another time. Its id changes, because the id of an event contains its time.',
    {
      ...item,
      body: namedObject('MoveScheduledEvent', { deliver_at: DeliverAt }),
      data: Scheduled,
    },
    async (call) => {
      const { database, project, body, id } = call;
      const problems: InvalidField[] = [];
      const deliverAt = laterTime(body.deliver_at, problems) ?? new Date();
      assertValid(problems);
      const to = { id: scheduledId(deliverAt), deliverAt };
      const isMoved = await moveScheduled(database.pool, { projectId: project.id, id }, to);
      await requireLater(call, isMoved);
      const { data: _, headers: __, ...row } = await requireScheduled({ ...call, id: to.id });
      return row;
    },
    withUid,
  ),
  projectItem(
    'DELETE /scheduled-events/:id',
    'Cancels an event that is delivered later.',
    { ...item, message: 'scheduled event cancelled' },
    async (call) => {
      const of = { projectId: call.project.id, id: call.id };
      await requireLater(call, await cancelScheduled(call.database.pool, of));
      return true;
    },
  ),
];
