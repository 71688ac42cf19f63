import { createHash } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { maskOfApiKey, matchesApiKey, newApiKey } from '#core/crypto/api-keys';

const apikey = suite('core/crypto/api-keys');

apikey('a key has a public part, a secret part of 256 bits, and is stored as a hash', () => {
  const { mask, key, hash } = newApiKey();
  assert.match(key, /^gw_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  assert.is(maskOfApiKey(key), mask);
  assert.equal(hash, createHash('sha256').update(key).digest());
});

apikey('a key matches its own hash only', () => {
  const one = newApiKey();
  const two = newApiKey();
  assert.ok(matchesApiKey(one.key, one.hash));
  assert.not.ok(matchesApiKey(two.key, one.hash));
  assert.not.ok(
    matchesApiKey(`${one.key.slice(0, -1)}${one.key.endsWith('A') ? 'B' : 'A'}`, one.hash),
  );
  assert.not.ok(matchesApiKey(one.key, one.hash.subarray(1)));
});

apikey('what does not look like a key has no mask', () => {
  const { key } = newApiKey();
  for (const text of ['', 'gw_', `${key}x`, key.slice(1), key.toUpperCase(), ` ${key}`])
    assert.is(maskOfApiKey(text), undefined, text);
});

apikey.run();
