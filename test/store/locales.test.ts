import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseSearch } from '#core/events/search';
import { isGatewayError } from '#core/errors/errors';
import { useShard } from '#ingest/stores';
import { readDatabaseFacts } from '#store/postgres/server-facts';
import { requireSessions } from '#store/postgres/pooler';
import { createDatabase, openDatabase } from '#store/postgres/database';
import { bothPlanes } from '#store/postgres/planes';
import { listEndpoints } from '#store/config/endpoints';
import { listEvents } from '#store/events/event-log';
import { findInvitationsTo } from '#store/people/invitations';
import { requestPasswordReset } from '#store/people/password-resets';
import { bootstrapUser, findUserByEmail, insertUser } from '#store/people/users';
import { checkServer } from '#cli/doctor/stores';
import { connectionOf, database } from '../support/database.js';
import { makeEndpoint, makeEvents, makeProject } from './made.js';
import { migrate, openUrl } from './migrated.js';

const locales = suite('store/locales');

/** A migrated database whose lower-case I is not i. */
async function turkish(): Promise<{ url: string; drop(): Promise<unknown> }> {
  const own = await database();
  const name = `${own.connection.database}_tr`;
  await own.rows(
    `create database ${name} template template0 encoding 'UTF8' locale_provider icu icu_locale 'tr'`,
  );
  const url = own.url.replace(own.connection.database, name);
  await migrate(url);
  return {
    url,
    drop: async () => {
      await own.rows(`drop database ${name} with (force)`);
      await own.close();
    },
  };
}

const tr = await turkish();
const db = openUrl(tr.url);
locales.after(async () => {
  await db.close();
  await tr.drop();
});

locales('in a Turkish database an address is one person, whatever its capitals', async () => {
  const { rows } = await db.pool.query<{ lower: string }>(`select lower('INFO')`);
  assert.is(rows[0]!.lower, 'ınfo', 'the database has the rules of Turkish');
  const fields = { firstName: 'a', lastName: 'b' };
  const { user, organisation } = await bootstrapUser(db.knex, {
    email: 'INFO@example.com',
    ...fields,
  });
  assert.is((await findUserByEmail(db.knex, 'info@example.com'))?.id, user.id);
  const again = { email: 'info@EXAMPLE.com', first_name: 'a', last_name: 'b', passwordHash: '' };
  await insertUser(db.knex, again).then(
    () => assert.unreachable('one address, two people'),
    (error: unknown) => assert.ok(isGatewayError(error, 'email_in_use'), String(error)),
  );
  await requestPasswordReset(db.pool, 'info@example.com', 'https://example.com/');
  const { rowCount } = await db.pool.query('select from password_resets where user_id = $1', [
    user.id,
  ]);
  assert.is(rowCount, 1);
  await db.knex('invitations').insert({
    id: user.id,
    organisation_id: organisation.id,
    email: 'WIKI@example.com',
    role: 'viewer',
    mask: 'm',
    hash: Buffer.alloc(32),
    invited_by: user.id,
    expires_at: db.knex.raw(`now() + interval '1 day'`),
  });
  assert.is((await findInvitationsTo(db.knex, 'wiki@example.com')).length, 1);
});

locales('searches by name find any case, with letters of every language', async () => {
  const { id } = await makeProject(db);
  for (const name of ['BILLING (İstanbul)', 'Größe_100% [Äpfel]'])
    await makeEndpoint(db, id, { name });
  const page = { perPage: 10, direction: 'next', sort: 'ASC' } as const;
  const found = async (text: string) =>
    (await listEndpoints({ knex: db.knex, data: db.pool }, id, {}, page, text)).content.length;
  for (const [text, count] of [
    ['billing', 1],
    ['BILLING (', 1],
    ['größE_100% [äPFEL]', 1],
    ['.*', 0],
    ['100_', 0],
    ['\\w', 0],
    ['(?i)', 0],
    ['***=g', 0],
  ] as const)
    assert.is(await found(text), count, text);
  await makeEvents(db, id, [
    { atMs: Date.now(), eventType: 'INVOICE.SHIPPED', status: 'processed', data: '{}' },
  ]);
  const search = parseSearch('invoice.shipped');
  const events = await listEvents(bothPlanes(db), id, { search }, page);
  assert.is(events.content.length, 1);
});

locales('the settings of a session are checked in a Turkish database too', async () => {
  const settings = { scheme: 'postgres' as const, ...connectionOf(tr.url), pooled: true };
  await db.pool.query(`alter database ${settings.database} set intervalstyle = 'sql_standard'`);
  const pooled = openDatabase(settings, { poolSize: 2, name: 'test' });
  try {
    await requireSessions(pooled, settings).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, 'intervalstyle = sql_standard'),
    );
  } finally {
    await pooled.close();
    await db.pool.query(`alter database ${settings.database} reset intervalstyle`);
  }
});

locales(
  'new databases are UTF-8 in any cluster, and their order of text never changes',
  async () => {
    const settings = { scheme: 'postgres' as const, ...connectionOf(`${tr.url}_new`) };
    await createDatabase(settings);
    const { rows } = await db.pool.query<{ encoding: string; collation: string; version: null }>(
      `select pg_encoding_to_char(encoding) as encoding, datcollate as collation, datcollversion as version from pg_database where datname = $1`,
      [settings.database],
    );
    await db.pool.query(`drop database ${settings.database}`);
    assert.equal(rows, [{ encoding: 'UTF8', collation: 'C', version: null }]);
    const guides = fileURLToPath(new URL('../../docs/guides/', import.meta.url));
    for (const guide of readdirSync(guides))
      for (const [line] of readFileSync(join(guides, guide), 'utf8').matchAll(
        /create database gateway.*/g,
      ))
        assert.match(
          line,
          `encoding 'UTF8' locale_provider libc locale 'C' template template0`,
          guide,
        );
  },
);

locales(
  'other collations below the same data are named by doctor and log, with the fix',
  async () => {
    const settings = { scheme: 'postgres' as const, ...connectionOf(tr.url) };
    const told = async () => {
      const lines: object[] = [];
      const shard = { name: 'default', database: db, settings };
      await useShard(shard, { warn: (fields) => void lines.push(fields) });
      return { lines, doctor: checkServer(settings, await readDatabaseFacts(db.pool)) };
    };
    const before = await told();
    assert.equal([before.lines, before.doctor.state], [[], 'ok']);
    await db.pool.query(
      `update pg_database set datcollversion = '1' where datname = current_database()`,
    );
    const { lines, doctor } = await told();
    assert.is(doctor.state, 'warning');
    assert.match(
      doctor.sentence,
      /collations of the system have changed since .* \(version 1, now /,
    );
    assert.match(JSON.stringify(lines), 'reindex database concurrently');
    const [reindex, refresh] = /`(.*); (.*)`/.exec(doctor.fix!)!.slice(1);
    for (const statement of [reindex!, refresh!]) await db.pool.query(statement);
    assert.is((await told()).doctor.state, 'ok');
  },
);

locales.run();
