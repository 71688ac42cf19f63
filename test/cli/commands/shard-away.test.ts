import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { insertShard } from '#store/shards/shards';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { connectionOf } from '../../support/database.js';
import { tempFolder } from '../../support/start/keep.js';
import { quarantined } from '../quarantined.js';
import { runHere } from '../run-here.js';

const away = suite('cli/commands/shard-away');

const db = await migratedDatabase();
const config = {
  database: connectionOf(db.url),
  encryption_key: Buffer.alloc(32, 7).toString('base64'),
  kv: { type: 'in-memory' },
};
let here: Awaited<ReturnType<typeof quarantined>>;
let eventId = '';
let gone = '';
away.before(async () => {
  // Nothing listens on port 1.
  const address = { ...config.database, port: 1, password: null, options: null };
  await insertShard(db.pool, { name: 'big', address, schema: null, isCitus: false });
  here = await quarantined(db, ['a', 'bb']);
  const { projectId } = here;
  [eventId = ''] = await makeEvents(db, projectId, [{ atMs: Date.now() }]);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  await makeDelivery(db, { projectId, eventId, endpointId, status: 'failure', attempts: 11 });
  ({ id: gone } = await makeProject(db));
  await db.rows(`update projects set shard = 'big' where id = $1`, [gone]);
});
away.after(() => db.close());

const AWAY = 'Postgres at 127.0.0.1:1 cannot be reached: nothing listens there';
/** Runs a command. Returns its standard output and, on one line, its errors. */
const run = async (command: string, ...args: string[]) => {
  const { code, stdout, stderr } = await runHere(command, args, config);
  return { code, stdout, stderr: stderr.replaceAll(/\s+/g, ' ') };
};
const works = async (command: string, ...args: string[]) => {
  const { code, stdout, stderr } = await run(command, ...args);
  assert.is(code, 0, stderr);
  return stdout;
};
/** Runs a command that does its work for projects on other shards, and then fails. */
const worksOnOthers = async (command: string, ...args: string[]) => {
  const { code, stdout, stderr } = await run(command, ...args);
  assert.is(code, 1);
  assert.match(stderr, `the shard big cannot be used: ${AWAY}`);
  return stdout;
};
const fails = async (command: string, ...args: string[]) => {
  const { code, stdout, stderr } = await run(command, ...args);
  assert.equal([code, stdout], [1, '']);
  assert.match(stderr, `the shard big cannot be used: ${AWAY}`);
};

const FAILED = ['--status', 'failure', '--time', '1h'] as const;

away('lists show the other shards, and fail with the name of the one that is away', async () => {
  assert.match(await worksOnOthers('utils:quarantine:list'), here.ids[0]!);
  const listed = await worksOnOthers('utils:quarantine:list', '--json');
  assert.is((JSON.parse(listed) as unknown[]).length, 2);
  assert.match(await works('shards:list'), /^big .* 1 +- +- +away$/m);
});

away('work on all shards is done on the others', async () => {
  assert.match(
    await worksOnOthers('retry', ...FAILED, '--dry-run'),
    '1 event delivery would be re-queued',
  );
  const discarded = await run('utils:quarantine:discard', '--all', '--code', 'not_json');
  assert.match(discarded.stderr, `the shard big cannot be used: ${AWAY}`);
  const left = await db.rows(`select from quarantined_messages where status = 'quarantined'`);
  assert.is(left.length, 0);
});

away('what belongs to one project needs its shard alone', async () => {
  const project = ['--project-id', here.projectId];
  assert.match(await works('utils:quarantine:list', ...project), here.ids[0]!);
  await works('utils:quarantine:replay', '--all', ...project);
  assert.match(await works('retry', ...FAILED, ...project, '--dry-run'), '1 event delivery');
  assert.match(await works('retry', ...FAILED, '--event-id', eventId, '--dry-run'), '1 event');
  await works('utils:explain', eventId);
  await works('utils:quarantine:show', here.ids[0]!);
  await fails('utils:quarantine:list', '--project-id', gone);
});

away('what is not found on the others may be on the shard that is away', async () => {
  await fails('retry', ...FAILED, '--event-id', newId());
  await fails('utils:explain', newId());
  await fails('utils:quarantine:show', newId());
});

away('what needs all shards names the one that is away', async () => {
  await fails('shards:move', gone, 'default');
  await fails('shards:move', here.projectId, 'big');
  const key = path.join(tempFolder('key'), 'new.key');
  fs.writeFileSync(key, crypto.randomBytes(32).toString('base64'));
  await fails('utils:secrets:rotate', '--encryption-key-file', key);
});

away.run();
