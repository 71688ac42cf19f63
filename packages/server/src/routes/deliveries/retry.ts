import { retryDeliveries, type RetrySelection, type RetryTally } from '@gateway/store/deliveries';
import { isOwned } from '@gateway/store/config';
import { clock } from '../../explain/wording.js';
import {
  batchQuery,
  boolean,
  Id,
  int,
  namedObject,
  Next,
  nullable,
  object,
  oneOf,
  optional,
  projectRoute,
  string,
  timeRange,
  Timestamp,
  Type,
  Word,
  WORK_MS,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';
import { behindBreakersOf, probeNow, type BehindBreaker } from '../endpoints/breakers.js';

const RetryQuery = object({
  ...batchQuery,
  ...optional({
    status: oneOf(['failure', 'discarded', 'success', 'retry', 'scheduled', 'processing'], {
      default: 'failure',
    }),
    endpointId: Id,
    eventId: Id,
    event_type: Word,
  }),
});
export const BehindBreakers = Type.Array(
  object({
    endpoint_id: Id,
    endpoint_name: nullable(string()),
    count: int(),
    until: nullable(Timestamp, 'Earliest time of the next request to the endpoint.'),
  }),
  {
    description:
      'Endpoints with an open circuit breaker, with the number of due deliveries that wait for it.',
  },
);
export const Retry = namedObject('BatchRetry', {
  due: int('Deliveries that are sent now.'),
  held: int('Deliveries that are sent once their paused endpoint is activated.'),
  left: int(
    'Unchanged deliveries: their endpoint is inactive or deleted, or they are already due or held.',
  ),
  behind_breakers: BehindBreakers,
  progress: Type.Number({ description: 'Share of the time range that is done, from 0 to 1.' }),
  dry_run: boolean(),
  next: Next,
});

export const retryRoutes: readonly Route[] = [
  projectRoute(
    'POST /eventdeliveries/batchretry',
    'Sends the selected deliveries now: by default failed ones. With `endpointId`, one delivery probes an open circuit breaker. Runs for up to 10 s; if `next` is not null, continue with it as `after`.',
    { query: RetryQuery, data: Retry, name: 'batchRetry', portal: 'any', isLong: true },
    async (call) => {
      const { project, query, ownerId } = call;
      const {
        status = 'failure',
        endpointId,
        eventId,
        event_type: eventType,
        after,
        dry_run: dryRun = false,
      } = query;
      const { from = new Date(0), to } = timeRange(query);
      const selection = {
        status,
        from,
        to,
        after,
        endpointId,
        ownerId,
        eventId,
        eventType,
        projectId: project.id,
      };
      return retryFor10s(call, selection, { dryRun });
    },
  ),
];

/** The end of a sentence: how many queued deliveries wait for open breakers. */
export function waitWords(behind: readonly BehindBreaker[], now = new Date()): string {
  const waiting = behind.reduce((sum, { count }) => sum + count, 0);
  const [first] = behind;
  if (!first) return '';
  const { endpoint_name: name, endpoint_id: id, until } = first;
  const next =
    until && until > now ? `open until ${clock(until, now)}` : 'which one of them tries now';
  return `; ${waiting} of them wait for ${behind.length > 1 ? `${behind.length} open circuit breakers` : `the circuit breaker of ${name ?? id}, ${next}`}`;
}

/** Works for up to 10 s. With an endpoint, one of the deliveries probes an open circuit breaker. */
export async function retryFor10s(
  call: ProjectCall,
  selection: RetrySelection,
  { dryRun }: { dryRun: boolean },
) {
  const { endpointId, ownerId } = selection;
  const isProbed =
    endpointId !== undefined &&
    !dryRun &&
    (ownerId === undefined ||
      (await isOwned(call.planes, call.project.id, ownerId, 'endpoint', endpointId)));
  const dueInMs = isProbed ? await probeNow(call, endpointId) : 0;
  const data = {
    due: 0,
    held: 0,
    left: 0,
    behind_breakers: [] as BehindBreaker[],
    progress: 0,
    dry_run: dryRun,
    next: null as string | null,
  };
  const due: RetryTally[] = [];
  const until = performance.now() + WORK_MS;
  const steps = retryDeliveries(call.planes, selection, { dryRun, dueInMs });
  for await (const { tallies, done, next } of steps) {
    for (const tally of tallies) {
      const { outcome, count } = tally;
      data[outcome === 'due' || outcome === 'held' ? outcome : 'left'] += count;
      if (outcome === 'due') due.push(tally);
    }
    data.progress = done;
    if (next === undefined) continue;
    data.next = next;
    if (next !== null && performance.now() > until) break;
  }
  data.behind_breakers = await behindBreakersOf(call, due);
  const message = `${data.due + data.held} event deliveries ${dryRun ? 'would be' : 'are'} queued${waitWords(data.behind_breakers)}`;
  return { message, data };
}
