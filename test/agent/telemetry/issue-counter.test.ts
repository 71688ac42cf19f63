import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { IssueCounter } from '#agent/telemetry/issue-counter';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { KINDS_MAX } from '#store/counts/issues';
import { migratedDatabase } from '../../store/migrated.js';
import { until } from '../../support/until.js';

const counter = suite('agent/telemetry/issue-counter');

const db = await migratedDatabase();
counter.after(() => db.close());
const issueCounter = (database: { pool: typeof db.pool } = db) =>
  new IssueCounter({ database, log: silentLog });

const startMs = Date.now() - 60_000;
const attempt = (fields: object = {}) => ({
  ...{ projectId: PROJECT, id: newId(), endpointId: ENDPOINT, requestedAtMs: startMs },
  ...{ code: 503 as number | null, errorClass: 'status' as string | null, detail: 'busy' },
  ...fields,
});
const success = (requestedAtMs: number, endpointId = ENDPOINT) =>
  attempt({ requestedAtMs, endpointId, code: 200, errorClass: null, detail: null });

let PROJECT = newId();
let ENDPOINT = newId();
counter.before.each(() => {
  PROJECT = newId();
  ENDPOINT = newId();
});

const rows = () =>
  db.rows<{ kind: string; failures: number; error: string; resolved: boolean }>(
    `select kind, failures::int as failures, error, resolved_at is not null as resolved from issues where project_id = $1 order by kind`,
    [PROJECT],
  );

counter('a batch of failures is one row for each endpoint and kind of error', async () => {
  const it = issueCounter();
  it.recorded([
    attempt(),
    attempt({ requestedAtMs: startMs + 2, detail: 'newest' }),
    attempt({ requestedAtMs: startMs + 1 }),
    attempt({ code: null, errorClass: 'timeout', detail: null }),
  ]);
  it.recorded([attempt({ requestedAtMs: startMs - 5 })]);
  await it.flush();
  assert.equal(await rows(), [
    { kind: 'http_503', failures: 4, error: 'newest', resolved: false },
    { kind: 'timeout', failures: 1, error: '', resolved: false },
  ]);
  await it.flush();
  assert.is((await rows())[0]!.failures, 4, 'nothing is written twice');
});

counter('a success resolves the issues of its endpoint, also those of another agent', async () => {
  const [one, other] = [issueCounter(), issueCounter()];
  one.recorded([attempt()]);
  await one.flush();
  other.start();
  const isResolved = async () => {
    other.recorded([success(startMs + 1)]);
    await other.flush();
    return (await rows())[0]!.resolved;
  };
  await until('the other agent to know of the issue', isResolved);
  await other.close();
});

counter('an endpoint with endless errors has a bounded number of issues', async () => {
  const it = issueCounter();
  it.recorded(Array.from({ length: 500 }, (_, n) => attempt({ code: 400 + n })));
  await it.flush();
  const made = await rows();
  assert.is(made.length, KINDS_MAX + 1);
  assert.is(made.find(({ kind }) => kind === 'other')?.failures, 500 - KINDS_MAX);
});

counter('a project with endless endpoints takes its share, and others are counted', async () => {
  const it = issueCounter();
  it.recorded(Array.from({ length: 2_000 }, () => attempt({ endpointId: newId() })));
  await it.flush();
  assert.is((await rows()).length, 1_000);
});

counter('what cannot be written stays for the next flush', async () => {
  let isAway = true;
  const query = (...args: unknown[]) =>
    isAway
      ? Promise.reject(new Error('away'))
      : (db.pool.query as (...args: unknown[]) => unknown).apply(db.pool, args);
  const it = issueCounter({ pool: { query } as unknown as typeof db.pool });
  it.recorded([attempt(), attempt()]);
  await it.flush().catch(() => undefined);
  it.recorded([attempt()]);
  isAway = false;
  await it.flush();
  assert.is((await rows())[0]!.failures, 3);
  it.recorded([success(startMs + 1)]);
  isAway = true;
  await it.flush().catch(() => undefined);
  isAway = false;
  await it.flush();
  assert.is((await rows())[0]!.resolved, true);
});

counter.run();
