import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { recordFailures, resolveIssues } from '#store/counts/issues';
import { makeDelivery, makeEndpoint, makeEvents } from '../../store/made.js';
import { makeProject, startApi, type Api } from '../api.js';

const issues = suite('server/routes/issues');

let api: Api;
issues.before(async () => {
  api = await startApi();
});
issues.after(() => api.close());

const HOUR_MS = 3_600_000;
const firstAtMs = Date.now() - HOUR_MS;

async function scene() {
  const { path, id: projectId } = await makeProject(api);
  const { id: endpointId } = await makeEndpoint(api.db, projectId);
  const group = { projectId, endpointId, kind: 'http_500', issueId: newId(), failures: 4 };
  const sample = { deliveryId: newId(), httpStatus: 500, error: 'It answered 500.' };
  const failure = { ...group, ...sample, firstAtMs, lastAtMs: Date.now() };
  await recordFailures(api.db.pool, [failure]);
  return { path, projectId, endpointId, failure, id: failure.issueId };
}

issues('issues are sorted by failures, and a cursor of another order is refused', async () => {
  const { path, failure, id } = await scene();
  const more = { ...failure, kind: 'timeout', issueId: newId(), failures: 30 };
  await recordFailures(api.db.pool, [more]);
  const list = (query: string) => api.call('GET', `${path}/issues?${query}`);
  const { pagination, content } = (await list('sortBy=failures&sort=ASC&perPage=1')).body.data;
  assert.is(content[0].uid, id);
  const cursor = encodeURIComponent(pagination.next_page_cursor);
  const next = await list(`sortBy=failures&sort=ASC&perPage=1&next_page_cursor=${cursor}`);
  assert.is(next.body.data.content[0].uid, more.issueId);
  assert.is(next.body.data.pagination.has_next_page, false);
  assert.is((await list('sortBy=last_seen')).body.data.content.length, 2);
  for (const query of [
    `next_page_cursor=${cursor}`,
    `sortBy=failures&next_page_cursor=${id}`,
    'sortBy=error',
  ])
    assert.is((await list(query)).status, 422, query);
});

issues('issues are listed by state and endpoint, and shown', async () => {
  const { path, id, projectId, endpointId, failure } = await scene();
  const list = async (query = '') =>
    (await api.call('GET', `${path}/issues?${query}`)).body.data.content.length;
  const shown = await api.call('GET', `${path}/issues/${id}`);
  const { uid, kind, state, failures, endpoint_name: name, event_delivery_id } = shown.body.data;
  assert.equal(
    [uid, kind, state, failures, name, event_delivery_id],
    [id, 'http_500', 'open', 4, 'shop', failure.deliveryId],
  );
  const counts = async () => [await list(), await list('state=open'), await list('state=resolved')];
  assert.equal(await counts(), [1, 1, 0]);
  assert.is(await list(`endpointId=${newId()}`), 0);
  await resolveIssues(api.db.pool, [{ projectId, endpointId, atMs: Date.now() + 1 }]);
  assert.equal(await counts(), [1, 0, 1]);
  const other = await makeProject(api);
  assert.is((await api.call('GET', `${other.path}/issues/${id}`)).status, 404);
  assert.is((await api.call('PUT', `${other.path}/issues/${id}/mute`)).status, 404);
});

issues('an issue is muted and no longer muted', async () => {
  const { path, id } = await scene();
  for (const [action, state] of [
    ['mute', 'muted'],
    ['unmute', 'open'],
  ])
    assert.is(
      (await api.call('PUT', `${path}/issues/${id}/${action}`)).body.data.state,
      state,
      action,
    );
});

issues('what failed or waits at the endpoint since then is sent, and nothing else', async () => {
  const { path, id, projectId, endpointId } = await scene();
  const { id: otherId } = await makeEndpoint(api.db, projectId);
  const deliveries = [
    { status: 'failure', attempts: 4, days: 2 },
    { status: 'retry', attempts: 2 },
    { status: 'success', attempts: 1 },
    { status: 'failure', attempts: 9, changed: firstAtMs - 1 },
    { status: 'failure', attempts: 8, endpointId: otherId },
  ];
  const events = await makeEvents(
    api.db,
    projectId,
    deliveries.map(({ days = 0 }, n) => ({ atMs: Date.now() - n - days * 24 * HOUR_MS })),
  );
  for (const [n, { days: _, changed, ...fields }] of deliveries.entries()) {
    const made = { projectId, endpointId, eventId: events[n]!, ...fields };
    const delivery = await makeDelivery(api.db, made);
    await api.db.rows(
      `update event_deliveries set updated_at = coalesce(to_timestamp($2), updated_at), next_attempt_at = case when status = 'retry' then now() + interval '1 hour' end where id = $1`,
      [delivery, changed === undefined ? null : changed / 1000],
    );
  }
  const dry = await api.call('POST', `${path}/issues/${id}/retry?dry_run=true`);
  assert.equal([dry.status, dry.body.data.due, dry.body.data.next], [200, 2, null]);
  assert.is((await api.call('POST', `${path}/issues/${id}/retry`)).body.data.due, 2);
  const due = await api.db.rows(
    `select status::text, attempts from event_deliveries where project_id = $1 and next_attempt_at <= now() order by attempts`,
    [projectId],
  );
  assert.equal(due, [
    { status: 'retry', attempts: 2 },
    { status: 'scheduled', attempts: 4 },
  ]);
  assert.is((await api.call('POST', `${path}/issues/${newId()}/retry`)).status, 404);
});

issues.run();
