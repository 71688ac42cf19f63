import { messageArgument } from '@gateway/core/events';
import { findSubscription } from '@gateway/store/config';
import { messageOfRow } from '@gateway/store/events';
import { requireEvent } from '../events/events.js';
import {
  assertValid,
  described,
  found,
  Id,
  namedObject,
  nullable,
  oneOf,
  projectRoute,
  RawJson,
  string,
  Type,
  type ProjectCall,
  type Route,
  type Static,
} from '../../api/vocabulary.js';
import { FunctionText, refusal, refusalView } from '../transform-function.js';

const TestFunction = namedObject('SubscriptionFunctionTest', {
  function: Type.Optional(FunctionText),
  subscription_id: Type.Optional(described(Id, 'Runs the stored function of this subscription.')),
  payload: Type.Optional(
    Type.Unknown({
      description: 'The data of an event: any JSON value, passed on byte for byte.',
    }),
  ),
  event_id: Type.Optional(
    described(Id, 'Tests the data and message of this event; an alternative to `payload`.'),
  ),
  type: Type.Optional(oneOf(['body'])),
});
const FunctionTested = namedObject('SubscriptionFunctionTestResult', {
  outcome: oneOf(
    ['accepted', 'dropped', 'failed'],
    '`dropped`: the function returned null, so nothing is sent.',
  ),
  refusal: refusal('Why the attempt would fail.'),
  duration_ms: nullable(Type.Number({ description: 'Null when the function was not called.' })),
  log: Type.Array(string(), { description: 'Output of the function on its console.' }),
  payload: Type.Unknown({ description: 'The data that would be sent; null unless accepted.' }),
});

export const testFunctionRoutes: readonly Route[] = [
  projectRoute(
    'POST /subscriptions/test_function',
    'Runs the function of a subscription on the data of an event as an agent would, and returns what would be sent. Nothing is stored or sent.',
    {
      body: TestFunction,
      raw: 'payload',
      carriesMessage: true,
      data: FunctionTested,
      name: 'testFunction',
      isAudited: false,
    },
    async (call) => {
      const { functions, limits, project } = call;
      const [text, sample] = [await functionOf(call), await sampleOf(call)];
      await limits.functionTests({ id: `functions:${project.id}` });
      const {
        outcome,
        refusal: refused,
        data: made,
        logs,
        durationMs,
      } = await functions.transform(text, { ...sample, projectId: project.id });
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
    assertValid([{ field: 'subscription_id', sentence: 'cannot be combined with function' }]);
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

async function sampleOf(
  call: TestCall,
): Promise<{ readonly data: string; readonly message?: string }> {
  const {
    body: { event_id: id },
    raw: payload,
  } = call;
  if (id === undefined) {
    if (payload === '')
      assertValid([{ field: 'payload', sentence: 'is missing; give it, or event_id' }]);
    return { data: payload };
  }
  if (payload !== '')
    assertValid([{ field: 'payload', sentence: 'cannot be combined with event_id' }]);
  const event = await requireEvent(call, id);
  const headers = JSON.parse(event.headers) as Record<string, string>;
  return {
    data: event.data!,
    message: messageArgument(messageOfRow(event) ?? undefined, headers),
  };
}
