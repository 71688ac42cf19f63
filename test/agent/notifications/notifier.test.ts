import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { raiseNotifications } from '#store/config/notifications';
import { findPasswordReset, requestPasswordReset } from '#store/people/password-resets';
import type { AttemptRecord } from '#store/deliveries/delivery-attempts';
import { listUsage } from '#store/counts/usage';
import { Failures } from '#agent/notifications/failures';
import { Notifier } from '#agent/notifications/notifier';
import { Tallies } from '#agent/notifications/tallies';
import { startAgent } from '@gateway/agent';
import { PluginError } from '@gateway/plugin';
import { migratedDatabase } from '../../store/migrated.js';
import { endpoint as receiver, type Endpoint } from '../../support/endpoint.js';
import { freePort, loopback } from '../../support/ports.js';
import { smtp, type Smtp } from '../../support/smtp.js';
import { until, within } from '../../support/until.js';
import { Broker } from '../memory-source.js';
import { makeEndpoint, makeProject, makeSource, makeSubscription } from '../records.js';
import { agentConfig, keptLog, pluginsOf, runAgent, type Migrated } from '../running.js';

const notify = suite('agent/notifications/notifier');

interface Scene {
  readonly db: Migrated;
  readonly broker: Broker;
  readonly server: Smtp;
  readonly at: Endpoint;
  readonly projectId: string;
  readonly endpointId: string;
  /** Starts another agent, which sends through the SMTP server. */
  start(
    settings?: Readonly<Record<string, unknown>>,
  ): Promise<{ port: number; lines: ReturnType<typeof keptLog>['lines']; close(): Promise<void> }>;
  send(count: number): Promise<void>;
}

/**
 * Runs a test with an endpoint that is subscribed to everything and tried once, and a source that
 * reads the queue `q`.
 */
async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const [db, at, server] = await Promise.all([
    migratedDatabase(),
    receiver(),
    smtp({ tls: 'none' }),
  ]);
  const broker = new Broker();
  const started: { close(): Promise<void> }[] = [];
  let sent = 0;
  try {
    const projectId = await makeProject(db);
    const strategy = { type: 'linear', duration: 1, retry_count: 0 } as const;
    const { id: endpointId } = await makeEndpoint(db, projectId, {
      url: at.url,
      name: 'warehouse',
      strategy,
    });
    await makeSubscription(db, projectId, { endpointId });
    await makeSource(db, projectId, { queue: 'q' });
    const start: Scene['start'] = async (settings = {}) => {
      const { log, lines } = keptLog();
      const config = agentConfig(db.url, {
        smtp: { url: `127.0.0.1:${server.port}`, from: 'gateway@example.com' },
        notifications: { endpoint_failures: 3, source_seconds: 1, quiet_seconds: 0 },
        ...settings,
      });
      const running = await within(
        startAgent({ config, plugins: pluginsOf(broker.plugins()), log }),
        30_000,
        'the agent to start',
      );
      let closed: Promise<void> | undefined;
      const it = { port: running.port, lines, close: () => (closed ??= running.close()) };
      started.push(it);
      return it;
    };
    const send = async (count: number) => {
      for (let k = 0; k < count; k++)
        await broker.queue('q').send({ event_type: 'a', data: { secret: 'of-an-event' } });
      sent += count;
      await until(
        'the attempts',
        async () => (await db.rows('select from delivery_attempts')).length === sent,
      );
    };
    await within(
      test({ db, broker, server, at, projectId, endpointId, start, send }),
      75_000,
      'the test',
    );
  } finally {
    await Promise.all(started.map((it) => within(it.close(), 40_000, 'an agent to close')));
    await Promise.all([at.close(), server.close()]);
    await db.close();
  }
}

const adminOf = async (db: Migrated) =>
  (await db.rows<{ email: string }>('select email from users'))[0]!.email;
const subjects = ({ mails }: Smtp) => mails.map(({ headers }) => headers['subject']);

notify(
  'an endpoint that fails repeatedly is notified once, and again after it has recovered and fails again',
  () =>
    scene(async ({ db, server, at, endpointId, start, send }) => {
      await start();
      at.answer({ status: 500 });
      const failing = () =>
        server.mails.filter(({ headers }) => headers['subject']?.endsWith('is failing'));
      await send(5);
      const mail = await until('the email', () => failing()[0]);
      assert.equal([mail?.to, mail?.from], [[await adminOf(db)], 'gateway@example.com']);
      assert.is(mail.headers['subject'], '[gateway] Endpoint warehouse of project shop is failing');
      assert.match(mail?.text ?? '', `warehouse (${endpointId})`);
      assert.match(mail?.text ?? '', 'The endpoint answered 500.');
      assert.not.match(mail?.text ?? '', 'of-an-event');
      at.answer({ status: 200 });
      await send(1);
      at.answer({ status: 500 });
      await send(4);
      await until('the second email', () => failing().length === 2);
    }),
);

notify('deliveries without a retry left share an email per endpoint and hour', () =>
  scene(async ({ db, server, at, start, send }) => {
    await start({ notifications: { endpoint_failures: 100, quiet_seconds: 0 } });
    at.answer({ status: 500 });
    await send(1);
    const [mail] = await server.received(1);
    assert.is(
      mail?.headers['subject'],
      '[gateway] Deliveries to endpoint warehouse of project shop have failed for good',
    );
    const [delivery] = await db.rows<{ id: string }>('select id from event_deliveries');
    assert.match(mail?.text ?? '', `Deliveries:     1\nFirst delivery: ${delivery!.id}\n`);
    await send(3);
    await db.rows(`update notifications set created_at = now() - interval '61 minutes'`);
    const [, later] = await server.received(2);
    assert.match(later?.text ?? '', '3 deliveries have no retry left.');
  }),
);

notify(
  'two agents that see the same failure notify once: an endpoint that is gone, a source that cannot be read',
  () =>
    scene(async ({ db, broker, server, at, projectId, start, send }) => {
      await Promise.all([start(), start()]);
      at.answer({ status: 410 });
      await send(1);
      const [gone] = await server.received(1);
      assert.is(
        gone?.headers['subject'],
        '[gateway] Endpoint warehouse of project shop is disabled',
      );
      broker
        .queue('q')
        .fail(
          new PluginError('The broker refused the password.', { fix: 'Check the field password.' }),
        );
      const mails = await server.received(2);
      assert.is(mails[1]?.headers['subject'], '[gateway] Source q of project shop is failing');
      assert.match(
        mails[1]?.text ?? '',
        'The broker refused the password. Check the field password.',
      );
      broker.queue('q').failure = undefined;
      await until('both to read', () => broker.queue('q').readers === 2);
      await until(
        'the end on record',
        async () =>
          (
            await db.rows(
              `select from notifications where kind = 'source_failing' and ended_at is null`,
            )
          ).length === 0,
      );
      assert.is(subjects(server).length, 2);
      assert.is(
        (await db.rows('select from notifications where project_id = $1', [projectId])).length,
        2,
      );
    }),
);

notify(
  'messages that a broker deleted are notified by partition, and those of the next hour together after it',
  () =>
    scene(async ({ db, broker, server, start }) => {
      await start();
      const queue = broker.queue('q');
      await until('it to be read', () => queue.lost);
      queue.lost!('3', 5);
      const [mail] = await server.received(1);
      assert.is(mail?.headers['subject'], '[gateway] Source q of project shop has lost messages');
      assert.match(mail?.text ?? '', 'Partition:    3\nMessages:     up to 5\n');
      queue.lost!('3', 2);
      queue.lost!('4', 1);
      const [, other] = await server.received(2);
      assert.match(other?.text ?? '', 'Partition:    4\nMessages:     up to 1\n');
      await db.rows(`update notifications set created_at = now() - interval '61 minutes'`);
      queue.lost!('3', 1);
      const [, , later] = await server.received(3);
      assert.match(later?.text ?? '', 'Partition:    3\nMessages:     up to 3\n');
    }),
);

notify('while the SMTP server is away notifications wait, and the agent says so and works', () =>
  scene(async ({ db, at, start, send }) => {
    const port = await freePort();
    const { lines, port: agentPort } = await start({
      smtp: { url: `127.0.0.1:${port}`, from: 'gateway@example.com' },
    });
    at.answer({ status: 410 });
    await send(1);
    const warning = await until('the warning', () =>
      lines.find(({ sentence }) => sentence.startsWith('Notifications wait')),
    );
    assert.is(
      warning.sentence,
      `Notifications wait, because the SMTP server at 127.0.0.1:${port} cannot be reached: nothing listens there.`,
    );
    const health = await fetch(`http://127.0.0.1:${agentPort}/healthz?ready`);
    assert.match(await health.text(), '"name":"smtp","state":"degraded"');
    assert.is(health.status, 200);
    const late = await smtp({ tls: 'none', port });
    try {
      await late.received(1);
      await until(
        'the end on record',
        async () => (await db.rows(`select from notifications where status = 'sent'`)).length === 1,
      );
      assert.is(
        lines.filter(({ sentence }) => sentence.startsWith('Notifications wait')).length,
        1,
      );
    } finally {
      await late.close();
    }
  }),
);

notify('waiting notifications of one kind share an email', () =>
  scene(async ({ db, server, projectId, start }) => {
    const names = ['one', 'two', 'three'];
    const failing = [];
    for (const name of names) {
      const { id: subject } = await makeEndpoint(db, projectId, {
        url: 'https://example.com',
        name,
      });
      failing.push({
        kind: 'endpoint_failing',
        projectId,
        subject,
        facts: { failures: 3, error: `The error of ${name}.` },
      } as const);
    }
    await raiseNotifications(db.pool, failing, { agentIdOf: () => 0, quietSeconds: 0 });
    await start();
    const [mail] = await server.received(1);
    assert.is(mail?.headers['subject'], '[gateway] 3 endpoints are failing, organisation Acme');
    for (const name of names) assert.match(mail?.text ?? '', `The error of ${name}.`);
    await until(
      'all on record',
      async () => (await db.rows(`select from notifications where status = 'sent'`)).length === 3,
    );
    assert.is(server.mails.length, 1);
  }),
);

notify('an SMTP server that hangs does not hold up the end of an agent', () =>
  scene(async ({ start }) => {
    const sockets: net.Socket[] = [];
    const mute = net.createServer(
      (socket) => void sockets.push(socket.on('error', () => undefined)),
    );
    mute.on('connection', (socket) => socket.write('220 mute.example.com\r\n'));
    const port = await loopback(mute);
    try {
      const { close } = await start({
        smtp: { url: `127.0.0.1:${port}`, from: 'gateway@example.com' },
      });
      await until('the agent to connect', () => sockets.length > 0);
      // The mailer alone would wait for half a minute.
      await within(close(), 15_000, 'the agent to close');
    } finally {
      for (const socket of sockets) socket.destroy();
      mute.close();
    }
  }),
);

notify('a user who forgot the password gets a link, whose token is hashed in the database', () =>
  scene(async ({ db, server, start }) => {
    const email = await adminOf(db);
    await start();
    await requestPasswordReset(db.pool, email, 'https://example.com/#password-reset=');
    assert.equal(await db.rows('select from password_resets'), [], 'a user without a password');
    await db.rows(`update users set password_hash = 'scrypt$'`);
    await requestPasswordReset(db.pool, email, 'https://example.com/#password-reset=');
    const [mail] = await server.received(1);
    assert.equal([mail?.to, mail?.headers['subject']], [[email], '[gateway] Reset your password']);
    const [, token] = /#password-reset=(gw_\S+)/.exec(mail!.text)!;
    assert.is((await findPasswordReset(db.knex, token!))?.email, email);
    await until(
      'the mail on record',
      async () =>
        (await db.rows('select from password_resets where next_mail_at is null')).length === 1,
    );
  }),
);

notify('without an SMTP server the same stands in the log, and the outbox stays empty', () =>
  scene(async ({ db, at, start, send }) => {
    const { lines } = await start({ smtp: {} });
    at.answer({ status: 500 });
    await send(4);
    at.answer({ status: 410 });
    await send(1);
    await until('both warnings', () => {
      const warned = lines.filter(({ level }) => level === 'warn').map(({ sentence }) => sentence);
      return (
        warned.filter((it) =>
          /^(An endpoint is failing|Deactivated an endpoint that responded 410)/.test(it),
        ).length === 2
      );
    });
    await until(
      'the endpoint to be out of service',
      async () => (await db.rows(`select from endpoints where status = 'inactive'`)).length === 1,
    );
    assert.equal(await db.rows('select kind from notifications'), []);
  }),
);

notify(
  'events of sources and deliveries that succeed are counted, and kept when the agent closes',
  () =>
    scene(async ({ db, broker, at, start, send }) => {
      const { close } = await start();
      await send(2);
      at.answer({ status: 500 });
      await send(1);
      const message = { coordinates: 'memory/0/twice', timestamp: Date.now() };
      for (let k = 0; k < 2; k++)
        await broker.queue('q').send('{"event_type":"a","data":{}}', message);
      await close();
      const bytes = '{"secret":"of-an-event"}'.length * 3 + 2;
      assert.equal(
        (await listUsage(db.pool, { days: 2 })).map((it) => [it.events, it.deliveries, it.bytes]),
        [[4, 2, bytes]],
      );
    }),
);

notify(
  'a success that a forced end leaves unrecorded is not counted: the agent that recovers the delivery counts it',
  async () => {
    const db = await migratedDatabase();
    const { wiring, projectId, close } = await runAgent({ db });
    wiring.attemptWriter.stop();
    wiring.attemptWriter.push({
      projectId,
      id: newId(),
      endpointId: newId(),
      status: 'success',
      dueInMs: null,
      agentId: wiring.lease.agentId,
    } as AttemptRecord);
    await close();
    assert.equal(await listUsage(db.pool, { days: 2 }), []);
    await db.close();
  },
);

function attempt(
  endpointId: string,
  error: string | null = null,
  fields: Partial<AttemptRecord> = {},
): AttemptRecord {
  return {
    projectId: 'p',
    endpointId,
    errorClass: error && 'status',
    detail: error,
    code: 500,
    requestedAtMs: 1,
    ...fields,
  } as AttemptRecord;
}

/** A notifier without a database, and its log about failing endpoints. */
function notifier(threshold: number) {
  const { log, lines } = keptLog();
  const config = agentConfig('postgres://localhost:5432/none', {
    notifications: { endpoint_failures: threshold },
  });
  const it = new Notifier({ config, log, mailer: undefined } as unknown as ConstructorParameters<
    typeof Notifier
  >[0]);
  return { it, logged: () => lines.map(({ fields }) => fields) };
}

notify(
  'an endpoint is due once, when as many attempts as the setting says have failed in a row',
  () => {
    const { it, logged } = notifier(3);
    it.recorded([attempt('a', 'one'), attempt('b', 'other'), attempt('a', 'two')]);
    assert.equal(logged(), []);
    it.recorded([attempt('a', 'three'), attempt('a', 'four')]);
    assert.equal(logged(), [
      { project_id: 'p', endpoint_id: 'a', failures: 3, last_error: 'three' },
    ]);
    it.tripped({
      projectId: 'p',
      endpointId: 'a',
      isFirst: true,
      isOperational: false,
      failures: 9,
      error: 'five',
    });
    assert.is(logged().length, 1);
  },
);

notify('a success restarts the count, and a 410 does not count', () => {
  const { it, logged } = notifier(2);
  it.recorded([
    attempt('a', 'e'),
    attempt('a'),
    attempt('a', 'e'),
    attempt('a', 'gone', { isGone: true }),
  ]);
  assert.equal(logged(), []);
  it.recorded([attempt('a', 'e')]);
  assert.is(logged().length, 1);
});

notify('a circuit breaker that opens for the first time makes its endpoint due', () => {
  const { it, logged } = notifier(5);
  it.tripped({
    projectId: 'p',
    endpointId: 'a',
    isFirst: false,
    isOperational: false,
    failures: 9,
    error: 'e',
  });
  assert.equal(logged(), []);
  it.tripped({
    projectId: 'p',
    endpointId: 'a',
    isFirst: true,
    isOperational: false,
    failures: 3,
    error: 'e',
  });
  assert.equal(logged(), [{ project_id: 'p', endpoint_id: 'a', failures: 5, last_error: 'e' }]);
});

notify('a failure keeps the time of the first and the error of the last', () => {
  const it = new Failures();
  it.fail('p', 'a', 'one', { sinceMs: 7, isOperational: true });
  it.fail('p', 'a', 'two', { sinceMs: 8 });
  assert.equal(it.get('a'), {
    projectId: 'p',
    id: 'a',
    sinceMs: 7,
    failures: 2,
    error: 'two',
    isOperational: false,
    isDue: false,
  });
});

notify('what has an open notification recovers once, also when another agent raised it', () => {
  const it = new Failures();
  const failure = it.fail('p', 'a', 'e');
  it.needsNotification(failure);
  it.raised(failure);
  assert.equal([[...it.due.keys()], [...it.open]], [[], ['a']]);
  it.open.add('c');
  for (const id of ['a', 'a', 'b', 'c']) it.recover(id);
  assert.equal([it.get('a'), [...it.open], [...it.recovered]], [undefined, [], ['a', 'c']]);
});

notify('what recovers while its notification is raised ends it', () => {
  const it = new Failures();
  const failure = it.fail('p', 'a', 'e');
  it.needsNotification(failure);
  it.recover('a');
  it.raised(failure);
  assert.equal([[...it.due.keys()], [...it.open], [...it.recovered]], [[], [], ['a']]);
});

notify('what is forgotten is not due any more', () => {
  const it = new Failures();
  for (const id of ['a', 'b']) it.needsNotification(it.fail('p', id, 'e'));
  it.forget('a');
  assert.equal([...it.due.keys()], ['b']);
});

notify('a tally keeps what happened since its notification, and a project has its share', () => {
  const it = new Tallies('endpoint_exhausted', 'deliveries');
  const add = (projectId: string, subject: string) =>
    it.add({ projectId, subject, facts: { error: 'e' } }, 1);
  assert.equal([add('p', 'a'), add('p', 'a'), add('p', 'b')], [true, false, true]);
  const [a] = it.due();
  assert.equal(a!.facts, { error: 'e', deliveries: 2 });
  add('p', 'a');
  it.reported(a!);
  assert.equal(
    it.due().map(({ subject, count }) => [subject, count]),
    [
      ['a', 1],
      ['b', 1],
    ],
  );
  for (let n = 0; n < 998; n++) assert.ok(add('p', `e${n}`));
  assert.equal([add('p', 'more'), add('q', 'other')], [false, true]);
  it.reported({ subject: 'b', count: 1 });
  assert.ok(add('p', 'more'));
});

notify.run();
