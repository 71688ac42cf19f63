import { STATUS_CODES } from 'node:http';
import type { Dialect, SpokenRoute } from '@gateway/server/dialect';

type GivenAnswer = Parameters<Dialect['answer']>[0];
type DataSchema = SpokenRoute['data'];
type JsonRow = Readonly<Record<string, unknown>>;

const EVENT_STATUSES: Readonly<Record<string, string>> = {
  pending: 'Pending',
  processed: 'Success',
  failed: 'Failure',
};

const ROWS: Readonly<Record<string, (row: JsonRow) => unknown>> = {
  BatchReplay: ({ count, ...row }) => ({ ...row, count, num: count }),
  FilterMatch: ({ matches }) => matches,
  FunctionTestResult: (row) => ({
    ...row,
    payload: (row['results'] as JsonRow[])[0]?.['payload'] ?? null,
  }),
  Endpoint: ({ authentication, circuit_breaker: breaker, http_timeout: seconds, ...row }) => ({
    ...row,
    http_timeout: Math.ceil(Number(seconds)),
    authentication: basicAuth(authentication as JsonRow | null),
    circuit_breaker: breaker,
    cb_state: (breaker as { state: string } | null)?.state.replace('_', '-') ?? null,
    content_type: 'application/json',
    advanced_signatures: true,
  }),
  Subscription: ({ is_disabled: isDisabled, ...row }) => ({
    ...row,
    type: 'api',
    status: isDisabled ? 'inactive' : 'active',
  }),
  // Convoy omits the fields of other source types, which are null in the gateway's responses.
  Source: (row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)),
  CreatedEvent: ({ uid, duplicate }) => ({ uid, is_duplicate_event: duplicate }),
  Event: ({ status, headers, ...row }) => ({
    ...row,
    status: EVENT_STATUSES[String(status)],
    headers: Object.fromEntries(
      Object.entries(headersOf(headers)).map(([name, value]) => [name, [value]]),
    ),
  }),
  EventDelivery: ({
    status,
    attempts,
    next_attempt_at: next,
    endpoint_metadata: endpoint,
    event_metadata: event,
    ...row
  }) => ({
    ...row,
    status: capital(String(status)),
    event_metadata: event,
    event_type: (event as JsonRow)['event_type'],
    endpoint_metadata: {
      ...(endpoint as JsonRow),
      ...((endpoint as JsonRow)['status'] === 'deleted' ? { status: 'inactive' } : {}),
    },
    metadata: { num_trials: attempts, next_send_time: next },
    description: row['reason'] ?? '',
  }),
  DeliveryAttempt: ({
    http_status: code,
    response_headers: headers,
    response_body: body,
    error,
    event_delivery_id: delivery,
    ...row
  }) => ({
    ...row,
    msg_id: delivery,
    method: 'POST',
    http_status: statusLine(code as number | null),
    response_http_header: headers === null ? {} : headersOf(headers),
    response_data: body ?? '',
    error: error ?? '',
    created_at: row['requested_at'],
  }),
};

const BARE = ['DeliveryAttempt', 'EventType', 'ImportedEventTypes', 'Project'];

/** @param schema the schema of the response's data */
export function answerOf(schema: DataSchema, answer: GivenAnswer): GivenAnswer {
  const content = contentOf(schema);
  const title = (content ?? schema)?.title;
  const rewrite = (title !== undefined && ROWS[title]) || ((row: JsonRow) => row);
  const { data } = answer;
  if (!content) return { ...answer, data: data === null ? null : rewrite(data as JsonRow) };
  const rows = (data as { content: JsonRow[] }).content.map(rewrite);
  return {
    ...answer,
    data: [title, schema?.title].some((it) => it !== undefined && BARE.includes(it))
      ? rows
      : { ...(data as JsonRow), content: rows },
  };
}

function contentOf(schema: DataSchema): DataSchema {
  const { content } = (schema?.['properties'] ?? {}) as { content?: { items?: DataSchema } };
  return content?.items;
}

function statusLine(code: number | null): string {
  return code === null ? '' : `${code} ${STATUS_CODES[code] ?? ''}`.trim();
}

function basicAuth(authentication: JsonRow | null): JsonRow | null {
  if (authentication?.['type'] !== 'basic') return authentication;
  return { type: 'basic_auth', basic_auth: authentication['basic'] };
}

function headersOf(headers: unknown): Readonly<Record<string, string>> {
  // Headers of the database are an instance with their JSON in `text`.
  const isPlain = Object.getPrototypeOf(headers) === Object.prototype;
  return (isPlain ? headers : JSON.parse((headers as { text: string }).text)) as Readonly<
    Record<string, string>
  >;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
