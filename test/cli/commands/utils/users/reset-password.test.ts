import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { insertApiKey } from '#store/config/api-keys';
import { findPasswordReset } from '#store/people/password-resets';
import { bootstrapUser, findUserByPassword } from '#store/people/users';
import { migratedDatabase } from '../../../../store/migrated.js';
import { connectionOf } from '../../../../support/database.js';
import { runGateway } from '../../../../support/gateway.js';
import { runHere } from '../../../run-here.js';

const reset = suite('cli/commands/utils/users/reset-password');

const db = await migratedDatabase();
reset.after(() => db.close());
const config = { database: connectionOf(db.url), host: 'hooks.example.com' };
const bin = fileURLToPath(new URL('../../../../../packages/cli/bin/gateway.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'gateway-reset-'));
const file = join(folder, 'gateway.json');
writeFileSync(file, JSON.stringify(config));
reset.after(() => rmSync(folder, { recursive: true }));
const email = 'ada@example.com';
const { user } = await bootstrapUser(db.knex, { email, firstName: 'Ada', lastName: 'L' });
const actions = () =>
  db.rows(`select action, changes from audit_log where actor_type = 'process' order by id`);

reset('a link is printed, which is for this user and stands hashed in the database', async () => {
  const args = ['utils', 'users', 'reset-password', '--email', email.toUpperCase()];
  const { code, stdout } = await runGateway(args, { config });
  assert.is(code, 0);
  const [, token] = /^http:\/\/hooks\.example\.com\/#password-reset=(gw_\S+)\n$/.exec(stdout)!;
  assert.equal(await findPasswordReset(db.knex, token!), { id: user.id, email });
  assert.equal(await actions(), [
    { action: 'users.resetPassword', changes: { method: { after: 'link' } } },
  ]);
});

reset(
  'a password of standard input is set, sessions end, and it is never an argument',
  async () => {
    await insertApiKey(db.knex, { type: 'session', name: 'browser', userId: user.id });
    const run = (input: string) => {
      const args = [bin, 'utils', 'users', 'reset-password', '--email', email, '--password-stdin'];
      return spawnSync(process.execPath, [...args, '--config', file], { input, encoding: 'utf8' });
    };
    assert.match(run('short\n').stderr, 'the password has fewer than 12 characters');
    const { status, stdout, stderr } = run('a new good password\n');
    assert.equal([status, stdout], [0, '']);
    assert.match(stderr, 'Sessions ended: 1.');
    assert.ok(await findUserByPassword(db.knex, email, 'a new good password'));
    assert.is((await actions()).length, 2);
  },
);

reset('an unknown address is named', async () => {
  const { code, stderr } = await runHere(
    'utils:users:reset-password',
    ['--email', 'nobody@example.com'],
    config,
  );
  assert.ok(code > 0);
  assert.match(stderr, 'nobody@example.com');
});

reset.run();
