import { createSecretKey, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { loginGuard, type Account } from '#server/auth/login-guard';
import { keptMetrics } from '../../support/kept-metrics.js';

const guarding = suite('server/auth/login-guard');

const request = { headers: {}, socket: {} } as IncomingMessage;

/**
 * Sends concurrent attempts from an address. Returns how many were verified in total and at the
 * same time, and their outcomes.
 */
function scene() {
  let address = '192.0.2.1';
  const guard = loginGuard({ auth: { max_failures: 10 } } as Parameters<typeof loginGuard>[0], {
    key: createSecretKey(randomBytes(32)),
    kv: undefined,
    meter: keptMetrics().meter,
    log: silentLog,
    addressOf: () => address,
  });
  return async (
    attempts: readonly (readonly [kind: Account['kind'], credential: string, isRight: boolean])[],
    from = '192.0.2.1',
  ) => {
    let verified = 0;
    const outcomes = await Promise.all(
      attempts.map(([kind, credential, isRight]) => {
        address = from;
        const verify = async () => {
          verified++;
          await delay(2);
          return isRight ? 'right' : undefined;
        };
        return guard.check(request, { kind, name: 'a', credential }, verify).then(
          (found) => found ?? 'wrong',
          ({ code }: { code: string }) => code,
        );
      }),
    );
    return {
      verified,
      count: (outcome: string) => outcomes.filter((it) => it === outcome).length,
      last: outcomes.at(-1),
    };
  };
}

const KINDS = [
  'basic',
  'bearer',
  'key',
  'session',
  'password',
  'invitation',
  'oidc',
  'source',
  'signature',
] as const;
const wrong = (kind: Account['kind'], count: number) =>
  Array.from({ length: count }, (_, n) => [kind, `wrong ${n}`, false] as const);

for (const kind of KINDS)
  guarding(
    `${kind}: of guesses at once no more are verified than may fail, and the right one at their end is not`,
    async () => {
      const attempt = scene();
      const { verified, count, last } = await attempt([...wrong(kind, 200), [kind, 'right', true]]);
      assert.equal(
        [verified, count('wrong'), count('too_many_logins'), last],
        [10, 10, 191, 'too_many_logins'],
      );
    },
  );

guarding(
  'right credentials at once are all let in, those of one client and those of many behind one address',
  async () => {
    const attempt = scene();
    const { count } = await attempt(
      Array.from({ length: 300 }, (_, n) => ['key', `key ${n % 60}`, true] as const),
    );
    assert.is(count('right'), 300);
  },
);

guarding(
  'guesses at a source lock nobody out of anything else, and a credential that was right there goes on',
  async () => {
    const attempt = scene();
    await attempt([['source', 'of the provider', true]]);
    const { verified } = await attempt(wrong('source', 100));
    assert.is(verified, 10);
    const later = await attempt([
      ['source', 'of the provider', true],
      ['password', 'of a person', true],
    ]);
    assert.is(later.count('right'), 2);
    const { last } = await attempt([['source', 'right as well', true]], '192.0.2.2');
    assert.is(last, 'right');
  },
);

guarding(
  'an address whose signatures were right has more failures than others, a right one between them goes on, and then no more are verified',
  async () => {
    const attempt = scene();
    await attempt([['signature', 'signed', true]]);
    const few = await attempt([
      ...wrong('signature', 50).map(([kind]) => [kind, 'signed', false] as const),
      ['signature', 'signed', true],
    ]);
    assert.equal([few.count('wrong'), few.last], [50, 'right']);
    const many = Array.from({ length: 300 }, () => ['signature', 'signed', false] as const);
    const { verified } = await attempt([...many, ['signature', 'signed', true]]);
    assert.is(verified, 50);
    assert.is((await attempt([['signature', 'signed', true]])).last, 'too_many_logins');
    assert.is((await attempt([['signature', 'signed', true]], '192.0.2.2')).last, 'right');
  },
);

guarding.run();
