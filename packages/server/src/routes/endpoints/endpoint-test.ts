import { GatewayError } from '@gateway/core/errors';
import { eventDeliveryId } from '@gateway/core/events';
import { isObject } from '@gateway/core/json';
import { findEndpoint, findEventType } from '@gateway/store/config';
import {
  found,
  Id,
  namedObject,
  projectRoute,
  Type,
  Word,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';
import { createEvent, TEST_EVENT_TYPE } from '../events/create-event.js';

const NewTestEvent = namedObject('CreateTestEvent', {
  event_type: Type.Optional(Type.Unsafe<string>({ ...Word, default: TEST_EVENT_TYPE })),
  data: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'Data of the test event. Default: the `example` of the event type, or the first of `examples` in its schema.',
      },
    ),
  ),
});
const TestEvent = namedObject('TestEvent', { uid: Id, event_delivery_id: Id });

export const endpointTestRoutes: readonly Route[] = [
  projectRoute(
    'POST /endpoints/:id/test',
    'Sends a test event to an endpoint like any other event. The delivery appears under `event_delivery_id` a moment later.',
    {
      body: NewTestEvent,
      raw: 'data',
      carriesMessage: true,
      data: TestEvent,
      status: 201,
      createsIn: '/events',
      name: 'sendTest',
      portal: 'any',
    },
    async (call) => {
      const { database, project, id, body, ownerId, limits } = call;
      const { event_type: eventType = TEST_EVENT_TYPE } = body;
      const { status } = found(await findEndpoint(database.knex, project.id, id), 'endpoint', id);
      if (status === 'inactive') {
        throw new GatewayError('conflict', {
          sentence: 'the endpoint is inactive, so its deliveries are discarded',
          conflict: 'endpoint_inactive',
          fix: 'activate the endpoint first',
        });
      }
      await limits.endpointTests({ id: `test events:${project.id}:${ownerId ?? ''}` });
      const raw =
        body.data === undefined ? JSON.stringify(await exampleOf(call, eventType)) : call.raw;
      // An idempotency key in the request's headers would make the tenant's next event with that
      // key a duplicate.
      const event = { ...call, headers: {}, body: { event_type: eventType }, raw };
      const { data } = await createEvent(event, {
        messageType: 'single',
        endpointId: id,
        ownerId: null,
        isTest: true,
      });
      const { uid } = data as { uid: string };
      const held = status === 'paused' ? '; it is sent when the endpoint is activated' : '';
      return {
        message: `test event created${held}`,
        data: { uid, event_delivery_id: eventDeliveryId(uid, id, null) },
      };
    },
  ),
];

async function exampleOf({ database, project }: ProjectCall, eventType: string): Promise<object> {
  const known = await findEventType(database.knex, project.id, { name: eventType });
  if (isObject(known?.example)) return known.example;
  const examples = isObject(known?.json_schema) ? known.json_schema['examples'] : undefined;
  const first: unknown = Array.isArray(examples) ? examples[0] : undefined;
  return isObject(first) ? first : { message: 'This is a test of your endpoint.' };
}
