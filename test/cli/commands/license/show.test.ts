import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../../support/gateway.js';
import { DAY_MS, licensing } from '../../../support/licensing.js';

const show = suite('cli/commands/license/show');
const { publicKey, licence } = licensing();

async function shown(token: string, args: readonly string[] = [], key = publicKey) {
  return runGateway(['license', 'show', ...args], {
    config: { license_key: token, license_public_key: key },
  });
}

show('without a token it is the community licence with what that entitles to', async () => {
  const { code, stdout, stderr } = await runGateway(['license', 'show']);
  assert.is(code, 0, stderr);
  assert.is(stdout, 'kind          community\nentitlements  errtrack, otel, pullmetrics\n');
});

show(
  'a licence is shown with what it entitles to, what of that is unknown, and in how many days it expires',
  async () => {
    const token = licence({
      entitlements: ['apm', 'teleportation'],
      expiresInMs: 30 * DAY_MS + 60_000,
    });
    const { code, stdout, stderr } = await shown(token);
    assert.is(code, 0, stderr);
    assert.match(
      stdout,
      /^kind +licensed\norganisation +Acme\nentitlements +apm\nunknown +teleportation \(no installed plugin declares it/,
    );
    assert.match(stdout, /^expires .*, in 30 days$/m);
    const record = JSON.parse((await shown(token, ['--json'])).stdout) as Record<string, unknown>;
    assert.equal(
      [
        record['kind'],
        record['entitlements'],
        record['unknown_entitlements'],
        record['days_left'],
        record['problem'],
      ],
      ['licensed', ['apm', 'teleportation'], ['teleportation'], 30, null],
    );
  },
);

for (const [what, token, key, sentence, fix] of [
  [
    'an expired token',
    () => licence({ expiresInMs: -DAY_MS }),
    publicKey,
    /the licence of Acme expired at/,
    /renew it/,
  ],
  [
    'a token of the future',
    () => licence({ issuedInMs: DAY_MS }),
    publicKey,
    /but the clock of this machine says 20/,
    /correct the clock/,
  ],
  [
    'a damaged token',
    () => licence().slice(0, -5),
    publicKey,
    /it is damaged/,
    /as you received it/,
  ],
  [
    'a forged token',
    () => forged(licence()),
    publicKey,
    /its signature is wrong/,
    /as you received it/,
  ],
  [
    'a token of another key',
    () => licence(),
    licensing().publicKey,
    /is signed with the key [0-9a-f]{8}, and/,
    /GATEWAY_LICENSE_PUBLIC_KEY/,
  ],
  [
    'a public key that is none',
    () => licence(),
    'abc',
    /is not an Ed25519 public key/,
    /GATEWAY_LICENSE_PUBLIC_KEY/,
  ],
] as const) {
  show(
    `${what} is told with its fix, the community licence is what applies, and the status is 1`,
    async () => {
      const { code, stdout } = await shown(token(), [], key);
      assert.is(code, 1);
      assert.match(stdout, /^kind +community\n/);
      assert.match(stdout, sentence);
      assert.match(stdout, fix);
      const { kind, problem } = JSON.parse((await shown(token(), ['--json'], key)).stdout) as {
        kind: string;
        problem: { sentence: string };
      };
      assert.is(kind, 'community');
      assert.match(problem.sentence, sentence);
    },
  );
}

show.run();

function forged(token: string): string {
  const [body = '', signature = ''] = token.split('.');
  const fields = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
  return `${Buffer.from(JSON.stringify({ ...fields, entitlements: ['apm', 'all'] })).toString('base64url')}.${signature}`;
}
