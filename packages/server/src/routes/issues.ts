import { Type } from '@sinclair/typebox';
import {
  findIssue,
  ISSUE_STATES,
  KINDS_MAX,
  listIssues,
  muteIssue,
  OTHER_KIND,
  type IssueRow,
} from '@gateway/store/counts/issues';
import {
  found,
  listRoute,
  projectItem,
  projectRoute,
  withUid,
  type ProjectCall,
  type Route,
} from '../api/route.js';
import { stepQuery } from '../http/batch.js';
import { pageQuery } from '../http/list-query.js';
import {
  described,
  Id,
  named,
  nullable,
  object,
  oneOf,
  optional,
  Timestamp,
} from '../http/schema.js';
import { Retry, retryFor10s } from './deliveries/retry.js';

const Issue = named(
  'Issue',
  object({
    uid: Id,
    project_id: Id,
    endpoint_id: Id,
    endpoint_name: Type.String(),
    kind: Type.String({
      description: `\`http_503\` for an HTTP status, otherwise the \`error_class\` of the attempts, such as \`timeout\`. Of an endpoint, kinds beyond ${KINDS_MAX} are one issue, \`${OTHER_KIND}\`.`,
    }),
    state: oneOf(ISSUE_STATES, {
      description:
        'Resolved when the endpoint succeeds again. If it fails so again within an hour, the issue is the same, and a success resolves it a minute after its last failure.',
    }),
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    failures: Type.Integer({ description: 'Failed attempts since first_seen_at.' }),
    event_delivery_id: described(Id, 'The delivery of the newest failed attempt.'),
    http_status: nullable(Type.Integer()),
    error: Type.String({ description: 'Of the newest failed attempt, up to 500 characters.' }),
    resolved_at: nullable(Timestamp),
    muted_at: nullable(Timestamp),
  }),
);

const ListQuery = object({
  ...pageQuery,
  ...optional({ state: Type.Array(oneOf(ISSUE_STATES)), endpointId: Id }),
});

const item = { thing: 'issue', data: Issue } as const;

export const issueRoutes: readonly Route[] = [
  listRoute(
    '/issues',
    'Lists issues: the failures of endpoints, grouped by the kind of error. Agents report them within seconds.',
    { query: ListQuery, title: 'issues', data: Issue },
    ({ database, project, query: { state: states, endpointId } }, page) =>
      listIssues(database.pool, { projectId: project.id, states, endpointId }, page),
    withUid,
  ),
  projectItem('GET /issues/:id', 'Shows an issue.', item, find, withUid),
  projectRoute(
    'POST /issues/:id/retry',
    'Sends what failed or waits at the endpoint of the issue since it was first seen. One delivery probes an open circuit breaker. Works for up to 10 s; `next` says where to go on.',
    { query: object(stepQuery), data: Retry, name: 'retry', isAudited: false },
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
        projects: [project],
      };
      return retryFor10s(call, selection, { dryRun: query.dry_run === true });
    },
  ),
  projectItem(
    'PUT /issues/:id/mute',
    'Mutes an issue: it is counted, and is not shown as open.',
    { ...item, message: 'issue muted' },
    (call) => setMuted(call, true),
    withUid,
  ),
  projectItem(
    'PUT /issues/:id/unmute',
    'Shows a muted issue as open again while it is not resolved.',
    { ...item, message: 'issue no longer muted' },
    (call) => setMuted(call, false),
    withUid,
  ),
];

function find({ database, project, id }: ProjectCall): Promise<IssueRow | undefined> {
  return findIssue(database.pool, id, project.id);
}

function setMuted({ database, project, id }: ProjectCall, isMuted: boolean) {
  return muteIssue(database.pool, { id, project_id: project.id }, isMuted);
}
