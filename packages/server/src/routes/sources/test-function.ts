import { partsOfStored, timeOfId } from '@gateway/core/events';
import { sentenceOf } from '@gateway/core/routing';
import { functionText } from '@gateway/ingest/message/ingest-source';
import type { Preview, SampleMessage } from '@gateway/ingest/requests/preview';
import { findSource, readRouting } from '@gateway/store/config';
import type { NewEvent } from '@gateway/store/events';
import {
  boolean,
  described,
  found,
  Id,
  int,
  invalid,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  projectRoute,
  RawJson,
  string,
  Type,
  type ProjectCall,
  type Route,
  type Static,
} from '../../api/vocabulary.js';
import { explainRoute, subscriptionRecord } from '../../explain/explain-route.js';
import { requireQuarantined } from '../quarantine.js';
import { requireEvent, requireMessage } from '../events/events.js';
import { Mismatch } from '../explain.js';
import { FunctionText, refusal, refusalView } from '../transform-function.js';

/** A function can return 10,000 results, and an event can go to as many endpoints. */
const RESULTS_MAX = 20;
/** Routing a result runs the filters of all subscriptions. */
const ROUTED_MAX = 5;
const ROUTES_MAX = 100;

const Text = nullable(string());
const TestFunction = namedObject(
  'FunctionTest',
  optional({
    function: FunctionText,
    source_id: described(
      Id,
      'Runs the stored function of this source, or leaves the message unchanged if it has none.',
    ),
    payload: Type.Unknown({
      description: 'The message: any JSON value, passed on byte for byte.',
    }),
    raw: string('The bytes of the message, which need not be JSON; an alternative to `payload`.'),
    raw_encoding: oneOf(['utf8', 'base64'], { default: 'utf8' }),
    quarantine_id: described(
      Id,
      'Tests this quarantined message. `raw` overrides its content; without `function`, the function of its source runs.',
    ),
    event_id: described(Id, 'Tests the stored message of this event.'),
    key: Type.String({
      maxLength: 16_384,
      description: 'Key of the message, for functions that read `message.key`.',
    }),
    headers: Type.Record(string(), Type.String({ maxLength: 8192 }), {
      maxProperties: 100,
      description: 'Headers of the message, for filters.',
    }),
    type: oneOf(['body']),
  }),
);
const QuarantineReason = refusal(
  'Why the message would be quarantined; null if it would be accepted.',
);
const FunctionTested = namedObject('FunctionTestResult', {
  outcome: oneOf(['accepted', 'dropped', 'quarantined']),
  refusal: QuarantineReason,
  duration_ms: nullable(Type.Number({ description: 'Null when the function was not called.' })),
  log: Type.Array(string(), { description: 'Output of the function on its console.' }),
  result_count: int(),
  results: Type.Array(
    object({
      payload: Type.Unknown({ description: 'Return value of the function as JSON.' }),
      refusal: QuarantineReason,
      notes: Type.Array(string()),
      route: nullable(
        object({
          rule: oneOf(['broadcast', 'endpoint_id', 'owner_id', 'subscriptions']),
          outcome: string(),
          sentence: string(),
          endpoint_count: int(),
          endpoints: Type.Array(object({ uid: Id, name: string(), subscription_id: Text })),
          subscriptions: Type.Array(
            object({
              uid: Id,
              name: string(),
              matches: boolean(),
              mismatch: nullable(Mismatch),
            }),
          ),
        }),
      ),
    }),
    {
      description: `One result per object that the function returned, up to ${RESULTS_MAX}. The first ${ROUTED_MAX} include their routes, with up to ${ROUTES_MAX} endpoints and subscriptions.`,
    },
  ),
});

export const testFunctionRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources/test_function',
    'Runs a transform function on a sample as an agent would, and returns its output and where the events would go. Nothing is stored or sent.',
    {
      body: TestFunction,
      raw: 'payload',
      carriesMessage: true,
      data: FunctionTested,
      name: 'testFunction',
      isAudited: false,
    },
    async (call) => {
      const { functions, limits, project, database } = call;
      const { text, ...sample } = await sampleOf(call);
      await limits.functionTests({ id: `functions:${project.id}` });
      const preview = await functions.preview(text, { ...sample, projectId: project.id });
      const routing = await readRouting(database.pool, project.id);
      const routeOf = (event: NewEvent | null) =>
        event && routing ? routeView(explainRoute(routing, event, ROUTES_MAX)) : null;
      return { message: 'function tested', data: view(preview, routeOf) };
    },
  ),
];

async function sampleOf(call: ProjectCall<Static<typeof TestFunction>>) {
  const { body: given, raw: payload, database, project } = call;
  const {
    function: text,
    source_id,
    quarantine_id,
    event_id,
    headers = {},
    key,
    raw,
    raw_encoding: encoding = 'utf8',
  } = given;
  const stored =
    quarantine_id !== undefined ? 'quarantine_id' : event_id !== undefined ? 'event_id' : undefined;
  const hasPayload = payload !== '';
  if (!hasPayload && raw === undefined && stored === undefined)
    throw invalid('payload', 'is missing; give it, raw, quarantine_id, or event_id');
  if (hasPayload && (raw !== undefined || stored !== undefined))
    throw invalid('payload', `cannot be combined with ${stored ?? 'raw'}`);
  if (quarantine_id !== undefined && event_id !== undefined)
    throw invalid('event_id', 'cannot be combined with quarantine_id');
  if (text !== undefined && source_id !== undefined)
    throw invalid('source_id', 'cannot be combined with function');
  const message = await storedMessage(call);
  const sourceId = source_id ?? message?.source_id;
  if (text === undefined && sourceId === undefined)
    throw invalid('function', 'is missing; give function or source_id');
  const source =
    sourceId === undefined ? undefined : await findSource(database.knex, project.id, sourceId);
  const bodyFunction = text ?? found(source, 'source', sourceId!).body_function;
  const own = message === undefined ? {} : (JSON.parse(message.headers) as Record<string, string>);
  const body =
    raw === undefined ? (message?.bytes ?? Buffer.from(payload)) : Buffer.from(raw, encoding);
  const storedCodec = raw === undefined && message?.isEdited === false && source?.pub_sub.codec;
  return {
    text: functionText(bodyFunction),
    body,
    headers: { ...own, ...headers },
    message: { ...message?.whole, ...(key !== undefined && { key: Buffer.from(key) }) },
    codec: storedCodec ? { sourceId: sourceId!, codec: storedCodec } : undefined,
  };
}

async function storedMessage(call: ProjectCall<Static<typeof TestFunction>>) {
  const { quarantine_id, event_id, raw } = call.body;
  if (quarantine_id !== undefined) {
    const message = await requireQuarantined(call, quarantine_id);
    return {
      ...message,
      bytes: message.edited_raw ?? message.raw,
      isEdited: message.edited_raw !== null,
      whole: wholeOf(message),
    };
  }
  if (event_id === undefined) return undefined;
  const message = await requireMessage(call, event_id);
  if (message.raw === null && raw === undefined)
    throw invalid(
      'event_id',
      `names an event whose message of ${message.raw_bytes} bytes was too large to keep; give raw`,
    );
  const whole = wholeOf(await requireEvent(call, event_id));
  return { ...message, bytes: message.raw, isEdited: false, whole };
}

function wholeOf({
  id,
  coordinates,
  message,
}: {
  readonly id: string;
  readonly coordinates: string;
  readonly message: string | null;
}): NonNullable<SampleMessage['message']> {
  return { coordinates, timestamp: timeOfId(id), ...partsOfStored(message) };
}

function view(
  { kind, refusal: refused, results, logs, durationMs }: Preview,
  routeOf: (event: NewEvent | null) => unknown,
): unknown {
  return {
    outcome: kind === 'refused' ? 'quarantined' : kind,
    refusal: refusalView(refused),
    duration_ms: durationMs,
    log: logs,
    result_count: results.length,
    results: results.slice(0, RESULTS_MAX).map(({ json, event, refusal: ofResult }, at) => ({
      payload: new RawJson(json),
      refusal: refusalView(ofResult),
      notes: JSON.parse(event?.notes ?? '[]') as string[],
      route: at < ROUTED_MAX ? routeOf(event) : null,
    })),
  };
}

function routeView({
  rule,
  outcome,
  targets,
  subscriptions,
}: ReturnType<typeof explainRoute>): unknown {
  return {
    rule,
    outcome,
    sentence: sentenceOf(outcome),
    endpoint_count: targets.length,
    endpoints: targets.slice(0, ROUTES_MAX).map(({ endpoint, subscription }) => ({
      uid: endpoint.id,
      name: endpoint.name,
      subscription_id: subscription?.id ?? null,
    })),
    subscriptions: subscriptions.map((it) => subscriptionRecord(it)),
  };
}
