import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { matchesApiKey, maskOfApiKey } from '#core/crypto/api-keys';
import { organisationsOfUser } from '#store/people/organisations';
import { generatePassword, hashPassword, verifyPassword } from '#store/people/passwords';
import { bootstrapUser } from '#store/people/users';
import { isGatewayError } from '#core/errors/errors';
import { findApiKey } from '#store/config/api-keys';
import { migratedDatabase } from '../migrated.js';

const users = suite('store/people/users');

const db = await migratedDatabase();
users.after(() => db.close());

const ada = { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace' };

users(
  'a user comes with a password, an organisation that she administers, and a personal key',
  async () => {
    const made = await bootstrapUser(db.knex, ada);
    assert.equal(Object.keys(made), ['user', 'password', 'organisation', 'api_key']);
    const { id, ...named } = made.user;
    assert.equal(named, { email: 'ada@example.com', first_name: 'Ada', last_name: 'Lovelace' });

    const [stored] = await db.rows<{ password_hash: string; role: string }>(
      'select password_hash, role from users u join organisation_members m on m.user_id = u.id where u.id = $1',
      [id],
    );
    assert.is(stored?.role, 'owner');
    assert.ok(await verifyPassword(made.password, stored?.password_hash ?? ''));
    assert.equal(
      (await organisationsOfUser(db.knex, id)).map((it) => ({ id: it.id, name: it.name })),
      [made.organisation],
    );

    const key = await findApiKey(db.knex, maskOfApiKey(made.api_key.key) ?? '');
    assert.is(key?.row.user_id, id);
    assert.is(key?.row.type, 'personal');
    assert.ok(matchesApiKey(made.api_key.key, key?.hash ?? Buffer.alloc(0)));
  },
);

users(
  'an email address is used once, whatever its capitals, and a refused user leaves nothing behind',
  async () => {
    const count = async () => (await db.rows('select from organisations')).length;
    const before = await count();
    try {
      await bootstrapUser(db.knex, { ...ada, email: 'ADA@example.com' });
      assert.unreachable();
    } catch (error) {
      assert.ok(isGatewayError(error, 'email_in_use'), String(error));
      assert.match(error.message, 'ADA@example.com');
    }
    assert.is(await count(), before);
  },
);

users('of ten at once with the same email address one is made', async () => {
  const results = await Promise.allSettled(
    Array.from({ length: 10 }, () =>
      bootstrapUser(db.knex, { ...ada, email: 'grace@example.com' }),
    ),
  );
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const result of results)
    if (result.status === 'rejected')
      assert.ok(isGatewayError(result.reason, 'email_in_use'), String(result.reason));
});

users('what is no email address is refused', async () => {
  for (const email of ['ada', '@example.com', 'ada@', 'a da@example.com']) {
    try {
      await bootstrapUser(db.knex, { ...ada, email });
      assert.unreachable(email);
    } catch (error) {
      assert.ok(isGatewayError(error, 'wrong_use'), String(error));
    }
  }
});

users('a generated password is long and new each time', () => {
  const some = Array.from({ length: 100 }, generatePassword);
  assert.is(new Set(some).size, 100);
  for (const one of some) assert.match(one, /^[A-Za-z0-9_-]{24}$/);
});

users('a password verifies against its hash, another does not', async () => {
  const hash = await hashPassword('correct horse');
  assert.match(hash, /^scrypt\$17\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  assert.is(await verifyPassword('correct horse', hash), true);
  assert.is(await verifyPassword('correct horse ', hash), false);
  assert.is(await verifyPassword('', hash), false);
});

users('the same password hashes differently each time', async () => {
  assert.is.not(await hashPassword('x'), await hashPassword('x'));
});

users('a composed and a decomposed letter are the same password', async () => {
  assert.is(await verifyPassword('cafe\u0301', await hashPassword('caf\u00e9')), true);
});

users('a stored text of another form verifies nothing', async () => {
  for (const stored of ['', 'plain', 'scrypt$17$8$1$$', '$2b$10$abcdefghijklmnopqrstuv'])
    assert.is(await verifyPassword('', stored), false, stored);
});

users.run();
