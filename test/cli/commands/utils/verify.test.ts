import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { plainSignature, signingKey, standardSignature } from '#agent/destinations/http/signature';
import { runGateway } from '../../../support/gateway.js';

const verify = suite('cli/commands/utils/verify');

const folder = mkdtempSync(join(tmpdir(), 'gateway-verify-'));
verify.after(() => rmSync(folder, { recursive: true, force: true }));

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const other = `whsec_${randomBytes(32).toString('base64')}`;
const id = '019ab3c4-5d6e-8f70-9123-456789abcdef';
const body = '{"amount":120.5,"city":"Zürich"}';

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

const secretFile = file('secret.txt', `${secret}\n`);
const bodyFile = file('body.json', body);

/** The headers of a delivery, signed as agents do. */
function headersFile(
  name: string,
  { keys = [secret], at = new Date(), signed = body } = {},
): string {
  const timestamp = Math.floor(at.getTime() / 1000);
  const signingKeys = keys.map(signingKey);
  const lines = [
    'POST /webhooks HTTP/1.1',
    `Webhook-Id: ${id}`,
    `webhook-timestamp: ${timestamp}`,
    `webhook-signature: ${standardSignature(signingKeys, id, timestamp, Buffer.from(signed))}`,
    `X-Gateway-Signature: ${plainSignature(signingKeys[0]!, Buffer.from(signed), { header: '', hash: 'SHA512', encoding: 'base64' })}`,
  ];
  return file(name, lines.join('\r\n'));
}

const run = (...args: string[]) => runGateway(['utils', 'verify', ...args]);

verify('a delivery of an agent is genuine, in both forms of its signature', async () => {
  const { code, stdout } = await run(
    '--secret-file',
    secretFile,
    '--header-file',
    headersFile('good.txt'),
    '--body',
    bodyFile,
  );
  assert.is(code, 0);
  assert.is(stdout.match(/^matches/gm)?.length, 2, stdout);
  assert.match(stdout, 'The delivery is authentic.');
});

verify(
  'what the Standard Webhooks library signs is genuine, and what it refuses is refused',
  async () => {
    const now = new Date();
    const timestamp = String(Math.floor(now.getTime() / 1000));
    const signature = new Webhook(secret).sign(id, now, body);
    const given = [
      '--id',
      id,
      '--timestamp',
      timestamp,
      '--signature',
      `v1,AAAA ${signature}`,
      '--body',
      bodyFile,
    ];
    const { code, stdout } = await run('--secret', secret, ...given, '--json');
    assert.is(code, 0, stdout);
    const { signatures } = JSON.parse(stdout) as {
      signatures: { matches: boolean; signature: string }[];
    };
    assert.equal(
      signatures.map(({ matches }) => matches),
      [false, true],
    );
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    };
    assert.throws(() => new Webhook(other).verify(body, headers));
    const refused = await run('--secret', other, ...given);
    assert.is(refused.code, 1);
    assert.match(
      refused.stdout,
      'it was made with another secret, or for another id, timestamp or body.',
    );
  },
);

verify(
  'while secrets rotate the old one is good as well, and it is told which signature is its own',
  async () => {
    const headers = headersFile('rotated.txt', { keys: [other, secret] });
    const { code, stdout } = await run(
      '--secret-file',
      secretFile,
      '--header-file',
      headers,
      '--body',
      bodyFile,
      '--json',
    );
    assert.is(code, 0);
    const { signatures } = JSON.parse(stdout) as {
      signatures: { scheme: string; matches: boolean }[];
    };
    assert.equal(
      signatures.map(({ matches }) => matches),
      [false, true, false],
    );
  },
);

verify(
  'an old timestamp is refused though the signature matches, and a larger tolerance takes it',
  async () => {
    const headers = headersFile('old.txt', { at: new Date(Date.now() - 7_200_000) });
    const given = ['--secret-file', secretFile, '--header-file', headers, '--body', bodyFile];
    const { code, stdout } = await run(...given);
    assert.is(code, 1);
    assert.match(stdout, /^matches/m);
    assert.match(stdout, /the timestamp is 2h\S* old, and a receiver allows 5m/);
    assert.is((await run(...given, '--tolerance', '1d')).code, 0);
  },
);

verify('a secret of another form is told, and never printed', async () => {
  const { code, stdout, stderr } = await run(
    '--secret',
    'hunter22',
    '--header-file',
    headersFile('form.txt'),
    '--body',
    bodyFile,
  );
  assert.is(code, 1);
  assert.match(stdout, /note {5}the secret is not whsec_ and 24 to 64 bytes in base64/);
  assert.not.match(stdout + stderr, 'hunter22');
});

verify('the secret can come from standard input, so that no shell remembers it', () => {
  const bin = fileURLToPath(new URL('../../../../packages/cli/bin/gateway.js', import.meta.url));
  const args = [
    'utils',
    'verify',
    '--secret-file',
    '-',
    '--header-file',
    headersFile('stdin.txt'),
    '--body',
    bodyFile,
  ];
  const { status, stdout } = spawnSync(process.execPath, [bin, ...args], {
    input: secret,
    encoding: 'utf8',
    cwd: folder,
  });
  assert.is(status, 0, stdout);
});

verify('what is missing or given twice is wrong use', async () => {
  const headers = headersFile('use.txt');
  const cases = [
    [['--header-file', headers], 'the secret of the endpoint is missing'],
    [['--secret', 'a', '--secret-file', secretFile], '--secret and --secret-file were both given'],
    [
      ['--secret-file', '-', '--header-file', headers],
      '--secret-file and --body cannot both be read from standard input',
    ],
    [['--secret-file', secretFile], 'there is no signature to verify'],
    [
      ['--secret-file', secretFile, '--signature', 'v1,AAAA', '--id', id],
      'webhook-timestamp is missing',
    ],
    [
      ['--secret-file', secretFile, '--header-file', bodyFile],
      'has neither webhook-signature nor X-Gateway-Signature',
    ],
    [
      ['--secret-file', join(folder, 'none'), '--header-file', headers, '--body', bodyFile],
      'cannot be read: there is no such file or folder',
    ],
    [
      ['--secret-file', secretFile, '--header-file', headers, '--tolerance', 'soon'],
      '--tolerance must be a duration',
    ],
  ] as const;
  const told = await Promise.all(cases.map(([args]) => run(...args)));
  for (const [at, { code, stderr }] of told.entries()) {
    assert.is(code, 2, stderr);
    assert.match(stderr, cases[at]![1]);
  }
});

verify.run();
