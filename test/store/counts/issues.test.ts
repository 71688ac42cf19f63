import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { deleteEndpoint } from '#store/config/endpoints';
import {
  deleteOldIssues,
  findIssue,
  KINDS_MAX,
  listIssues,
  muteIssue,
  readFailingEndpoints,
  recordFailures,
  resolveIssues,
  type FailureGroup,
  type IssueState,
} from '#store/counts/issues';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const issues = suite('store/counts/issues');

const db = await migratedDatabase();
issues.after(() => db.close());

const MINUTE_MS = 60_000;
const nowMs = Date.now();
const ago = (minutes: number) => nowMs - minutes * MINUTE_MS;

async function scene() {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const failure = (fields: Partial<FailureGroup> = {}): FailureGroup => {
    const { lastAtMs = nowMs, firstAtMs = lastAtMs } = fields;
    const sample = { deliveryId: newId(), httpStatus: 500, error: 'The endpoint answered 500.' };
    const group = { projectId, endpointId, kind: 'http_500', issueId: newId(), failures: 1 };
    return { ...group, ...sample, ...fields, firstAtMs, lastAtMs };
  };
  const list = async (states?: IssueState[]) =>
    (
      await listIssues(
        db.pool,
        { projectId, states },
        { perPage: 100, direction: 'next', sort: 'ASC' },
      )
    ).content;
  return {
    projectId,
    endpointId,
    failure,
    list,
    fail: (...groups: Partial<FailureGroup>[]) => recordFailures(db.pool, groups.map(failure)),
    succeed: (atMs: number) => resolveIssues(db.pool, [{ projectId, endpointId, atMs }]),
    only: async () => (await list())[0]!,
  };
}

issues('failures of all agents add up, and the newest is the sample', async () => {
  const { fail, list, endpointId } = await scene();
  await fail(
    { failures: 3, firstAtMs: ago(9), lastAtMs: ago(5), error: 'old' },
    { kind: 'timeout', httpStatus: null, lastAtMs: ago(4), error: 'slow \0 \x1e' },
  );
  const deliveryId = newId();
  await fail({ failures: 2, firstAtMs: ago(3), lastAtMs: ago(1), deliveryId });
  await fail({ failures: 1, lastAtMs: ago(2), error: 'late' });
  const [one, other] = await list();
  assert.equal(
    [one!.endpoint_id, one!.endpoint_name, one!.kind, one!.state, one!.failures, one!.error],
    [endpointId, 'shop', 'http_500', 'open', 6, 'The endpoint answered 500.'],
  );
  assert.equal(
    [one!.first_seen_at.getTime(), one!.last_seen_at.getTime(), one!.event_delivery_id],
    [ago(9), ago(1), deliveryId],
  );
  assert.equal([other!.kind, other!.http_status, other!.failures], ['timeout', null, 1]);
});

issues('a success after the last failure resolves all issues of its endpoint', async () => {
  const { fail, succeed, list, endpointId } = await scene();
  await fail({ lastAtMs: ago(5) }, { kind: 'timeout', lastAtMs: ago(3) });
  const states = async () => (await list()).map(({ state }) => state);
  assert.ok((await readFailingEndpoints(db.pool)).includes(endpointId));
  await succeed(ago(4));
  assert.equal(await states(), ['resolved', 'open']);
  await succeed(ago(2));
  assert.equal(await states(), ['resolved', 'resolved']);
  assert.not((await readFailingEndpoints(db.pool)).includes(endpointId));
  await fail({ lastAtMs: ago(6) });
  assert.equal(await states(), ['resolved', 'resolved'], 'that failure was before the success');
});

issues(
  'an issue that returns within the hour recurs: it resolves after a quiet minute',
  async () => {
    const { fail, succeed, only } = await scene();
    await fail({ failures: 5, lastAtMs: ago(30) });
    await succeed(ago(29));
    await fail({ lastAtMs: ago(20) });
    const again = await only();
    assert.equal(
      [again.state, again.failures, again.first_seen_at.getTime()],
      ['open', 6, ago(30)],
    );
    await succeed(ago(19.5));
    assert.is((await only()).state, 'open');
    await succeed(ago(18));
    assert.is((await only()).state, 'resolved');
  },
);

issues('an issue that returns after an hour is counted from zero', async () => {
  const { fail, succeed, only } = await scene();
  await fail({ failures: 5, lastAtMs: ago(300) });
  await succeed(ago(299));
  await fail({ lastAtMs: ago(20) });
  const again = await only();
  assert.equal([again.state, again.failures, again.first_seen_at.getTime()], ['open', 1, ago(20)]);
  await succeed(ago(19));
  assert.is((await only()).state, 'resolved', 'by the first success again');
});

issues('kinds beyond the bound are one issue', async () => {
  const { fail, list } = await scene();
  const kinds = (from: number) =>
    Array.from({ length: 15 }, (_, n) => ({ kind: `http_${from + n}`, httpStatus: from + n }));
  await fail(...kinds(400));
  await fail(...kinds(500));
  await fail(...kinds(500));
  const rows = await list();
  assert.is(rows.length, KINDS_MAX + 1);
  assert.is(rows.find(({ kind }) => kind === 'other')?.failures, 2 * 10);
});

issues('a muted issue is no longer open, and stays muted when it returns', async () => {
  const { fail, list, succeed, only } = await scene();
  await fail({});
  const issue = await only();
  assert.is((await muteIssue(db.pool, issue, true))?.state, 'muted');
  await succeed(nowMs + 1);
  await fail({ lastAtMs: nowMs + 2 });
  assert.equal(await list(['open']), []);
  assert.is((await muteIssue(db.pool, issue, false))?.state, 'open');
  assert.is(await muteIssue(db.pool, { ...issue, id: newId() }, true), undefined);
});

issues('agents that write the same issues at once do not deadlock, and lose nothing', async () => {
  const { failure, list } = await scene();
  const kinds = Array.from({ length: 10 }, (_, n) => `http_${500 + n}`);
  const round = (order: readonly string[]) =>
    recordFailures(
      db.pool,
      order.map((kind) => failure({ kind })),
    );
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => round(n % 2 ? kinds : [...kinds].reverse())),
  );
  assert.equal(
    (await list()).map(({ failures }) => failures),
    Array.from({ length: 10 }, () => 20),
  );
});

issues('issues are deleted with their endpoint, and a month after they were resolved', async () => {
  const [old, gone] = [await scene(), await scene()];
  for (const it of [old, gone]) await it.fail({ lastAtMs: ago(60 * 24 * 40) });
  await old.succeed(ago(60 * 24 * 39));
  await deleteEndpoint(db.knex, gone.projectId, gone.endpointId);
  assert.equal(await gone.list(), []);
  await old.fail({ kind: 'timeout' });
  await deleteOldIssues(db.pool);
  assert.equal(
    (await old.list()).map(({ kind }) => kind),
    ['timeout'],
  );
  assert.is(await findIssue(db.pool, newId()), undefined);
  const left = await db.rows('select from issues where endpoint_id = $1', [gone.endpointId]);
  assert.is(left.length, 0);
});

issues.run();
