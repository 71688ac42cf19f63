import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { raiseNotifications } from '#store/config/notifications';
import { createMailer } from '#agent/notifications/mailer';
import { Outbox } from '#agent/notifications/outbox';
import { Health } from '#core/process/health';
import { migratedDatabase } from '../../store/migrated.js';
import { smtp, type Smtp } from '../../support/smtp.js';
import { makeProject } from '../records.js';
import { agentConfig, keptLog, type Migrated } from '../running.js';

const outbox = suite('agent/notifications/outbox');

interface Scene {
  readonly db: Migrated;
  readonly server: Smtp;
  readonly admins: readonly string[];
  readonly lines: ReturnType<typeof keptLog>['lines'];
  /** Sends what is due, with an outbox of its own, as after a restart. */
  send(): Promise<void>;
  raise(): Promise<unknown>;
}

/** Runs a test with an organisation of some admins, named by `addressOf`, and a notification. */
async function scene(
  count: number,
  recipient: NonNullable<Parameters<typeof smtp>[0]>['recipient'],
  test: (scene: Scene) => Promise<void>,
): Promise<void> {
  const [db, server] = await Promise.all([
    migratedDatabase(),
    smtp({ tls: 'none', ...(recipient && { recipient }) }),
  ]);
  try {
    const projectId = await makeProject(db);
    await db.rows(`update users set email = 'a01@example.com'`);
    await db.rows(
      `with u as (insert into users (id, email, first_name, last_name, password_hash)
         select gen_random_uuid(), 'a' || lpad(n::text, 2, '0') || '@example.com', 'a', 'b', '' from generate_series(2, $1::int) n returning id)
       insert into organisation_members (organisation_id, user_id, role) select o.id, u.id, 'admin' from organisations o, u`,
      [count],
    );
    const admins = Array.from({ length: count }, (_, n) => addressOf(n + 1));
    const { log, lines } = keptLog();
    const config = agentConfig(db.url, {
      smtp: { url: `127.0.0.1:${server.port}`, from: 'gateway@example.com' },
      notifications: { quiet_seconds: 0 },
    });
    const send = async () => {
      await db.rows(
        'update notifications set next_attempt_at = now() where next_attempt_at is not null',
      );
      const health = new Health();
      await new Outbox({ config, database: db, log, health, mailer: createMailer(config) }).send();
    };
    const raise = () =>
      raiseNotifications(
        db.pool,
        [{ kind: 'endpoint_failing', projectId, subject: newId(), facts: { failures: 10 } }],
        { agentIdOf: () => 1, quietSeconds: 0 },
      );
    await raise();
    await test({ db, server, admins, lines, send, raise });
  } finally {
    await server.close();
    await db.close();
  }
}

const addressOf = (n: number) => `a${String(n).padStart(2, '0')}@example.com`;
const recipientsOf = ({ mails }: Smtp) => mails.flatMap(({ to }) => to);
const statuses = async (db: Migrated) =>
  (await db.rows<{ status: string }>('select status from notifications')).map((it) => it.status);

for (const [server, recipient] of [
  ['an email', (_: string, ofEmail: number) => (ofEmail < 50 ? undefined : 550)],
  [
    'a connection',
    (_: string, _of: number, ofConnection: number) => (ofConnection < 50 ? undefined : 550),
  ],
  [
    'an email, with 452 for the others',
    (_: string, ofEmail: number) => (ofEmail < 10 ? undefined : 452),
  ],
] as const)
  outbox(`a server that limits the recipients of ${server} gets all 60 admins, each once`, () =>
    scene(60, recipient, async ({ db, server: { mails }, admins, send }) => {
      await send();
      assert.equal(mails.flatMap(({ to }) => to).sort(), admins);
      assert.equal(await statuses(db), ['sent']);
      for (const { to, headers } of mails) {
        const named = headers['to']!.split(/, */);
        assert.ok(named.length <= 25 && to.every((it) => named.includes(it)));
      }
      assert.is(new Set(mails.map(({ headers }) => headers['message-id'])).size, 1);
    }),
  );

outbox(
  'a recipient that is refused for good is logged with its advice, and no other waits for it',
  () =>
    scene(
      26,
      (address) => (address === addressOf(26) || address === addressOf(3) ? 550 : undefined),
      async ({ db, server, admins, lines, send }) => {
        await send();
        assert.equal(
          recipientsOf(server),
          admins.filter((_, n) => n !== 2 && n !== 25),
        );
        assert.equal(await statuses(db), ['sent']);
        const warnings = lines.filter(({ level }) => level === 'warn');
        assert.equal(
          warnings.map(({ fields }) => (fields as { addresses: unknown }).addresses),
          [[addressOf(3)], [addressOf(26)]],
        );
        assert.match(warnings[0]!.sentence, 'refused the recipient a03@example.com: 550');
        assert.match(
          (warnings[0]!.fields as { fix: string }).fix,
          /^correct the addresses of the users/,
        );
      },
    ),
);

outbox('recipients that are refused for now are sent to alone, also after a restart', () => {
  const busy = new Set([addressOf(2), addressOf(3)]);
  return scene(
    3,
    (address) => (busy.has(address) ? 452 : undefined),
    async ({ db, server, lines, send, raise }) => {
      await send();
      await send();
      assert.equal(recipientsOf(server), [addressOf(1)]);
      assert.equal(await statuses(db), ['waiting']);
      assert.is(lines.filter(({ level }) => level === 'warn').length, 1);
      // A later notification of the kind goes to all, in an email of its own.
      await raise();
      busy.delete(addressOf(2));
      await send();
      assert.equal(recipientsOf(server).sort(), [1, 1, 2, 2].map(addressOf));
      // An address that is no longer an admin's is not sent to.
      await db.rows(`update users set email = 'new@example.com' where email = $1`, [addressOf(3)]);
      await send();
      assert.equal(recipientsOf(server).length, 4);
      assert.equal(await statuses(db), ['sent', 'sent']);
    },
  );
});

outbox(
  'notifications that share an email share its recipients; those refused whole come last',
  () => {
    let isAway = true;
    return scene(
      30,
      (address) => (isAway && address <= addressOf(25) ? 550 : undefined),
      async ({ db, server, admins, send, raise }) => {
        for (let k = 0; k < 3; k++) await raise();
        await send();
        assert.equal(server.mails, []);
        isAway = false;
        await send();
        assert.equal(recipientsOf(server).sort(), admins);
        assert.equal(new Set(server.mails.map(({ headers }) => headers['subject'])).size, 1);
        assert.equal(await statuses(db), Array(4).fill('sent'));
        const [{ lists }] = (await db.rows(
          `select count(*) filter (where facts->'mail' ? 'left')::int as lists from notifications`,
        )) as [{ lists: number }];
        assert.is(lists, 1);
      },
    );
  },
);

outbox.run();
