// deadline: 300 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrate } from '../store/migrated.js';
import { database } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { gateway, runGateway, type GatewayProcess } from '../support/gateway.js';
import { kafka } from '../support/kafka.js';
import { collector } from '../support/otlp.js';
import { freePort } from '../support/ports.js';
import { kafkaSource, production, subscribed, type Production } from '../support/production.js';
import { proxy } from '../support/proxy.js';
import { redis } from '../support/redis.js';
import { services } from '../support/services.js';
import { sqs } from '../support/sqs.js';
import { together } from '../support/together.js';
import { until } from '../support/until.js';

const logs = suite('e2e/logs');
const waiting = together(logs);

/** Content of secrets and of messages: neither may appear in a log. */
const SECRET = 'planted-secret';
const CONTENT = 'planted-content';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;

interface Line {
  readonly time: string;
  readonly level: string;
  readonly message: string;
  readonly process: string;
  readonly [field: string]: unknown;
}

/** Parses a process' log line by line. Fails on a line in another format. */
function linesOf(
  { stdout, stderr }: Pick<GatewayProcess, 'stdout' | 'stderr'>,
  process: string,
): Line[] {
  assert.is(stdout, '', 'nothing on standard output');
  return stderr
    .split('\n')
    .filter(Boolean)
    .map((text) => {
      let line: Line;
      try {
        line = JSON.parse(text) as Line;
      } catch {
        throw new Error(`not a line of the log: ${text}`);
      }
      assert.match(line.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, text);
      assert.ok(['debug', 'info', 'warn', 'error'].includes(line.level), text);
      assert.ok(typeof line.message === 'string' && line.message !== '', text);
      assert.is(line.process, process, text);
      return line;
    });
}

function count(gateway: Production, table: string): Promise<number> {
  return gateway.database
    .rows<{ n: number }>(`select count(*)::int as n from ${table}`)
    .then(([row]) => row!.n);
}

waiting(
  'at level debug a whole run says neither a secret nor anything of a message, in lines of one form with the ids and the trace',
  async () => {
    const queues = await sqs();
    const receiver = await endpoint();
    const traces = await collector();
    const postgres = new URL((await services.postgres()).url);
    const way = await proxy({ port: Number(postgres.port) });
    postgres.port = String(way.port);
    const gateway = await production({
      agents: 0,
      postgres: { url: postgres.href },
      settings: {
        logger: { level: 'debug' },
        database: { password: `${SECRET}-database` },
        tracer: {
          type: 'otel',
          otel: {
            collector_url: `http://${traces.address}`,
            otel_auth: { header_name: 'authorization', header_value: `${SECRET}-otel` },
          },
        },
      },
    });
    try {
      const { process: first } = await gateway.startAgent();
      const { uid: projectId } = (
        await gateway.database.rows<{ uid: string }>('select id as uid from projects')
      )[0]!;
      await gateway.database.rows(
        `update projects set config = '{"strategy":{"type":"linear","duration":1,"retry_count":1}}'`,
      );
      const endpointSecret = `whsec_${Buffer.from(`${SECRET}-endpoint-0123456789`).toString('base64')}`;
      const { uid: endpointId } = await gateway.api('POST', '/endpoints', {
        name: 'receiver',
        url: receiver.url,
        secret: endpointSecret,
        authentication: { type: 'basic', basic: { username: 'ada', password: `${SECRET}-basic` } },
      });
      await gateway.api('POST', '/endpoints', {
        name: 'other',
        url: receiver.url,
        authentication: {
          type: 'api_key',
          api_key: { header_name: 'x-api-key', header_value: `${SECRET}-key` },
        },
      });
      await gateway.api('POST', '/subscriptions', {
        name: 'all',
        endpoint_id: endpointId,
        filter_config: { event_types: ['*'] },
      });
      // A message received by the stopped agent is soon visible to the next one.
      const plain = queues.queue({ VisibilityTimeout: '2' });
      const transformed = queues.queue();
      const body_function = `function transform(payload) { if (payload.data.throws) throw new Error('refused ' + JSON.stringify(payload)); return payload; }`;
      const source = (name: string, queue: string, more: object = {}) => {
        const connection = { ...queues.connection(queue), secret_key: `${SECRET}-sqs` };
        return gateway.api('POST', '/sources', {
          name,
          type: 'pub_sub',
          pub_sub: { type: 'sqs', workers: 1, sqs: connection },
          ...more,
        });
      };
      const { uid: sourceId } = await source('plain', plain.name);
      await source('transformed', transformed.name, { body_function });
      // The database refuses these events, with an error that quotes the whole row.
      await gateway.database.rows(
        `alter table events add constraint refusing check (event_type <> 'event.refused')`,
      );
      const message = (eventType: string, more: object = {}) => ({
        body: JSON.stringify({
          event_type: eventType,
          data: { text: CONTENT, ...more },
          custom_headers: { 'x-planted': CONTENT },
        }),
        attributes: { traceparent: TRACEPARENT, 'x-attribute': CONTENT },
      });

      // Delivered, invalid, rejected by a function, refused by Postgres.
      await queues.send(plain, [
        message('event.good'),
        { ...message('event.bad'), body: `{"data": ${CONTENT}` },
        message('event.refused'),
      ]);
      await queues.send(transformed, [
        message('event.good'),
        message('event.bad', { throws: true }),
      ]);
      await receiver.received(2);
      await until(
        'three messages in quarantine',
        async () => (await count(gateway, 'quarantined_messages')) === 3,
      );

      // Failed, retried, failed permanently, resent manually.
      receiver.answer({ status: 500, body: `no ${CONTENT}`, headers: { 'x-answer': CONTENT } });
      await queues.send(plain, [message('event.failing')]);
      await until('a delivery to fail', async () => {
        const { content } = await gateway.api<{ content: { uid: string; status: string }[] }>(
          'GET',
          '/eventdeliveries?status=failure',
        );
        return content[0] && gateway.api('PUT', `/eventdeliveries/${content[0].uid}/resend`);
      });
      await until(
        'the second failure',
        async () => (await gateway.database.rows('select from delivery_attempts')).length >= 5,
      );
      receiver.answer({ status: 200 });

      // Refused by the API, and failed there.
      const wrong = await gateway
        .api('POST', '/events', { event_type: 'event.api', data: CONTENT })
        .then(() => 'made', String);
      assert.match(wrong, 'answered 422');
      await gateway.database.rows(
        `alter table endpoints add constraint refusing check (name not like '${CONTENT}%')`,
      );
      const made = () =>
        gateway
          .api('POST', '/endpoints', { name: `${CONTENT}-name`, url: receiver.url })
          .then(() => 'made', String);
      assert.match(await made(), 'answered 500');
      await gateway.api('POST', '/events', {
        event_type: 'event.api',
        data: { text: CONTENT },
        custom_headers: { 'x-api': CONTENT },
      });
      await until('the event of the API', () =>
        receiver.requests.some(({ headers }) => headers['x-api'] === CONTENT),
      );

      // Postgres becomes unreachable during work, and the agent restarts behind it.
      const before = receiver.requests.length;
      way.cut();
      await queues.send(plain, [message('event.waiting')]);
      await first.line('Messages could not be committed');
      assert.match(await made(), 'answered 503');
      way.restore();
      await receiver.received(before + 1);
      await first.terminate();
      const { process: second } = await gateway.startAgent();
      await queues.send(plain, [message('event.good')]);
      await receiver.received(before + 2);
      await second.terminate();
      await gateway.server.terminate();

      const agentLines = [...linesOf(first, 'gateway-agent'), ...linesOf(second, 'gateway-agent')];
      const serverLines = linesOf(gateway.server, 'gateway-server');
      const all = `${first.stderr}${second.stderr}${gateway.server.stderr}`;
      const planted = [
        SECRET,
        CONTENT,
        endpointSecret.slice('whsec_'.length),
        Buffer.from(`ada:${SECRET}-basic`).toString('base64'),
      ];
      for (const text of planted) {
        const at = all.indexOf(text);
        assert.is(at, -1, `${text} in: ${all.slice(Math.max(0, at - 1_000), at + 200)}`);
      }

      const accepted = agentLines.filter((line) => line.message === 'An event was accepted.');
      assert.equal(
        accepted
          .filter(({ source_id }) => source_id === sourceId)
          .map(({ level, project_id, trace_id }) => [level, project_id, trace_id]),
        Array.from({ length: 4 }, () => ['debug', projectId, TRACE]),
      );
      const quarantined = agentLines.filter(
        (line) => line.message === 'A message was quarantined.',
      );
      assert.equal(quarantined.map(({ code, trace_id }) => [code, trace_id]).sort(), [
        ['database_refused', TRACE],
        ['not_json', TRACE],
        ['transform_threw', TRACE],
      ]);
      const attempts = agentLines.filter((line) => line.message === 'A delivery attempt was made.');
      const ofMessages = attempts.filter(({ event_id }) =>
        accepted.some((line) => line['event_id'] === event_id),
      );
      assert.ok(ofMessages.length >= 6, `${ofMessages.length} attempts`);
      for (const line of ofMessages) {
        assert.equal(
          [line.level, line['project_id'], line['endpoint_id'], line['trace_id']],
          ['debug', projectId, endpointId, TRACE],
        );
        assert.type(line['event_delivery_id'], 'string');
      }
      assert.is(
        serverLines.filter(
          ({ message, level }) =>
            message === 'Request failed with an internal error.' && level === 'error',
        ).length,
        1,
      );
      assert.is(
        serverLines.filter(
          ({ message, level }) => message.startsWith('Postgres is unavailable') && level === 'warn',
        ).length,
        1,
      );
    } finally {
      way.restore();
      await gateway.close();
      await way.close();
      await receiver.close();
      await queues.close();
      traces.close();
    }
  },
);

waiting(
  'a thousand poisoned messages and a thousand failing deliveries make a handful of lines at level info',
  async () => {
    const broker = await kafka();
    const receiver = await endpoint({ answer: { status: 500, body: CONTENT } });
    const gateway = await production({
      agents: 0,
      settings: { circuit_breaker: { failure_threshold: 0 } },
    });
    try {
      await gateway.database.rows(
        `update projects set config = '{"strategy":{"type":"linear","duration":1,"retry_count":0}}'`,
      );
      const { uid: endpointId } = await subscribed(gateway, receiver.url);
      const topic = await kafkaSource(gateway, broker, 4);
      const pairs = Array.from({ length: 1_000 }, (_, n) => [
        `{"poison": ${n}`,
        JSON.stringify({ event_type: 'order.paid', data: { n } }),
      ]);
      await broker.produce(topic, pairs.flat());
      const { process: agent } = await gateway.startAgent();
      await until(
        'all to be quarantined or to have failed',
        async () => {
          const [row] = await gateway.database.rows<{ quarantined: number; failed: number }>(
            `select (select count(*)::int from quarantined_messages) as quarantined,
                  (select count(*)::int from event_deliveries where status = 'failure' and endpoint_id = $1) as failed`,
            [endpointId],
          );
          return row!.quarantined === 1_000 && row!.failed === 1_000;
        },
        { withinMs: 90_000 },
      );
      await agent.terminate();
      const lines = linesOf(agent, 'gateway-agent');
      assert.ok(lines.length < 60, `${lines.length} lines:\n${agent.stderr}`);
      assert.equal(
        lines.filter(({ level }) => level === 'debug' || level === 'error'),
        [],
      );
    } finally {
      await gateway.close();
      await receiver.close();
      await broker.close();
    }
  },
);

waiting(
  'a defect that nobody catches ends the process with a line of the log and status 1',
  async () => {
    const defect =
      "process.on('SIGUSR2', () => Promise.reject(new TypeError('at postgres://ada:' + process.env.PLANTED + '@db/gateway')))";
    const [db, kv, port] = [await database({ migrate }), await redis(), await freePort()];
    const server = gateway(['server'], {
      config: {
        encryption_key: Buffer.alloc(32, 'k').toString('base64'),
        database: db.connection,
        kv: kv.connection,
        server: { http: { port, bind: '127.0.0.1' } },
      },
      env: {
        PLANTED: SECRET,
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(defect)}`,
      },
    });
    try {
      await server.healthy(port);
      assert.is((await server.terminate({ signal: 'SIGUSR2' })).code, 1);
      const { level, message, error } = linesOf(server, 'gateway-server').at(-1)!;
      assert.equal(
        [level, message],
        ['error', 'Uncaught error in the gateway or a plugin: exiting.'],
      );
      assert.match(
        (error as { stack: string }).stack,
        /^TypeError: at postgres:\/\/\*{8}@db\/gateway\n +at /,
      );
      assert.not.match(server.stderr, SECRET);
    } finally {
      await server.kill();
      await kv.close();
      await db.close();
    }
  },
);

waiting('what a process says when it cannot start holds no secret', async () => {
  const nobody = await freePort();
  const { code, stdout, stderr } = await runGateway(['agent'], {
    config: {
      encryption_key: Buffer.alloc(32, `${SECRET}-0`).toString('base64'),
      database: {
        host: '127.0.0.1',
        port: nobody,
        username: 'ada',
        password: `${SECRET}-database`,
        database: 'gateway',
      },
      kv: { type: 'redis', host: '127.0.0.1', port: nobody, password: `${SECRET}-kv` },
      logger: { level: 'debug' },
    },
  });
  assert.is(code, 1);
  assert.match(stderr, /^error: .+\nfix: /m);
  assert.not.match(stdout + stderr, SECRET);
});

logs.run();
