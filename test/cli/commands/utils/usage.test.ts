import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { makeProject } from '../../../store/made.js';
import { migratedDatabase } from '../../../store/migrated.js';
import { connectionOf, database } from '../../../support/database.js';
import { runGateway } from '../../../support/gateway.js';

const usage = suite('cli/commands/utils/usage');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
usage.before(async () => {
  db = await migratedDatabase();
});
usage.after(() => db.close());

const run = (...args: string[]) =>
  runGateway(['utils', 'usage', ...args], { config: { database: connectionOf(db.url) } });
const dayOf = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);

usage('an empty record says so beside an empty answer', async () => {
  const { code, stdout, stderr } = await run('--json');
  assert.equal([code, stdout, stderr], [0, '[]\n', 'There is no usage for the last 30 days.\n']);
});

usage(
  'the table has a line for each day and organisation, as far back as asked for; JSON has the same',
  async () => {
    const one = await makeProject(db);
    const other = await makeProject(db);
    await db.rows(`update organisations set name = 'Shop Ltd' where id = $1`, [
      one.organisation_id,
    ]);
    await db.rows(
      `insert into usage_days (organisation_id, day, events, deliveries, bytes, closed_at, posted_at) values
       ($1, $3::date, 5, 9, 9000000000000, null, null),
       ($1, $4::date, 1, 2, 3, now(), '2025-03-31T01:00:07Z'),
       ($2, $3::date, 7, 8, 9, null, null)`,
      [one.organisation_id, other.organisation_id, dayOf(0), dayOf(40)],
    );
    const { code, stdout, stderr } = await run();
    assert.equal([code, stderr], [0, '']);
    assert.equal(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/\s{2,}/)),
      [
        ['DAY', 'ORGANISATION', 'EVENTS', 'DELIVERIES', 'BYTES', 'POSTED'],
        [dayOf(0), 'Acme', '7', '8', '9', '-'],
        [dayOf(0), 'Shop Ltd', '5', '9', '9000000000000', '-'],
      ],
    );
    const all = await run('--days', '60', '--organisation-id', one.organisation_id, '--json');
    assert.equal(JSON.parse(all.stdout), [
      {
        day: dayOf(0),
        organisation_id: one.organisation_id,
        organisation: 'Shop Ltd',
        events: 5,
        deliveries: 9,
        bytes: 9_000_000_000_000,
        posted_at: null,
      },
      {
        day: dayOf(40),
        organisation_id: one.organisation_id,
        organisation: 'Shop Ltd',
        events: 1,
        deliveries: 2,
        bytes: 3,
        posted_at: '2025-03-31T01:00:07.000Z',
      },
    ]);
  },
);

usage(
  'a wrong number of days, an organisation that is not there and a database without migrations are told',
  async () => {
    const days = await run('--days', '1w');
    assert.equal([days.code, days.stdout], [2, '']);
    assert.match(days.stderr, '--days must be an integer from 1 to 99999, not "1w"');
    for (const id of [newId(), 'shop']) {
      const { code, stderr } = await run('--organisation-id', id);
      assert.is(code, 1);
      assert.match(stderr, `organisation ${id} not found`);
    }
    const empty = await database();
    const pending = await runGateway(['utils', 'usage'], {
      config: { database: empty.connection },
    });
    assert.is(pending.code, 1);
    assert.match(pending.stderr, 'gateway migrate up');
    await empty.close();
  },
);

usage.run();
