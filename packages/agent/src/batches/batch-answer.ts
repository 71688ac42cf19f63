import type { Attempted } from '../model/destination.js';

/** Each attempt of a batch stores a response body, so that a longer one would be stored as often. */
const BODY_CHARS = 1_000;
const MESSAGE_CHARS = 500;

interface Result {
  readonly id?: unknown;
  readonly status?: unknown;
  readonly message?: unknown;
  readonly retry_after?: unknown;
}

/** Returns the outcome of each event of a batch, in the order of their ids. */
export function outcomesOf(
  answer: Attempted,
  batchId: string,
  ids: readonly string[],
): readonly Attempted[] {
  const remark = `Sent in the batch ${batchId} of ${ids.length === 1 ? '1 event' : `${ids.length} events`}.`;
  const withRemark = (it: Attempted): Attempted => ({
    ...it,
    detail: it.detail ? `${it.detail} ${remark}` : remark,
  });
  const common = withRemark({ ...answer, body: answer.body.slice(0, BODY_CHARS) });
  const results = answer.outcome === 'delivered' ? resultsIn(answer.body) : undefined;
  if (results === undefined) return ids.map(() => common);
  if (results === 'unreadable') {
    const detail =
      'The answer to the batch is not valid JSON, or is longer than max_response_size: it does not tell which events were taken.';
    const unread = withRemark({ ...answer, ...FAILED, detail });
    return ids.map(() => ({ ...unread, body: common.body }));
  }
  return ids.map((id) => {
    const result = results.get(id);
    if (!result) return { ...common, body: '' };
    const body = JSON.stringify(result).slice(0, BODY_CHARS);
    return withRemark({ ...answer, ...outcomeOf(result), body });
  });
}

/** Undefined if the answer has none, so that its status counts for all events. */
function resultsIn(body: string): ReadonlyMap<unknown, Result> | 'unreadable' | undefined {
  // Answers such as `OK` are not about single events.
  if (!body.trimStart().startsWith('{')) return undefined;
  let parsed: { readonly results?: unknown };
  try {
    parsed = JSON.parse(body) as typeof parsed;
  } catch {
    return 'unreadable';
  }
  if (!Array.isArray(parsed.results)) return undefined;
  const results = parsed.results as readonly (Result | null)[];
  return new Map(results.flatMap((result) => (result ? [[result.id, result] as const] : [])));
}

/** The receiver works: it has told which events it did not take. */
const FAILED = { outcome: 'retry', failure: 'status', isUp: true } as const;

function outcomeOf({ status, message, retry_after: after }: Result): Partial<Attempted> {
  const said =
    typeof message === 'string'
      ? ` It says: ${JSON.stringify(message.slice(0, MESSAGE_CHARS))}.`
      : '';
  switch (status) {
    case 'ok':
      return {};
    case 'reject':
      return { ...FAILED, outcome: 'failed', detail: `The endpoint rejected the event.${said}` };
    case 'retry': {
      const detail = `The endpoint asks for the event again.${said}`;
      const isTime = typeof after === 'number' && after >= 0;
      return { ...FAILED, detail, afterSeconds: isTime ? after : null };
    }
    default:
      return {
        ...FAILED,
        detail: 'The result of the event has a status other than ok, retry and reject.',
      };
  }
}
