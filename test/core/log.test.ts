import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError } from '@gateway/plugin';
import { GatewayError } from '@gateway/core/errors';
import { createLog, silentLog, type LogLevel } from '@gateway/core/log';

const log = suite('core/log');

function recording(level: LogLevel = 'debug', environment?: string) {
  const lines: Record<string, unknown>[] = [];
  const it = createLog({
    level,
    name: 'gateway-agent',
    ...(environment === undefined ? {} : { environment }),
    destination: { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  return { lines, it };
}

log('a line is JSON with level, time, name, fields and sentence', () => {
  const { lines, it } = recording();
  it.warn({ source: 's1', count: 2 }, 'a sentence');
  const { time, ...line } = lines[0]!;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(
    { ...line, pid: 0, hostname: '' },
    { level: 'warn', pid: 0, hostname: '', name: 'gateway-agent', source: 's1', count: 2, message: 'a sentence' },
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
    { ...secrets, url: 'postgres://ada:hunter2@db:5432/gateway', error: new Error('connect to redis://:hunter2@kv:6379 failed') },
    'x',
  );
  it.child({ authorization: 'Bearer hunter2', headers: { cookie: 'hunter2' } }).info({}, 'x');
  assert.not.match(JSON.stringify(lines), 'hunter2');
  assert.match(JSON.stringify(lines), 'ada');
  assert.match(JSON.stringify(lines), 'postgres://********@db:5432/gateway');
});

log('an error is spelled out: code, sentence, fix and cause, and a stack only when nobody foresaw it', () => {
  const { lines, it } = recording();
  const cause = new Error('ECONNREFUSED');
  it.error({ error: new GatewayError('kv_unreachable', { host: 'kv', port: 6379, reason: 'nothing listens there' }, { cause }) }, 'x');
  it.error({ error: new PluginError('no such topic', { fix: 'create it' }) }, 'x');
  const [ours, plugins] = lines.map((line) => line['error'] as Record<string, unknown>);
  assert.equal([ours!['code'], ours!['message']], ['kv_unreachable', 'Redis at kv:6379 cannot be reached: nothing listens there']);
  assert.match(String(ours!['fix']), 'kv.host');
  assert.is(ours!['stack'], undefined);
  assert.match(String((ours!['cause'] as Record<string, unknown>)['stack']), 'ECONNREFUSED');
  assert.equal([plugins!['message'], plugins!['fix']], ['no such topic', 'create it']);
});

log('fields that JSON cannot hold do not break a line', () => {
  const { lines, it } = recording();
  const circle: Record<string, unknown> = { n: 1n };
  circle['self'] = circle;
  it.info({ circle, bytes: Buffer.alloc(10), at: new Date(0), nothing: undefined, none: null }, 'x');
  assert.is(lines[0]!['bytes'], '10 bytes');
  assert.is(lines[0]!['at'], '1970-01-01T00:00:00.000Z');
  assert.is((lines[0]!['circle'] as Record<string, unknown>)['n'], '1');
});

log('the silent log has silent children', () => {
  silentLog.child({}).error({}, 'x');
  assert.is(silentLog.child({}), silentLog);
});

log.run();
