// deadline: 180 s, long
import crypto from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { gateway, runGateway, type GatewayProcess } from '../support/gateway.js';
import { freePort } from '../support/ports.js';
import { production, type Created, type Production } from '../support/production.js';
import { smtp, type ReceivedMail, type Smtp } from '../support/smtp.js';

const notifications = suite('e2e/notifications');

const key = crypto.randomBytes(32).toString('base64');
let made: Production;
let gone: Endpoint;
notifications.before(async () => {
  [made, gone] = await Promise.all([
    production({ agents: 0, settings: { encryption_key: key } }),
    endpoint({ answer: { status: 410 } }),
  ]);
});
notifications.after(async () => {
  await made.close();
  await gone.close();
});

const config = () => ({
  encryption_key: key,
  database: made.database.connection,
  kv: made.kv.connection,
  server: { http: { bind: '127.0.0.1' } },
  delivery: { allowed_networks: ['127.0.0.0/8'] },
  source: { allowed_networks: ['127.0.0.0/8'] },
});

async function agents(
  count: number,
  flags: readonly string[],
  test: () => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const started: GatewayProcess[] = [];
  try {
    for (let k = 0; k < count; k++) {
      const port = await freePort();
      const agent = gateway(['agent', '--port', String(port), ...flags], { config: config(), env });
      started.push(agent);
      await agent.healthy(port);
    }
    await test();
  } finally {
    await Promise.all(started.map((agent) => agent.terminate()));
  }
}

/** Creates an endpoint that answers 410, sends it an event, and waits for the email. */
async function disable(name: string, server: Smtp): Promise<ReceivedMail> {
  const { uid } = await made.api<Created>('POST', '/endpoints', { name, url: gone.url });
  const before = server.mails.length;
  await made.api('POST', '/events', { event_type: 'a', endpoint_id: uid, data: { n: 1 } });
  return (await server.received(before + 1))[before]!;
}

const subject = (name: string) => `[gateway] Endpoint ${name} of project production is disabled`;

notifications(
  'two agents tell once of an endpoint that is gone, through the server, login and addresses of their flags',
  async () => {
    const server = await smtp({ login: { user: 'gateway', password: 'hunter2' } });
    const flags = [
      ...[
        '--smtp-url',
        'smtp://localhost',
        '--smtp-port',
        String(server.port),
        '--smtp-username',
        'gateway',
        '--smtp-password',
        'hunter2',
      ],
      ...['--smtp-from', 'gateway@example.com', '--smtp-reply-to', 'ops@example.org'],
    ];
    await agents(
      2,
      flags,
      async () => {
        const mail = await disable('both', server);
        assert.equal(
          [mail.from, mail.to, mail.user, mail.secure],
          ['gateway@example.com', ['ops@example.com'], 'gateway', true],
        );
        assert.equal(
          [mail.headers['subject'], mail.headers['reply-to']],
          [subject('both'), 'ops@example.org'],
        );
        // A duplicate of the first email would have arrived before the second.
        await disable('next', server);
        assert.equal(
          server.mails.map(({ headers }) => headers['subject']),
          [subject('both'), subject('next')],
        );
      },
      { GATEWAY_SMTP_CA_FILE: server.ca },
    );
    await server.close();
  },
);

const login = { user: 'gateway', password: 'hunter2' };
const loginFlags = [
  '--smtp-username',
  login.user,
  '--smtp-password',
  login.password,
  '--smtp-from',
  'gateway@example.com',
];

notifications(
  '--smtp-ssl speaks TLS from the first byte, and logs in over it; without the flag the server does not answer',
  async () => {
    const server = await smtp({ tls: 'implicit', login });
    const place = ['--smtp-url', '127.0.0.1', '--smtp-port', String(server.port)];
    const test = async () => {
      const { secure, user } = await disable('over TLS', server);
      assert.equal([secure, user], [true, login.user]);
    };
    await agents(1, [...place, '--smtp-ssl', ...loginFlags], test, {
      GATEWAY_SMTP_CA_FILE: server.ca,
    });
    assert.is((await doctor([...place, ...loginFlags], server)).state, 'failed');
    await server.close();
  },
);

notifications(
  'a password that the server refuses is named with its settings, and never shown',
  async () => {
    const server = await smtp({ tls: 'implicit', login });
    const place = ['--smtp-url', '127.0.0.1', '--smtp-port', String(server.port), '--smtp-ssl'];
    const right = await doctor([...place, ...loginFlags], server);
    assert.equal(
      [right.state, right.sentence.includes('lets gateway in')],
      ['ok', true],
      right.sentence,
    );
    const wrong = await doctor(
      [...place, ...loginFlags.map((it) => it.replace('hunter2', 'hunter3'))],
      server,
    );
    assert.is(wrong.state, 'failed');
    assert.match(`${wrong.sentence} ${wrong.fix}`, /gateway.*smtp\.password/);
    assert.not.match(wrong.printed, 'hunter');
    await server.close();
  },
);

interface Finding {
  readonly check: string;
  readonly state: string;
  readonly sentence: string;
  readonly fix?: string;
}

/** The doctor's finding about the mail server with these flags. */
async function doctor(
  flags: readonly string[],
  server: Smtp,
): Promise<Finding & { readonly printed: string }> {
  const env = { GATEWAY_SMTP_CA_FILE: server.ca };
  const { stdout, stderr } = await runGateway(['utils', 'doctor', '--json', ...flags], {
    config: config(),
    env,
  });
  const finding = (JSON.parse(stdout) as Finding[]).find(({ check }) => check === 'smtp')!;
  return { ...finding, printed: stdout + stderr };
}

notifications(
  '--smtp-provider gives the server; one that is not known refuses the start',
  async () => {
    const server = await smtp({ tls: 'none', login });
    // Maildev means localhost without TLS.
    const flags = ['--smtp-provider', 'Maildev', '--smtp-port', String(server.port), ...loginFlags];
    await agents(1, flags, async () => {
      const { secure, user } = await disable('by provider', server);
      assert.equal([secure, user], [false, login.user]);
    });
    await server.close();
    const { code, stderr } = await runGateway(
      ['agent', '--smtp-provider', 'SendGird', '--smtp-from', 'gateway@example.com'],
      {
        config: config(),
      },
    );
    assert.is(code, 1);
    assert.match(
      stderr,
      'smtp.provider names "SendGird", which is not a known provider; did you mean SendGrid?',
    );
  },
);

notifications.run();
