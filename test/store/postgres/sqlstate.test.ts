import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import pg from 'pg';
import { rejectsContent } from '#store/postgres/sqlstate';
import { database, type Database } from '../../support/database.js';

const refused = suite('store/postgres/sqlstate');

let db: Database;
let client: pg.Client;
refused.before(async () => {
  db = await database();
  client = new pg.Client({ connectionString: db.url });
  await client.connect();
});
refused.after(async () => {
  await client.end();
  await db.close();
});

async function raised(code: string): Promise<unknown> {
  return client
    .query(`do $$ begin raise exception 'because' using errcode = '${code}'; end $$`)
    .then(
      () => assert.unreachable('it raises nothing'),
      (error: unknown) => error,
    );
}

/**
 * https://www.postgresql.org/docs/current/errcodes-appendix.html: the codes that the gateway's
 * statements can meet.
 */
const LATER = {
  '08000': 'the connection broke',
  '08006': 'the connection broke',
  '25006': 'read-only: a failover came up as a replica',
  '26000': 'the prepared statement is gone, as behind a pooler',
  '40001': 'serialisation',
  '40P01': 'deadlock',
  '42501': 'a right is missing',
  '42P01': 'a table is missing',
  '53000': 'resources are used up',
  '53100': 'the disk is full',
  '53200': 'the memory is used up',
  '53300': 'no connection is left',
  '53400': 'a limit of the configuration',
  '55006': 'an object is in use',
  '55P03': 'a lock could not be had',
  '57014': 'cancelled, or the statement took too long',
  '57P01': 'an operator shuts it down',
  '57P02': 'it crashed',
  '57P03': 'it is starting',
  '57P05': 'the session was idle for too long',
  '58000': 'the system',
  '58030': 'its files cannot be read or written',
  XX000: 'a fault of Postgres',
  XX001: 'a damaged file',
};

const CONTENT = {
  '22001': 'too long',
  '22003': 'out of range',
  '22007': 'no time',
  '22021': 'a character that the encoding does not have',
  '22P05': 'a character that cannot be converted',
  '23502': 'null',
  '23505': 'unique',
  '23514': 'a check',
  '54000': 'a limit of the program, as the size of an index row',
};

refused('what is about Postgres itself is never taken for a fault of the message', async () => {
  for (const [code, why] of Object.entries(LATER)) {
    const error = await raised(code);
    assert.is((error as pg.DatabaseError).code, code);
    assert.is(rejectsContent(error), false, `${code}: ${why}`);
  }
});

refused('what is about the message is', async () => {
  for (const [code, what] of Object.entries(CONTENT))
    assert.is(rejectsContent(await raised(code)), true, `${code}: ${what}`);
});

refused('errors without a code of Postgres are about the way to it', () => {
  for (const error of [
    new Error('Query read timeout'),
    Object.assign(new Error('cut'), { code: 'ECONNRESET' }),
    undefined,
    null,
    'text',
  ]) {
    assert.is(rejectsContent(error), false);
  }
  assert.is(rejectsContent(Object.assign(new Error('x'), { code: '22ABCX' })), false);
});

refused(
  'a session that Postgres ends is not about the message either, though the code says so',
  async () => {
    // An invalid parameter value ends the session before it starts.
    const wrong = new pg.Client({
      connectionString: db.url,
      options: '-c statement_timeout=never',
    });
    const error = await wrong.connect().then(
      () => assert.unreachable('Postgres takes it'),
      (failure: unknown) => failure,
    );
    assert.equal(
      [(error as pg.DatabaseError).code, (error as pg.DatabaseError).severity],
      ['22023', 'FATAL'],
    );
    assert.is(rejectsContent(error), false);
  },
);

refused(
  'a transaction that is read-only refuses to write, and says so with a code that waits',
  async () => {
    await client.query('create table t (n int)');
    await client.query('set default_transaction_read_only = on');
    try {
      await client.query('insert into t values (1)');
      assert.unreachable('it was written');
    } catch (error) {
      assert.equal([(error as pg.DatabaseError).code, rejectsContent(error)], ['25006', false]);
    } finally {
      await client.query('set default_transaction_read_only = off');
    }
  },
);

refused.run();
