import {
  findIssue,
  ISSUE_SORTS,
  ISSUE_STATES,
  KINDS_MAX,
  listIssues,
  muteIssue,
  OTHER_KIND,
  type IssueRow,
} from '@gateway/store/counts';
import {
  described,
  found,
  Id,
  int,
  listRoute,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  pageQuery,
  projectItem,
  projectRoute,
  sortQuery,
  stepQuery,
  string,
  Timestamp,
  Type,
  type ProjectCall,
  type Route,
} from '../api/vocabulary.js';
import { Retry, retryFor10s } from './deliveries/retry.js';

const Issue = namedObject('Issue', {
  uid: Id,
  project_id: Id,
  endpoint_id: Id,
  endpoint_name: string(),
  kind: string(
    `The HTTP status, such as \`http_503\`, or the \`error_class\` of the attempts, such as \`timeout\`. Beyond ${KINDS_MAX} kinds per endpoint, the rest are grouped as \`${OTHER_KIND}\`.`,
  ),
  state: oneOf(
    ISSUE_STATES,
    'An issue is resolved when the endpoint succeeds again. If the same failure returns within an hour, the issue reopens; it is then resolved by a success at least a minute after the last failure.',
  ),
  first_seen_at: Timestamp,
  last_seen_at: Timestamp,
  failures: int('Failed attempts since `first_seen_at`.'),
  event_delivery_id: described(Id, 'The delivery of the latest failed attempt.'),
  http_status: nullable(int()),
  error: string('Error of the latest failed attempt, up to 500 characters.'),
  resolved_at: nullable(Timestamp),
  muted_at: nullable(Timestamp),
});

const ListQuery = object({
  ...pageQuery,
  ...sortQuery(
    Object.keys(ISSUE_SORTS) as (keyof typeof ISSUE_SORTS)[],
    'Failed requests, or the newest one.',
  ),
  ...optional({ state: Type.Array(oneOf(ISSUE_STATES)), endpointId: Id }),
});

const item = { thing: 'issue', data: Issue } as const;

export const issueRoutes: readonly Route[] = [
  listRoute(
    '/issues',
    'Lists issues: failures of endpoints, grouped by kind of error. Agents report them within seconds.',
    { query: ListQuery, title: 'issues', data: Issue },
    ({ database, project, query: { state: states, endpointId } }, page) =>
      listIssues(database.pool, { projectId: project.id, states, endpointId }, page),
  ),
  projectItem('GET /issues/:id', 'Shows an issue.', item, find),
  projectRoute(
    'POST /issues/:id/retry',
    'Sends the deliveries to the endpoint of an issue that failed or wait since it was first seen. One delivery probes an open circuit breaker. Runs for up to 10 s; if `next` is not null, continue with it as `after`.',
    { query: object(stepQuery), data: Retry, isLong: true, name: 'retry', isAudited: false },
    async (call) => {
      const { project, query } = call;
      const { endpoint_id: endpointId, first_seen_at: changedSince } = found(
        await find(call),
        'issue',
        call.id,
      );
      const selection = {
        status: ['failure', 'retry', 'scheduled'] as const,
        from: new Date(0),
        changedSince,
        endpointId,
        after: query.after,
        projectId: project.id,
      };
      return retryFor10s(call, selection, { dryRun: query.dry_run === true });
    },
  ),
  projectItem(
    'PUT /issues/:id/mute',
    'Mutes an issue. Its failures are still counted, but it no longer shows as open.',
    { ...item, message: 'issue muted' },
    (call) => setMuted(call, true),
  ),
  projectItem(
    'PUT /issues/:id/unmute',
    'Unmutes an issue. It shows as open again unless it is resolved.',
    { ...item, message: 'issue no longer muted' },
    (call) => setMuted(call, false),
  ),
];

function find({ database, project, id }: ProjectCall): Promise<IssueRow | undefined> {
  return findIssue(database.pool, id, project.id);
}

function setMuted({ database, project, id }: ProjectCall, isMuted: boolean) {
  return muteIssue(database.pool, { id, project_id: project.id }, isMuted);
}
