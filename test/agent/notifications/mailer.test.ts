import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createMailer, mailsAreSent, type Mailer } from '#agent/notifications/mailer';
import { resolveConfig } from '#core/config/config';
import type { Config } from '#core/config/settings';
import { type GatewayError, isGatewayError, type ErrorCode } from '#core/errors/errors';
import { freePort } from '../../support/ports.js';
import { smtp, type Smtp } from '../../support/smtp.js';
import { tempFolder } from '../../support/start/keep.js';
import { within } from '../../support/until.js';

const mail = suite('agent/notifications/mailer');

const MAIL = { to: ['admin@example.com'], subject: 'Grüße', text: 'Ein Endpunkt schläft.\n' };

function configOf(settings: Readonly<Record<string, unknown>>): Config {
  return resolveConfig({ env: {}, file: { smtp: { from: 'gateway@example.com', ...settings } } })
    .config;
}

function mailerOf(settings: Readonly<Record<string, unknown>>): Mailer {
  return createMailer(configOf(settings));
}

async function refusal(work: () => unknown, code: ErrorCode): Promise<GatewayError> {
  try {
    await within(Promise.resolve().then(work), 30_000, 'the refusal');
  } catch (error) {
    assert.ok(isGatewayError(error, code), `expected ${code}: ${String(error)}`);
    return error;
  }
  throw new Error(`nothing was refused; expected ${code}`);
}

async function on(
  options: Parameters<typeof smtp>[0],
  test: (server: Smtp) => Promise<void>,
): Promise<void> {
  const server = await smtp(options);
  try {
    await test(server);
  } finally {
    await server.close();
  }
}

mail('an email is sent over STARTTLS, with a login, from the address of the settings', () =>
  on({ login: { user: 'gateway', password: 'hunter2' } }, async (server) => {
    const mailer = mailerOf({
      url: `127.0.0.1:${server.port}`,
      username: 'gateway',
      password: 'hunter2',
      reply_to: 'ops@example.com',
      ca_file: server.ca,
    });
    assert.is(mailer.server, `127.0.0.1:${server.port}`);
    await mailer.verify();
    assert.equal(await mailer.send({ ...MAIL, id: 'n-1' }), {
      accepted: 1,
      refused: [],
      deferred: [],
      error: undefined,
    });
    const [sent] = server.mails;
    assert.equal(
      [sent?.from, sent?.to, sent?.secure, sent?.user, sent?.text],
      ['gateway@example.com', ['admin@example.com'], true, 'gateway', MAIL.text],
    );
    assert.equal(
      ['reply-to', 'message-id', 'auto-submitted', 'to'].map((name) => sent?.headers[name]),
      ['ops@example.com', '<n-1@example.com>', 'auto-generated', 'admin@example.com'],
    );
  }),
);

mail(
  'smtps:// and smtp.ssl speak TLS from the first byte; smtp.port wins over the port of smtp.url',
  () =>
    on({ tls: 'implicit' }, async (server) => {
      await mailerOf({ url: `smtps://localhost:${server.port}`, ca_file: server.ca }).send(MAIL);
      await mailerOf({
        url: 'smtp://localhost:1',
        port: server.port,
        ssl: true,
        ca_file: server.ca,
      }).send(MAIL);
      assert.equal(
        server.mails.map(({ secure }) => secure),
        [true, true],
      );
    }),
);

mail('without STARTTLS on offer the email goes unencrypted', () =>
  on({ tls: 'none' }, async (server) => {
    await mailerOf({ url: `smtp://127.0.0.1:${server.port}` }).send(MAIL);
    assert.is(server.mails[0]?.secure, false);
  }),
);

mail('a provider gives server and ways of its own', () =>
  on({}, async (server) => {
    // Maildev means localhost without TLS, although this server offers it.
    await mailerOf({ provider: 'maildev', port: server.port }).send(MAIL);
    assert.is(server.mails[0]?.secure, false);
    assert.is(mailerOf({ provider: 'SendGrid' }).server, 'smtp.sendgrid.net:587');
    assert.is(mailerOf({ provider: 'Gmail' }).server, 'smtp.gmail.com:465');
    assert.is(
      mailerOf({ provider: 'Gmail', url: 'mail.example.com' }).server,
      'mail.example.com:587',
    );
  }),
);

mail('the port follows from TLS when nothing names one', () => {
  assert.is(mailerOf({ url: 'mail.example.com' }).server, 'mail.example.com:587');
  assert.is(mailerOf({ url: 'mail.example.com', ssl: true }).server, 'mail.example.com:465');
  assert.is(mailerOf({ url: 'smtps://mail.example.com' }).server, 'mail.example.com:465');
  assert.is(mailerOf({ url: 'mail.example.com:80' }).server, 'mail.example.com:80');
});

mail('settings that cannot be are refused with what is wrong and what to set', async () => {
  const unknown = await refusal(() => mailerOf({ provider: 'SendGird' }), 'smtp_setting');
  assert.is(
    unknown.message,
    'smtp.provider names "SendGird", which is not a known provider; did you mean SendGrid?',
  );
  assert.match(unknown.fix, /--smtp-provider .*Mailgun, .*Postmark, /);
  for (const [url, sentence] of [
    ['https://mail.example.com', 'smtp.url has the scheme https, which is not smtp or smtps'],
    ['mail.example.com/path', 'smtp.url has more than a host and a port'],
    ['mail example', 'smtp.url is neither a host nor a URL'],
  ] as const)
    assert.is((await refusal(() => mailerOf({ url }), 'smtp_setting')).message, sentence);
  const away = path.join(tempFolder('mail'), 'ca.pem');
  assert.match(
    (await refusal(() => mailerOf({ url: 'a', ca_file: away }), 'tls_file')).message,
    /ca.pem.*there is no such file/,
  );
  fs.writeFileSync(away, 'no certificate');
  const { message, fix } = await refusal(() => mailerOf({ url: 'a', ca_file: away }), 'tls_file');
  assert.match(message, 'holds no PEM certificate');
  assert.match(fix, 'smtp.ca_file');
  assert.match(
    (await refusal(() => createMailer(resolveConfig({ env: {}, file: {} }).config), 'smtp_setting'))
      .message,
    'smtp.from is not set',
  );
  assert.match((await refusal(() => mailerOf({}), 'smtp_setting')).message, 'smtp.url is not set');
});

mail('emails are sent when the settings name a server and a sender', () => {
  assert.is(mailsAreSent(configOf({ url: 'a' })), true);
  assert.is(mailsAreSent(configOf({ provider: 'SendGrid' })), true);
  assert.is(mailsAreSent(configOf({})), false);
  assert.is(mailsAreSent(resolveConfig({ env: {}, file: { smtp: { url: 'a' } } }).config), false);
});

mail('a server that is away is named with its settings', async () => {
  const port = await freePort();
  const error = await refusal(
    () => mailerOf({ url: `127.0.0.1:${port}` }).verify(),
    'smtp_unreachable',
  );
  assert.is(
    error.message,
    `the SMTP server at 127.0.0.1:${port} cannot be reached: nothing listens there`,
  );
  assert.match(error.fix, '--smtp-url');
  const nowhere = await refusal(
    () => mailerOf({ url: 'smtp.invalid' }).verify(),
    'smtp_unreachable',
  );
  assert.match(nowhere.message, /the host name could not be resolved|no such host/);
});

mail('a certificate that is not trusted is refused, over STARTTLS and over TLS', async () => {
  await on({}, async (server) => {
    const error = await refusal(
      () => mailerOf({ url: `127.0.0.1:${server.port}` }).send(MAIL),
      'smtp_tls',
    );
    assert.match(
      error.message,
      /TLS with the SMTP server at 127.0.0.1:\d+ failed: its certificate is signed by an unknown authority, or it does not send the intermediate certificate that signed it$/,
    );
    assert.match(error.fix, 'smtp.ca_file');
    assert.is(server.mails.length, 0);
  });
  await on({ tls: 'implicit' }, async (server) => {
    const error = await refusal(
      () => mailerOf({ url: `smtps://127.0.0.1:${server.port}` }).verify(),
      'smtp_tls',
    );
    assert.match(error.message, 'its certificate is signed by an unknown authority');
  });
  await on({}, async (server) => {
    const error = await refusal(
      () => mailerOf({ url: `smtps://127.0.0.1:${server.port}`, ca_file: server.ca }).verify(),
      'smtp_tls',
    );
    assert.match(error.message, 'it does not speak TLS there');
  });
});

mail('a login that is refused is told without the password', () =>
  on({ login: { user: 'gateway', password: 'right' } }, async (server) => {
    const settings = { url: `127.0.0.1:${server.port}`, ca_file: server.ca };
    const error = await refusal(
      () => mailerOf({ ...settings, username: 'gateway', password: 'hunter2' }).verify(),
      'smtp_login',
    );
    assert.match(error.message, /refused the login of gateway: 535 .*Invalid username or password/);
    assert.not.match(`${error.message} ${error.fix}`, 'hunter2');
    assert.match(error.fix, '--smtp-password');
    const without = await refusal(() => mailerOf(settings).send(MAIL), 'smtp_login');
    assert.match(without.message, 'refused the connection without a login: 530');
  }),
);

mail(
  'a relay with a self-made certificate is used with its certificate, without verification or without TLS',
  async () => {
    const folder = tempFolder('relay');
    const [key, certificate] = ['key.pem', 'cert.pem'].map((name) => path.join(folder, name));
    const pairFor = (subject: string, ...more: readonly string[]) =>
      execFileSync(
        'openssl',
        ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', '-subj', subject].concat(
          ['-keyout', key!, '-out', certificate!],
          more,
        ),
        { stdio: 'ignore' },
      );
    const pair = { key: key!, certificate: certificate! };
    pairFor('/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1');
    await on({ pair }, async (server) => {
      const url = `127.0.0.1:${server.port}`;
      const { message, fix } = await refusal(() => mailerOf({ url }).verify(), 'smtp_tls');
      assert.match(message, /self-signed|unknown authority/);
      assert.match(fix, /smtp\.ca_file .*smtp\.insecure_skip_verify/);
      await mailerOf({ url, ca_file: certificate }).send(MAIL);
      await mailerOf({ url, starttls: 'off' }).send(MAIL);
      assert.equal(
        server.mails.map(({ secure }) => secure),
        [true, false],
      );
    });
    pairFor('/CN=relay.localdomain');
    for (const tls of ['starttls', 'implicit'] as const)
      await on({ pair, tls }, async (server) => {
        const settings = { url: `127.0.0.1:${server.port}`, ssl: tls === 'implicit' };
        await refusal(() => mailerOf({ ...settings, ca_file: certificate }).verify(), 'smtp_tls');
        await mailerOf({ ...settings, insecure_skip_verify: true }).send(MAIL);
        assert.is(server.mails[0]?.secure, true);
      });
  },
);

mail('a relay that refuses STARTTLS is used with smtp.starttls alone', () =>
  on({ starttls: 454 }, async (server) => {
    const url = `127.0.0.1:${server.port}`;
    const { message, fix } = await refusal(() => mailerOf({ url }).send(MAIL), 'smtp_tls');
    assert.match(message, /: 454 .*TLS not available due to local problem$/);
    assert.match(fix, /smtp\.starttls \(GATEWAY_SMTP_STARTTLS\).*opportunistic/);
    assert.not.match(fix, /ca_file|password/);
    await refusal(() => mailerOf({ url, starttls: 'required' }).send(MAIL), 'smtp_tls');
    for (const starttls of ['opportunistic', 'off']) await mailerOf({ url, starttls }).send(MAIL);
    assert.equal(
      server.mails.map(({ secure }) => secure),
      [false, false],
    );
  }),
);

mail('smtp.starttls demands TLS or uses it', async () => {
  await on({ tls: 'none' }, async (server) => {
    const url = `127.0.0.1:${server.port}`;
    await refusal(() => mailerOf({ url, starttls: 'required' }).send(MAIL), 'smtp_tls');
    await mailerOf({ url, starttls: 'opportunistic' }).send(MAIL);
    // The setting wins over the provider, which has no TLS.
    const provided = { provider: 'maildev', port: server.port, starttls: 'required' };
    await refusal(() => mailerOf(provided).send(MAIL), 'smtp_tls');
  });
  await on({}, async (server) => {
    const settings = { url: `127.0.0.1:${server.port}`, ca_file: server.ca };
    for (const starttls of ['required', 'opportunistic'])
      await mailerOf({ ...settings, starttls }).send(MAIL);
    assert.equal(
      server.mails.map(({ secure }) => secure),
      [true, true],
    );
  });
});

mail('a sender and recipients that are refused are told apart', () =>
  on({ refuses: ['gateway@example.com', 'gone@example.com'] }, async (server) => {
    const settings = { url: `127.0.0.1:${server.port}`, ca_file: server.ca };
    const sender = await refusal(() => mailerOf(settings).send(MAIL), 'smtp_refused');
    assert.match(
      sender.message,
      /refused the sender gateway@example.com: 550 gateway@example.com is not wanted$/,
    );
    assert.match(sender.fix, '--smtp-from');
    const from = mailerOf({ ...settings, from: 'other@example.com' });
    assert.not.match(sender.fix, /login|password/);
    const nobody = await from.send({ ...MAIL, to: ['gone@EXAMPLE.com'] });
    assert.equal([nobody.accepted, nobody.refused], [0, ['gone@EXAMPLE.com']]);
    assert.match(nobody.error!.message, 'refused the recipient gone@example.com: 550');
    assert.match(nobody.error!.fix, /^correct the addresses of the users, or allow/);
    const one = await from.send({ ...MAIL, to: ['gone@example.com', 'here@example.com'] });
    assert.equal([one.accepted, one.refused, one.deferred], [1, ['gone@example.com'], []]);
    assert.equal(server.mails[0]?.to, ['here@example.com']);
  }),
);

mail('a temporary refusal asks to wait', () =>
  on({ recipient: (_, ofEmail) => (ofEmail < 1 ? undefined : 452) }, async (server) => {
    const mailer = mailerOf({ url: `127.0.0.1:${server.port}`, ca_file: server.ca });
    const { accepted, deferred, error } = await mailer.send({ ...MAIL, to: ['a@b.c', 'd@b.c'] });
    assert.equal([accepted, deferred], [1, ['d@b.c']]);
    assert.match(
      error!.fix,
      /^wait, because the answer is temporary; if it lasts, correct the addr/,
    );
  }),
);

mail.run();
