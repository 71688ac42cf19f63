import { Type, type Static } from '@sinclair/typebox';
import { findSubscription } from '@gateway/store/config';
import { findEvent } from '@gateway/store/events';
import { found, projectRoute, type ProjectCall, type Route } from '../../api/route.js';
import { RawJson } from '../../http/response.js';
import { assertValid, Id, named, nullable, object, oneOf } from '../../http/schema.js';
import { FunctionText, refusal, refusalView } from '../transform-function.js';

const TestFunction = named(
  'SubscriptionFunctionTest',
  object({
    function: Type.Optional(FunctionText),
    subscription_id: Type.Optional(
      Type.Unsafe<string>({ ...Id, description: 'Runs the stored function of this subscription.' }),
    ),
    payload: Type.Optional(
      Type.Unknown({
        description: 'The data of an event: any JSON, as it stands here byte for byte.',
      }),
    ),
    event_id: Type.Optional(
      Type.Unsafe<string>({
        ...Id,
        description: 'Takes the data of this event in place of payload.',
      }),
    ),
    type: Type.Optional(oneOf(['body'])),
  }),
);
const FunctionTested = named(
  'SubscriptionFunctionTestResult',
  object({
    outcome: oneOf(['accepted', 'dropped', 'failed'], {
      description: 'Of null nothing is sent: `dropped`.',
    }),
    refusal: refusal('Why the attempt would fail.'),
    duration_ms: nullable(Type.Number({ description: 'Null when the function was not called.' })),
    log: Type.Array(Type.String(), { description: 'What the function wrote to its console.' }),
    payload: Type.Unknown({ description: 'What would be sent; null unless it is accepted.' }),
  }),
);

export const testFunctionRoutes: readonly Route[] = [
  projectRoute(
    'POST /subscriptions/test_function',
    'Runs the function of a subscription on the data of an event as an agent would, and shows what would be sent. Changes nothing.',
    {
      body: TestFunction,
      raw: 'payload',
      carriesMessage: true,
      data: FunctionTested,
      name: 'testFunction',
      isAudited: false,
    },
    async (call) => {
      const { functions, functionTests, project } = call;
      const [text, data] = [await functionOf(call), await dataOf(call)];
      await functionTests({ id: `functions:${project.id}` });
      const {
        outcome,
        refusal: refused,
        data: made,
        logs,
        durationMs,
      } = await functions.transform(text, { data, projectId: project.id });
      const payload = made === null ? null : new RawJson(made);
      return {
        message: 'function tested',
        data: {
          outcome,
          refusal: refusalView(refused),
          duration_ms: durationMs,
          log: logs,
          payload,
        },
      };
    },
  ),
];

type TestCall = ProjectCall<Static<typeof TestFunction>>;

async function functionOf({
  body: { function: text, subscription_id: id },
  database,
  project,
}: TestCall): Promise<string> {
  if (text !== undefined && id !== undefined)
    assertValid([{ field: 'subscription_id', sentence: 'does not belong beside function' }]);
  if (id !== undefined) {
    const stored = found(
      await findSubscription(database.knex, project.id, id),
      'subscription',
      id,
    ).function;
    if (stored === null)
      assertValid([
        { field: 'subscription_id', sentence: 'is that of a subscription without a function' },
      ]);
    return stored!;
  }
  if (!text?.trim())
    assertValid([{ field: 'function', sentence: 'is missing; give it, or subscription_id' }]);
  return text!;
}

async function dataOf({
  body: { event_id: id },
  raw: payload,
  database,
  project,
}: TestCall): Promise<string> {
  if (id === undefined) {
    if (payload === '')
      assertValid([{ field: 'payload', sentence: 'is missing; give it, or event_id' }]);
    return payload;
  }
  if (payload !== '')
    assertValid([{ field: 'payload', sentence: 'does not belong beside event_id' }]);
  const event = found(await findEvent(database.pool, project.id, id), 'event', id);
  return event.data!;
}
