import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, isGatewayError, type InvalidField } from '@gateway/core/errors';
import {
  customHeaderProblem,
  headerOwner,
  MESSAGE_TYPE_HEADER,
  travellingHeaders,
} from '@gateway/core/events';
import { rawJsonElements, rawJsonValue } from '@gateway/core/json';
import { insertScheduled } from '@gateway/store/config';
import type { MessageType } from '@gateway/store/events';
import { idempotencyKeyOf } from '../../api/idempotency.js';
import { measureIngest } from '../../api/measure.js';
import { unstorableStrings } from '../../http/body.js';
import {
  assertValid,
  invalid,
  type ApiAnswer,
  type ProjectCall,
  type Validator,
} from '../../api/vocabulary.js';
import { laterTime, scheduledId } from './scheduled-events.js';
import { traceCreation } from './trace-creation.js';

/** Projects need not define it. */
export const TEST_EVENT_TYPE = 'gateway.test';

interface EventBody {
  readonly event_type: string;
  readonly custom_headers?: Readonly<Record<string, string>>;
  readonly idempotency_key?: string;
  readonly deliver_at?: string;
}

const UNKNOWN = {
  endpoint: { field: 'endpoint_id', sentence: 'is not an endpoint of this project' },
  owner: { field: 'owner_id', sentence: 'does not own an endpoint of this project' },
} as const;

/**
 * Responds with 200 and the first event if the idempotency key is already in use. Throws
 * `invalid_request` for invalid headers, a rejected event type, an unknown endpoint or owner, or
 * too much data.
 */
export async function createEvent(
  {
    events,
    catalogue,
    database,
    config,
    plugins,
    project,
    body,
    raw,
    headers: requestHeaders,
  }: ProjectCall<EventBody>,
  target: {
    messageType: MessageType;
    endpointId: string | null;
    ownerId: string | null;
    /** Test events do not count towards `limits.events_per_second`. */
    isTest?: true;
  },
): Promise<ApiAnswer> {
  const { custom_headers: custom = {}, event_type: eventType } = body;
  const { max_message_bytes: limit } = config.ingest;
  const { key: idempotencyKey, problems: ofKey } = keyOf(body, requestHeaders);
  const problems = [...headerProblems(custom), ...ofKey];
  const bytes = Buffer.byteLength(raw);
  if (bytes > limit)
    problems.push({
      field: 'data',
      sentence: `has more than ${limit} bytes, which is ingest.max_message_bytes`,
    });
  const projectId = project.id;
  if (project.config.unknown_event_types === 'reject' && eventType !== TEST_EVENT_TYPE) {
    if ((await catalogue.firstUnknown(projectId, [eventType])) !== undefined)
      problems.push({
        field: 'event_type',
        sentence:
          'is not an event type of this project, which rejects unknown types (config.unknown_event_types)',
      });
  }
  const deliverAt = laterTime(body.deliver_at, problems);
  const headers = travellingHeaders({}, custom);
  const dynamic = target.messageType === 'single' && target.endpointId === null;
  const { id, duplicate, isScheduled } = await traceCreation<Acceptance>(
    plugins,
    { projectId, eventType, dynamic, requestHeaders, headers },
    () => {
      assertValid(problems);
      return measureIngest(plugins, projectId, async () => {
        const event = { projectId, ...target, eventType, idempotencyKey, headers, data: raw };
        const unknown = deliverAt && (await events.unknownTarget(event));
        if (deliverAt && !unknown) {
          const max = config.limits.scheduled_events_per_project;
          const id = scheduledId(deliverAt);
          const scheduled = await insertScheduled(database.pool, { ...event, id, deliverAt }, max);
          if (scheduled) return { ...scheduled, isScheduled: true };
          const setting = 'limits.scheduled_events_per_project';
          throw new GatewayError('project_full', { things: 'scheduled events', max, setting });
        }
        const creation = unknown ? { unknown } : await events.create(event);
        if ('id' in creation) return creation;
        throw new GatewayError('invalid_request', { problems: [UNKNOWN[creation.unknown]] });
      });
    },
  );
  if (duplicate)
    return {
      status: 200,
      message: 'an event with this idempotency key already exists',
      data: { uid: id, duplicate },
    };
  if (isScheduled)
    return { message: 'event scheduled', data: { uid: id, duplicate, deliver_at: deliverAt } };
  return { message: 'event created', data: { uid: id, duplicate } };
}

interface Acceptance {
  readonly id: string;
  readonly duplicate: boolean;
  readonly isScheduled?: true;
}

type BatchEvent = EventBody & { readonly endpoint_id?: string; readonly owner_id?: string };

/**
 * Throws `invalid_request` if all events were rejected.
 * @param validate finds the problems of one event, whose type is unproven until then
 */
export async function createEvents(
  call: ProjectCall<{ readonly events: readonly BatchEvent[] }>,
  validate: Validator,
): Promise<ApiAnswer> {
  if (call.headers['idempotency-key'] !== undefined)
    throw invalid(
      'Idempotency-Key',
      'is not allowed for a batch: give each event an idempotency_key',
    );
  const texts = rawJsonElements(call.raw);
  const results = await Promise.all(
    call.body.events.map(async (event, k) => {
      const place = `events.${k}`;
      try {
        assertValid(validate(event));
        const { endpoint_id: endpointId = null, owner_id: ownerId = null } = event;
        if (endpointId !== null && ownerId !== null)
          throw invalid('owner_id', 'cannot be combined with endpoint_id: give one of them');
        assertValid(unstorableStrings(texts[k]!, { ...event, data: null }));
        const target = {
          messageType: ownerId === null ? 'single' : 'fanout',
          endpointId,
          ownerId,
        } as const;
        const { data } = await createEvent(
          { ...call, body: event, raw: rawJsonValue(texts[k]!, 'data') ?? '' },
          target,
        );
        return data as { uid: string; duplicate: boolean };
      } catch (error) {
        if (!isGatewayError(error, 'invalid_request')) throw error;
        return {
          errors: error.details.problems.map(({ field, sentence }) => ({
            field: field === 'body' ? place : `${place}.${field}`,
            sentence,
          })),
        };
      }
    }),
  );
  const rejected = results.flatMap((it) => ('errors' in it ? it.errors : []));
  const made = results.filter((it) => 'uid' in it);
  if (made.length === 0) assertValid(rejected);
  const duplicates = made.filter(({ duplicate }) => duplicate).length;
  const counts = {
    created: made.length - duplicates,
    duplicates,
    rejected: results.length - made.length,
  };
  return {
    message: `${counts.created} of ${results.length} events created`,
    data: { ...counts, content: results },
  };
}

function keyOf(
  body: EventBody,
  headers: IncomingHttpHeaders,
): { key: string | null; problems: InvalidField[] } {
  const { key: given, problems } = idempotencyKeyOf(headers);
  const key = body.idempotency_key ?? given ?? null;
  if (given === undefined || problems.length > 0) return { key, problems };
  const sentence = 'differs from idempotency_key in the body: give one of them';
  return { key, problems: given === key ? [] : [{ field: 'Idempotency-Key', sentence }] };
}

function headerProblems(custom: Readonly<Record<string, string>>): InvalidField[] {
  return Object.entries(custom).flatMap(([name, value]) => {
    const field = `custom_headers.${name}`;
    if (name.toLowerCase() === MESSAGE_TYPE_HEADER)
      return [
        {
          field,
          sentence: 'is implied by the route: /events, /events/fanout or /events/broadcast',
        },
      ];
    const owner = headerOwner(name);
    const sentence = owner
      ? `is set by ${owner}: omit it, or rename it`
      : customHeaderProblem(name, value);
    return sentence === undefined ? [] : [{ field, sentence }];
  });
}
