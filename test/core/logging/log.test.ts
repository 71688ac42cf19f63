import { spawnSync } from 'node:child_process';
import { ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { Redis } from 'ioredis';
import { Kafka, logLevel as kafkaLog } from 'kafkajs';
import pg from 'pg';
import { request } from 'undici';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError } from '@gateway/plugin';
import { GatewayError } from '#core/errors/errors';
import { createLog, silentLog, type LogLevel, type LogLimit } from '#core/logging/log';
import { freePort } from '../../support/ports.js';
import { own, services } from '../../support/services.js';
import { until } from '../../support/until.js';

const log = suite('core/logging/log');

function recording(level: LogLevel = 'debug', environment?: string, limit?: LogLimit) {
  const lines: Record<string, unknown>[] = [];
  const it = createLog({
    level,
    name: 'gateway-agent',
    ...(environment === undefined ? {} : { environment }),
    ...(limit ? { limit } : {}),
    destination: { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  return { lines, it };
}

log('a line is JSON with level, time, process, fields and sentence', () => {
  const { lines, it } = recording();
  it.warn({ source: 's1', count: 2 }, 'a sentence');
  const { time, ...line } = lines[0]!;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(
    { ...line, pid: 0, hostname: '' },
    {
      level: 'warn',
      pid: 0,
      hostname: '',
      process: 'gateway-agent',
      source: 's1',
      count: 2,
      message: 'a sentence',
    },
  );
});

log('a level leaves out what is below it, and silent leaves out everything', () => {
  for (const [level, expected] of [
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
    ['silent', 0],
  ] as const) {
    const { lines, it } = recording(level);
    for (const verb of ['debug', 'info', 'warn', 'error'] as const) it[verb]({}, verb);
    assert.is(lines.length, expected, level);
  }
});

log('the environment is in every line, also in those of children', () => {
  const { lines, it } = recording('debug', 'staging');
  it.info({}, 'x');
  it.child({ source: 's1' }).info({}, 'x');
  assert.equal(
    lines.map((line) => line['environment']),
    ['staging', 'staging'],
  );
});

log('a child adds its fields to every line', () => {
  const { lines, it } = recording();
  it.child({ source: 's1' }).child({ partition: 3 }).info({ offset: 7 }, 'read');
  assert.equal([lines[0]!['source'], lines[0]!['partition'], lines[0]!['offset']], ['s1', 3, 7]);
});

log('secrets do not reach the log, wherever in the fields they stand', () => {
  const { lines, it } = recording();
  const secrets = {
    password: 'hunter2',
    api_key: 'hunter2',
    nested: { sasl: { password: 'hunter2', username: 'ada' } },
    list: [{ token: 'hunter2' }],
  };
  it.info(
    {
      ...secrets,
      url: 'postgres://ada:hunter2@db:5432/gateway',
      error: new Error('connect to redis://:hunter2@kv:6379 failed'),
    },
    'x',
  );
  it.child({ authorization: 'Bearer hunter2', headers: { cookie: 'hunter2' } }).info({}, 'x');
  assert.not.match(JSON.stringify(lines), 'hunter2');
  assert.match(JSON.stringify(lines), 'ada');
  assert.match(JSON.stringify(lines), 'postgres://********@db:5432/gateway');
});

const PLANTED = 'hunter2/hunter2@hunter2';

log(
  'secrets that stand in a text do not reach the log: in URLs, queries, JSON and headers, in fields, sentences and errors',
  () => {
    for (const text of [
      `postgres://ada:${PLANTED}@db:5432/gateway`,
      `amqp://ada:hunter2@one:5672,amqp://eve:hunter2@two:5672`,
      `https://hunter2@sentry.example/42 and https://example/hook?access_token=hunter2&n=1`,
      `host=db password=hunter2 user=ada`,
      `--db-password=hunter2`,
      `{"sasl":{"username":"ada","password":"hunter2 \\" hunter2"}}`,
      `authorization: Bearer hunter2hunter2hunter2`,
      `Basic aHVudGVyMg.hunter2hunter2`,
    ]) {
      const { lines, it } = recording();
      it.info({ text, fix: [text] }, text);
      it.warn(
        {
          error: new Error(text, {
            cause: new AggregateError(
              [new GatewayError('wrong_use', { sentence: text, fix: text })],
              text,
            ),
          }),
        },
        'x',
      );
      assert.not.match(JSON.stringify(lines), 'hunter2', text);
    }
    const { lines, it } = recording();
    const harmless =
      'see https://registry.example:4873/@scope/name, http://[::1]:80/a@b: Basic authentication, no password: token is missing';
    it.info({}, harmless);
    assert.is(lines[0]!['message'], harmless);
  },
);

log(
  'the places of an error are its own: not what its sentence has like them, and not lost when the sentence was changed',
  () => {
    const { lines, it } = recording();
    const forged = Object.assign(new Error('invalid input: "x\n    at planted (x)"'), {
      severity: 'ERROR',
      code: '22P02',
    });
    const changed = new Error('short');
    changed.message = `select from nowhere where name = $1 - ${'long '.repeat(1_000)}`;
    for (const error of [forged, changed]) it.warn({ error }, 'x');
    assert.not.match(JSON.stringify(lines), 'planted');
    for (const { error } of lines) assert.match((error as { stack: string }).stack, 'log.test.ts');
  },
);

log('an error of several errors tells each of them', () => {
  const { lines, it } = recording();
  it.warn(
    {
      error: new AggregateError([
        new Error('connect ECONNREFUSED ::1:5432'),
        new Error('connect ECONNREFUSED 127.0.0.1:5432'),
      ]),
    },
    'x',
  );
  const { errors } = lines[0]!['error'] as { errors: { message: string }[] };
  assert.equal(
    errors.map(({ message }) => message),
    ['connect ECONNREFUSED ::1:5432', 'connect ECONNREFUSED 127.0.0.1:5432'],
  );
});

log('the errors of libraries say nothing of the credentials that they were given', async () => {
  const caught = (failing: Promise<unknown>) =>
    failing.then(
      () => assert.unreachable('it did not fail'),
      (error: unknown) => error,
    );
  const port = await freePort();
  const password = 'hunter2';
  const protectedRedis = await own.redis({ requirepass: 'another' });
  const postgres = new URL((await services.postgres()).url);
  const options = { lazyConnect: true, maxRetriesPerRequest: 1, retryStrategy: () => null };
  const redis = new Redis({ ...options, port: protectedRedis.port, password });
  const away = new Redis({ ...options, port, password });
  for (const one of [redis, away]) one.on('error', () => undefined);
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${port}`],
    sasl: { mechanism: 'plain', username: 'ada', password },
    retry: { retries: 0 },
    logLevel: kafkaLog.NOTHING,
  });
  const queues = new SQSClient({
    region: 'eu-west-1',
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: 'ada', secretAccessKey: password, sessionToken: password },
    maxAttempts: 1,
  });
  const database = (given: object) =>
    new pg.Client({
      host: postgres.hostname,
      port: Number(postgres.port),
      user: 'nobody',
      password,
      ...given,
    });
  try {
    const headers = { authorization: `Bearer ${password}` };
    const errors = {
      'ioredis, refused': await caught(redis.call('AUTH', 'ada', password)),
      'ioredis, away': await caught(away.get('x')),
      kafkajs: await caught(kafka.admin().connect()),
      'aws-sdk': await caught(
        queues.send(
          new ReceiveMessageCommand({ QueueUrl: `http://ada:${password}@127.0.0.1:${port}/q` }),
        ),
      ),
      'pg, refused': await caught(database({}).connect()),
      'pg, away': await caught(database({ host: 'localhost', port }).connect()),
      undici: await caught(
        request(`http://ada:${password}@127.0.0.1:${port}/?token=${password}`, { headers }),
      ),
      'undici, an invalid header': await caught(
        request(`http://127.0.0.1:${port}`, { headers: { authorization: `${password}\n` } }),
      ),
      fetch: await caught(fetch(`http://127.0.0.1:${port}/?token=${password}`, { headers })),
      'fetch, credentials in the URL': await caught(
        fetch(`http://ada:${password}@127.0.0.1:${port}`),
      ),
    };
    for (const [library, error] of Object.entries(errors)) {
      const { lines, it } = recording();
      it.warn({ error, nested: { more: [error] } }, 'x');
      it.child({ error }).warn({}, String(error));
      assert.type((lines[0]!['error'] as Record<string, unknown>)['message'], 'string', library);
      assert.not.match(JSON.stringify(lines), password, library);
    }
  } finally {
    redis.disconnect();
    away.disconnect();
    queues.destroy();
    await protectedRedis.close();
  }
});

log(
  'an error is spelled out: code, sentence, fix and cause, and a stack only when nobody foresaw it',
  () => {
    const { lines, it } = recording();
    const cause = new Error('ECONNREFUSED');
    it.error(
      {
        error: new GatewayError(
          'kv_unreachable',
          { host: 'kv', port: 6379, reason: 'nothing listens there' },
          { cause },
        ),
      },
      'x',
    );
    it.error({ error: new PluginError('no such topic', { fix: 'create it' }) }, 'x');
    const [ours, plugins] = lines.map((line) => line['error'] as Record<string, unknown>);
    assert.equal(
      [ours!['code'], ours!['message']],
      ['kv_unreachable', 'Redis at kv:6379 cannot be reached: nothing listens there'],
    );
    assert.match(String(ours!['fix']), 'kv.host');
    assert.is(ours!['stack'], undefined);
    assert.match(String((ours!['cause'] as Record<string, unknown>)['stack']), 'ECONNREFUSED');
    assert.equal([plugins!['message'], plugins!['fix']], ['no such topic', 'create it']);
  },
);

log('fields that JSON cannot hold do not break a line', () => {
  const { lines, it } = recording();
  const circle: Record<string, unknown> = { n: 1n };
  circle['self'] = circle;
  it.info(
    { circle, bytes: Buffer.alloc(10), at: new Date(0), nothing: undefined, none: null },
    'x',
  );
  assert.is(lines[0]!['bytes'], '10 bytes');
  assert.is(lines[0]!['at'], '1970-01-01T00:00:00.000Z');
  assert.is((lines[0]!['circle'] as Record<string, unknown>)['n'], '1');
});

log('an error says nothing of the content that it complains of', () => {
  const { lines, it } = recording();
  const postgres = Object.assign(new Error('invalid input syntax for type uuid: "planted"'), {
    severity: 'ERROR',
    code: '22P02',
    detail: 'Key (name)=(planted) already exists.',
    where: 'unnamed portal parameter $1 = planted',
  });
  let parser: unknown;
  try {
    JSON.parse('{"a": planted}');
  } catch (error) {
    parser = error;
  }
  it.warn({ error: postgres }, 'x');
  it.warn({ error: parser }, 'x');
  it.warn({ error: new Error('outside', { cause: parser }) }, 'x');
  const text = JSON.stringify(lines);
  assert.not.match(text, 'planted');
  assert.match(text, 'invalid input syntax for type uuid');
  assert.match(text, 'Unexpected token');
  assert.match(text, 'log.test.ts');
});

log('the name of a constraint stays in an error of Postgres', () => {
  const { lines, it } = recording();
  const message = 'duplicate key value violates unique constraint "events_pkey"';
  it.warn(
    {
      error: Object.assign(new Error(message), {
        severity: 'ERROR',
        code: '23505',
        detail: 'Key (id)=(planted)',
      }),
    },
    'x',
  );
  assert.is((lines[0]!['error'] as Record<string, unknown>)['message'], message);
});

log(
  'a sentence that is said ten thousand times is written so often as the limit allows, by children too, and the rest is counted',
  async () => {
    const { lines, it } = recording('info', undefined, { lines: 5, windowMs: 50 });
    for (let k = 0; k < 5_000; k++) {
      it.warn({ k }, 'a flood');
      it.child({ k }).warn({}, 'a flood');
    }
    it.warn({}, 'another sentence');
    it.error({}, 'a flood');
    const said = () =>
      lines.filter((line) => line['message'] === 'a flood' && line['level'] === 'warn').length;
    assert.is(said(), 5);
    assert.is(lines.length, 7);
    const { left_out, like, level } = await until('the count of what was left out', () =>
      lines.find((line) => 'left_out' in line),
    );
    assert.equal([left_out, like, level], [9_995, 'a flood', 'warn']);
    it.warn({}, 'a flood');
    assert.is(said(), 6);
  },
);

log('sentences that are all different are limited together', () => {
  const { lines, it } = recording('info', undefined, { lines: 5, windowMs: 60_000 });
  for (let k = 0; k < 10_000; k++) it.info({}, `sentence ${k}`);
  assert.is(lines.length, 505);
});

log('at debug nothing is left out', () => {
  const { lines, it } = recording('debug', undefined, { lines: 5, windowMs: 60_000 });
  for (let k = 0; k < 100; k++) it.warn({}, 'a flood');
  assert.is(lines.filter((line) => line['level'] === 'warn').length, 100);
});

log(
  'a flood of one source hides neither another source, nor an endpoint, nor another reason',
  () => {
    const { lines, it } = recording('info', undefined, { lines: 5, windowMs: 60_000 });
    const refused = Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
    const source = it.child({ source_id: 's1' });
    for (let k = 0; k < 1_000; k++) source.warn({ error: refused }, 'a flood');
    for (let k = 0; k < 2; k++) {
      it.child({ source_id: 's2' }).warn({ error: refused }, 'a flood');
      it.warn({ endpoint_id: 'e1', error: refused }, 'a flood');
      source.warn({ error: new TypeError('x') }, 'a flood');
    }
    assert.equal(
      lines
        .slice(5)
        .map(({ source_id, endpoint_id, error }) => [
          source_id,
          endpoint_id,
          (error as { type: string }).type,
        ]),
      [
        ['s2', undefined, 'Error'],
        [undefined, 'e1', 'Error'],
        ['s1', undefined, 'TypeError'],
      ],
    );
    for (let k = 0; k < 1_000; k++) it.warn({ source_id: `source ${k}` }, 'a flood');
    assert.is(lines.length, 10, 'twice the limit, however many sources there are');
  },
);

log('a process that ends in a flood tells how many lines it left out', () => {
  const script = `
    const { createLog } = await import('#core/logging/log');
    const log = createLog({ level: 'info', name: 'gateway-agent', limit: { lines: 5, windowMs: 60_000 } });
    for (let k = 0; k < 12; k++) log.warn({}, 'a flood');
    process.exit(1);`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.is(lines.length, 6, stderr);
  assert.equal([lines.at(-1)!['left_out'], lines.at(-1)!['like']], [7, 'a flood']);
});

log('a log tells whether debug is written, so that nothing is made for it when it is not', () => {
  assert.is(recording('debug').it.debugging, true);
  assert.is(recording('debug').it.child({}).debugging, true);
  assert.is(recording('info').it.debugging, false);
  assert.is(silentLog.debugging, false);
});

log('the silent log has silent children', () => {
  silentLog.child({}).error({}, 'x');
  assert.is(silentLog.child({}), silentLog);
});

log.run();
