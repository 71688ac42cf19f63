// deadline: 240 s
import crypto from 'node:crypto';
import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database } from '../support/database.js';
import { runGateway } from '../support/gateway.js';
import { kafka } from '../support/kafka.js';
import { freePort, loopback } from '../support/ports.js';
import { production } from '../support/production.js';
import { redis } from '../support/redis.js';
import { sqs } from '../support/sqs.js';

const refuses = suite('e2e/refuses');

const key = () => crypto.randomBytes(32).toString('base64');

async function failing(args: readonly string[], config: object): Promise<string> {
  const { code, stderr } = await runGateway(args, { config, withinMs: 60_000 });
  assert.is(code, 1, stderr);
  assert.not.match(stderr, /^\s+at /m, 'no stack');
  return stderr;
}

refuses('a process without an encryption key says which setting and how to make one', async () => {
  for (const command of ['server', 'agent']) {
    const sentence = await failing([command], {});
    assert.match(sentence, /encryption_key/);
    assert.match(sentence, /GATEWAY_ENCRYPTION_KEY/);
    assert.match(sentence, /openssl rand -base64 32/);
  }
});

refuses('a process whose Postgres is away names the address and the setting', async () => {
  const port = await freePort();
  for (const command of ['server', 'agent']) {
    const sentence = await failing([command], {
      encryption_key: key(),
      database: { host: '127.0.0.1', port },
    });
    assert.match(sentence, new RegExp(`127\\.0\\.0\\.1:${port}`));
    assert.match(sentence, /database\.host/);
  }
});

refuses('a process before its migrations says what to run', async () => {
  const db = await database();
  const kv = await redis();
  try {
    for (const command of ['server', 'agent']) {
      const sentence = await failing([command], {
        encryption_key: key(),
        database: db.connection,
        kv: kv.connection,
      });
      assert.match(sentence, /gateway migrate up/);
    }
  } finally {
    await kv.close();
    await db.close();
  }
});

refuses('an agent whose Redis is away, and processes whose port is taken, say so', async () => {
  const gateway = await production({ agents: 0 });
  const taken = net.createServer();
  const port = await loopback(taken);
  try {
    const base = {
      encryption_key: key(),
      database: gateway.database.connection,
      kv: gateway.kv.connection,
      server: { http: { bind: '127.0.0.1' } },
    };
    const free = await freePort();
    const away = await failing(['agent'], { ...base, kv: { host: '127.0.0.1', port: free } });
    assert.match(away, new RegExp(`127\\.0\\.0\\.1:${free}`));
    assert.match(away, /kv\.host/);
    for (const command of ['server', 'agent']) {
      const sentence = await failing([command, '--port', String(port)], base);
      assert.match(sentence, new RegExp(`port ${port}`));
      assert.match(sentence, /--port/);
    }
  } finally {
    await new Promise((resolve) => taken.close(resolve));
    await gateway.close();
  }
});

refuses('a source that cannot be read is refused with the field to change', async () => {
  const broker = await kafka();
  const queues = await sqs();
  const gateway = await production({ agents: 0 });
  const create = (type: string, connection: object) =>
    gateway
      .api('POST', '/sources', {
        name: 'refused',
        type: 'pub_sub',
        pub_sub: { type, [type]: connection },
      })
      .then(
        () => 'created',
        (error: Error) => error.message,
      );
  try {
    const { username } = broker.users.scram;
    const auth = { type: 'scram', hash: 'SHA512', username, password: 'not-it', tls: false };
    assert.match(
      await create('kafka', {
        brokers: [broker.listeners.saslPlaintext],
        topic_name: 'orders',
        auth,
      }),
      /422.*password/is,
    );
    assert.match(
      await create('kafka', { brokers: [broker.listeners.plaintext], topic_name: 'no-such-topic' }),
      /422.*no-such-topic.*topic_name/is,
    );
    assert.match(await create('sqs', queues.connection('no-such-queue')), /422.*no-such-queue/is);
    assert.match(await create('kafak', {}), /422.*pub_sub\.type.*kafka/is);
  } finally {
    await gateway.close();
    await queues.close();
    await broker.close();
  }
});

refuses.run();
