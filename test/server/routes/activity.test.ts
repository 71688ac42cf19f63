import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { applyPendingDeltas } from '#store/counts/count-deltas';
import { makeProject, mistakes, startApi, type Api } from '../api.js';

const activity = suite('server/routes/activity');
let api: Api;

activity.before(async () => {
  api = await startApi();
});
activity.after(() => api.close());

activity(
  'a project shows what is the matter and what happened; another project shows its own',
  async () => {
    const [one, other] = [await makeProject(api), await makeProject(api)];
    await api.call('POST', `${one.path}/events`, { event_type: 'a', data: {} });
    await api.db.rows(
      `insert into count_changes values ($1, '{null}', '{null}', '{null}', '{processed}', '{null}', '{3}')`,
      [one.id],
    );
    await applyPendingDeltas(api.db.pool);
    const { data } = (await api.call('GET', `${one.path}/activity`)).body;
    assert.is(data.step_seconds, 60);
    assert.equal(
      data.content.map((step: { events: unknown }) => step.events),
      [{ processed: 3, failed: 0 }],
    );
    assert.equal((await api.call('GET', `${other.path}/activity`)).body.data.content, []);
    assert.is((await api.call('GET', `${one.path}/summary`)).body.data.pending_events, 1);
    assert.is((await api.call('GET', `${other.path}/summary`)).body.data.pending_events, 0);
  },
);

activity(
  'the step follows from the range, and a range that is kept by nobody is refused',
  async () => {
    const { path } = await makeProject(api);
    const stepOf = async (query: string) =>
      (await api.call('GET', `${path}/activity?${query}`)).body.data.step_seconds;
    assert.is(await stepOf('startDate=2026-11-21T00:00:00Z&endDate=2026-11-21T06:00:00Z'), 60);
    assert.is(await stepOf('startDate=2026-11-20&endDate=2026-11-21'), 600);
    assert.is(await stepOf('startDate=2026-11-15&endDate=2026-11-21'), 3600);
    assert.is(await stepOf(`endpointId=${'0190c0de-0000-7000-8000-000000000002'}`), 600);
    for (const query of [
      'startDate=2026-11-21&endDate=2026-11-20T00:00:00Z',
      'startDate=2026-01-01&endDate=2026-11-21',
    ])
      assert.equal(mistakes(await api.call('GET', `${path}/activity?${query}`)), [
        'startDate must be at most eight days before endDate: activity is kept for seven days',
      ]);
  },
);

activity('attempts are counted by endpoint, of one project alone', async () => {
  const [one, other] = [await makeProject(api), await makeProject(api)];
  const [a, b, foreign] = [
    '0190c0de-0000-7000-8000-00000000000a',
    '0190c0de-0000-7000-8000-00000000000b',
    '0190c0de-0000-7000-8000-00000000000c',
  ];
  for (const [project, endpoint, kind, status, n] of [
    [one.id, a, 'attempt', 'success', 7],
    [one.id, a, 'attempt', 'failure', 3],
    [one.id, a, 'delivery', 'failure', 1],
    [other.id, foreign, 'attempt', 'failure', 5],
  ] as const)
    await api.db.pool.query(
      `insert into activity (project_id, endpoint_id, at, kind, status, n) values ($1, $2, date_bin('10 minutes', now(), 'epoch'), $3, $4, $5)`,
      [project, endpoint, kind, status, n],
    );
  const path = `${one.path}/activity/endpoints`;
  const answer = await api.call(
    'GET',
    `${path}?endpointId=${a}&endpointId=${b}&endpointId=${foreign}`,
  );
  assert.equal(answer.body.data, {
    content: [
      {
        endpoint_id: a,
        attempts: { success: 7, failure: 3 },
        last_attempt_at: answer.body.data.content[0].last_attempt_at,
      },
    ],
  });
  const lastAtMs = Date.parse(answer.body.data.content[0].last_attempt_at);
  assert.ok(lastAtMs <= Date.now() && lastAtMs > Date.now() - 3_600_000);
  const before = await api.call(
    'GET',
    `${path}?endpointId=${a}&startDate=2026-01-01&endDate=2026-01-02`,
  );
  assert.equal(before.body.data, { content: [] });
  assert.equal(mistakes(await api.call('GET', path)), ['endpointId is missing']);
});

activity.run();
