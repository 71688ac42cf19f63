import { createSecretKey } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sessionCookies } from '#server/auth/session-cookie';
import { withPasswordTurn } from '#server/routes/people/password';

const passwords = suite('server/routes/people/password');

const sessions = sessionCookies({
  isHttps: false,
  key: createSecretKey(Buffer.from('a key of the tests')),
});
const done: string[] = [];
passwords.before.each(() => void done.splice(0));

function check(address: string, email: string, cookie?: string): Promise<string> {
  const request = { headers: cookie === undefined ? {} : { cookie } } as IncomingMessage;
  return withPasswordTurn(
    { request, auth: { sessions }, addressOf: () => address },
    email,
    async () => {
      await delay(2);
      done.push(`${address} ${email}`);
      return 'checked';
    },
  ).catch(({ code }: { code: string }) => code);
}

passwords(
  'of addresses that guess, each has a few passwords checked in turn with the others; more are refused at once',
  async () => {
    const guesses = Array.from({ length: 144 }, (_, n) =>
      check(`192.0.2.${n % 12}`, 'owner@example.com'),
    );
    const right = check('198.51.100.1', 'owner@example.com');
    const early = await Promise.race([...guesses.slice(60), delay(1).then(() => 'late')]);
    assert.is(early, 'too_many_passwords');
    assert.is(await right, 'checked');
    assert.ok(done.length <= 15, `${done.length} before the other address`);
    const answers = await Promise.all(guesses);
    assert.is(answers.filter((it) => it === 'checked').length, 49);
  },
);

passwords(
  'a browser that has signed in before comes first, with its own account only',
  async () => {
    const cookie = (
      sessions.writeDevice({ headers: {} } as IncomingMessage, 'Owner@example.com').split(';')[0] ??
      ''
    ).trim();
    assert.match(cookie, /^gateway_device=[\w-]{43}$/);
    const guesses = Array.from({ length: 40 }, (_, n) =>
      check(`192.0.2.${n}`, 'owner@example.com'),
    );
    const [known, foreign] = [
      check('198.51.100.1', 'owner@example.com', `a=b; ${cookie}`),
      check('198.51.100.2', 'another@example.com', cookie),
    ];
    await Promise.all([...guesses, known, foreign]);
    assert.is(done.indexOf('198.51.100.1 owner@example.com'), 1);
    assert.is(done.indexOf('198.51.100.2 another@example.com'), 41);
  },
);

passwords('work that fails gives its turn on', async () => {
  const call = {
    request: { headers: {} } as IncomingMessage,
    auth: { sessions },
    addressOf: () => '192.0.2.1',
  };
  const failed = withPasswordTurn(call, 'a@example.com', () => Promise.reject(new Error('away')));
  const next = check('192.0.2.1', 'a@example.com');
  await failed.catch(({ message }: Error) => assert.is(message, 'away'));
  assert.is(await next, 'checked');
});

passwords.run();
