import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import {
  claimNotifications,
  endNotifications,
  giveUpNotifications,
  markSent,
  readOpenNotifications,
  postponeNotifications,
  raiseNotifications,
  type NewNotification,
} from '#store/config/notifications';
import { deactivateEndpoint, setEndpointStatus } from '#store/config/endpoints';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const notifications = suite('store/config/notifications');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
let projectId: string;
notifications.before(async () => {
  db = await migratedDatabase();
  ({ id: projectId } = await makeProject(db));
  await db.rows(`insert into shards (name, schema_name) values ('other', 'other')`);
});
notifications.before.each(async () => void (await db.rows('delete from notifications')));
notifications.after(() => db.close());

/** A notification about an endpoint that does not exist, which the outbox accepts. */
function failing(fields: Partial<NewNotification> = {}): NewNotification {
  return {
    kind: 'endpoint_failing',
    projectId,
    subject: newId(),
    facts: { failures: 10 },
    ...fields,
  };
}
const raise = async (notification: NewNotification, { agentId = 1, quietSeconds = 0 } = {}) =>
  (
    await raiseNotifications(db.pool, [notification], { agentIdOf: () => agentId, quietSeconds })
  )[0];
const claim = async (gatherSeconds = 0) => (await claimNotifications(db.pool, gatherSeconds))[0];

notifications(
  'of agents that raise the same at once one does, and it is claimed once',
  async () => {
    const it = failing();
    const raised = await Promise.all(Array.from({ length: 8 }, () => raise(it)));
    assert.is(raised.filter((outcome) => outcome === 'raised').length, 1);
    assert.is(await raise(it), 'known');
    const claimed = await Promise.all(Array.from({ length: 4 }, () => claim()));
    assert.is(claimed.filter((one) => one !== undefined).length, 1);
  },
);

notifications('a kind that a newer version added waits for an agent that knows it', async () => {
  await db.rows(`alter type notification_kind add value if not exists 'of_tomorrow'`);
  await raise(failing({ kind: 'of_tomorrow' as 'source_failing' }));
  assert.is(await claim(), undefined);
  const { subject } = failing();
  await raise(failing({ subject }));
  assert.is((await claim())?.subject, subject);
});

notifications('it is raised again when it is over, but not within the quiet time', async () => {
  const it = failing();
  await raise(it);
  await endNotifications(db.pool, 'source_failing', [it.subject]);
  assert.is(await raise(it), 'known');
  await endNotifications(db.pool, it.kind, [it.subject, 'another']);
  assert.equal(await readOpenNotifications(db.pool), []);
  assert.is(await raise(it, { quietSeconds: 600 }), 'quiet');
  await db.rows(`update notifications set created_at = now() - interval '11 minutes'`);
  assert.is(await raise(it, { quietSeconds: 600 }), 'raised');
});

notifications(
  'what is sent is not claimed again; what could not be is, after its wait; what an agent took and did not finish is, after its lease',
  async () => {
    await raise(failing());
    const first = await claim();
    assert.is(first?.attempts, 1);
    assert.is(await claim(), undefined);
    await postponeNotifications(db.pool, [first!.id], { reason: 'away', waitMs: 0 });
    assert.is((await claim())?.attempts, 2);
    // The agent is killed while it holds the notification.
    await db.rows(
      `update notifications set next_attempt_at = next_attempt_at - interval '5 minutes'`,
    );
    assert.is((await claim())?.attempts, 3);
    await markSent(db.pool, [first!.id]);
    await postponeNotifications(db.pool, [first!.id], { reason: 'late', waitMs: 0 });
    assert.is(await claim(), undefined);
    const [row] = await db.rows('select status, last_error from notifications');
    assert.equal(row, { status: 'sent', last_error: null });
  },
);

notifications('a claimed one names what it is about, and whom to tell', async () => {
  const project = await makeProject(db);
  const endpoint = await makeEndpoint(db, project.id, { name: 'shop' });
  const [admin] = await db.rows<{ email: string }>(
    'select email from users u join organisation_members m on m.user_id = u.id where m.organisation_id = $1',
    [project.organisation_id],
  );
  const other = await makeProject(db);
  await db.rows(
    `insert into organisation_members (organisation_id, user_id, role) select $1, user_id, 'member' from organisation_members where organisation_id = $2`,
    [project.organisation_id, other.organisation_id],
  );
  await raise(failing({ projectId: project.id, subject: endpoint.id, facts: { error: 'e' } }));
  const claimed = await claim();
  const { id, createdAt, ...rest } = claimed!;
  assert.ok(id && createdAt instanceof Date);
  assert.equal(rest, {
    kind: 'endpoint_failing',
    projectId: project.id,
    subject: endpoint.id,
    facts: { error: 'e' },
    attempts: 1,
    project: 'orders',
    organisation: 'Acme',
    name: 'shop',
    url: 'https://example.com/hooks',
    admins: [admin!.email],
  });
});

notifications(
  'a deactivated endpoint is told of in the same commit, once, and only when somebody is to be told',
  async () => {
    const project = await makeProject(db);
    const [quiet, told] = [await makeEndpoint(db, project.id), await makeEndpoint(db, project.id)];
    assert.is(await deactivateEndpoint(db.pool, project.id, quiet.id, 'gone'), true);
    const facts = { error: 'gone' };
    const done = await Promise.all(
      [1, 2, 3].map(() => deactivateEndpoint(db.pool, project.id, told.id, 'gone', facts)),
    );
    assert.equal(done.sort(), [false, false, true]);
    const rows = await db.rows('select kind, subject, facts, project_id from notifications');
    assert.equal(rows, [
      { kind: 'endpoint_disabled', subject: told.id, facts, project_id: project.id },
    ]);
    // An activated endpoint can be disabled again.
    await setEndpointStatus(db.knex, project.id, told.id, { status: 'active', reason: null });
    assert.is(await deactivateEndpoint(db.pool, project.id, told.id, 'gone', facts), true);
    assert.is((await db.rows('select from notifications')).length, 2);
  },
);

notifications(
  'several are raised in one statement, and what became of each is told in their order',
  async () => {
    const [open, over, fresh] = [failing(), failing(), failing()];
    await raiseNotifications(db.pool, [open, over], { agentIdOf: () => 1, quietSeconds: 0 });
    await endNotifications(db.pool, over.kind, [over.subject]);
    const again = [over, fresh, open];
    assert.equal(
      await raiseNotifications(db.pool, again, { agentIdOf: () => 1, quietSeconds: 600 }),
      ['quiet', 'raised', 'known'],
    );
  },
);

notifications(
  'agents that raise many in different orders do not stand in each other’s way',
  async () => {
    const many = Array.from({ length: 500 }, () => failing());
    const raised = await Promise.all(
      [many, [...many].reverse()].map((it) =>
        raiseNotifications(db.pool, it, { agentIdOf: () => 1, quietSeconds: 0 }),
      ),
    );
    assert.is(raised.flat().filter((it) => it === 'raised').length, 500);
  },
);

notifications(
  'an error with characters that Postgres cannot keep is told without them',
  async () => {
    await raise(failing({ facts: { error: 'a\0b \ud83d' } }));
    assert.equal((await claim())?.facts, { error: 'a\ufffdb \ufffd' });
    const project = await makeProject(db);
    const { id } = await makeEndpoint(db, project.id);
    assert.is(await deactivateEndpoint(db.pool, project.id, id, 'gone', { error: '\0' }), true);
    const [first] = await claimNotifications(db.pool, 0);
    await postponeNotifications(db.pool, [first!.id], { reason: 'a\0b', waitMs: 0 });
    assert.is((await claim())?.facts.error, '\ufffd');
  },
);

notifications(
  'what is due of one kind and organisation is claimed together; after ten the next are gathered',
  async () => {
    const [project, other] = [await makeProject(db), await makeProject(db)];
    const raiseOf = (projectId: string, count: number) =>
      raiseNotifications(
        db.pool,
        Array.from({ length: count }, () => failing({ projectId })),
        { agentIdOf: () => 1, quietSeconds: 0 },
      );
    const claimed = async () => {
      const rows = await claimNotifications(db.pool, 600);
      await markSent(
        db.pool,
        rows.map(({ id }) => id),
      );
      return rows.map(({ projectId }) => projectId);
    };
    await raiseOf(project.id, 9);
    await raise(failing({ projectId: project.id, kind: 'source_failing' }));
    await raiseOf(other.id, 1);
    assert.equal(
      [(await claimed()).length, await claimed(), await claimed(), await claimed()],
      [9, [project.id], [other.id], []],
    );
    await raiseOf(project.id, 1);
    assert.is((await claimed()).length, 1);
    await raiseOf(project.id, 2);
    await raiseOf(other.id, 1);
    // Other organisations and kinds are not delayed.
    assert.equal(await claimed(), [other.id]);
    assert.equal(await claimed(), []);
    await raise(failing({ projectId: project.id, kind: 'source_failing' }));
    assert.equal(await claimed(), [project.id]);
    await db.rows(
      `update notifications set sent_at = sent_at - interval '11 minutes' where sent_at is not null`,
    );
    assert.equal(await claimed(), [project.id, project.id]);
  },
);

notifications('what tells of an endpoint that is deleted is over', async () => {
  const project = await makeProject(db);
  const [gone, there] = [await makeEndpoint(db, project.id), await makeEndpoint(db, project.id)];
  for (const { id } of [gone, there]) await raise(failing({ projectId: project.id, subject: id }));
  await db.rows('update endpoints set deleted_at = now() where id = $1', [gone.id]);
  await giveUpNotifications(db.pool, { afterHours: 72, forgetAfterDays: 90 });
  const open = await db.rows<{ subject: string }>(
    'select subject from notifications where ended_at is null order by created_at',
  );
  assert.equal(
    open.map(({ subject }) => subject),
    [there.id],
  );
});

notifications('what is going on names the agent that raised it, and its shard', async () => {
  const project = await makeProject(db);
  const it = failing({ kind: 'source_failing', projectId: project.id });
  await raise(it, { agentId: 7 });
  const { kind, subject } = it;
  assert.equal(await readOpenNotifications(db.pool), [
    { kind, subject, shard: 'default', raised_by: 7 },
  ]);
});

notifications(
  'what waited for too long is given up, and what is long over is forgotten',
  async () => {
    const limits = { afterHours: 72, forgetAfterDays: 90 };
    const old = failing({ kind: 'endpoint_disabling' });
    await raise(old);
    await raise(failing({ kind: 'endpoint_disabling' }));
    await db.rows(
      `update notifications set created_at = now() - interval '4 days', last_error = 'away' where subject = $1`,
      [old.subject],
    );
    assert.equal(
      (await giveUpNotifications(db.pool, limits)).map(({ subject, last_error: error }) => [
        subject,
        error,
      ]),
      [[old.subject, 'away']],
    );
    assert.equal(await giveUpNotifications(db.pool, limits), []);
    await db.rows(`update notifications set ended_at = now() - interval '91 days'`);
    await giveUpNotifications(db.pool, limits);
    assert.equal(await db.rows('select status from notifications'), [{ status: 'waiting' }]);
  },
);

notifications.run();
