import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { generatePassword, hashPassword, verifyPassword } from '#store/config/passwords';

const passwords = suite('store/config/passwords');

passwords('a generated password is long and new each time', () => {
  const some = Array.from({ length: 100 }, generatePassword);
  assert.is(new Set(some).size, 100);
  for (const one of some) assert.match(one, /^[A-Za-z0-9_-]{24}$/);
});

passwords('a password verifies against its hash, another does not', async () => {
  const hash = await hashPassword('correct horse');
  assert.match(hash, /^scrypt\$17\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  assert.is(await verifyPassword('correct horse', hash), true);
  assert.is(await verifyPassword('correct horse ', hash), false);
  assert.is(await verifyPassword('', hash), false);
});

passwords('the same password hashes differently each time', async () => {
  assert.is.not(await hashPassword('x'), await hashPassword('x'));
});

passwords('a composed and a decomposed letter are the same password', async () => {
  assert.is(await verifyPassword('cafe\u0301', await hashPassword('caf\u00e9')), true);
});

passwords('a stored text of another form verifies nothing', async () => {
  for (const stored of ['', 'plain', 'scrypt$17$8$1$$', '$2b$10$abcdefghijklmnopqrstuv'])
    assert.is(await verifyPassword('', stored), false, stored);
});

passwords.run();
