import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { errors } from '#core/errors/error-table';
import { GatewayError, isGatewayError } from '#core/errors/errors';

const table = suite('core/errors/errors');

const LISTS: Readonly<Record<string | symbol, unknown>> = {
  problems: [{ field: 'f', sentence: 's' }],
  gates: [{ reason: 'r', fix: 'f' }],
  pending: ['0001_x'],
  unknown: ['0001_x'],
  names: ['0001_x'],
  ids: ['0001_x'],
  migrations: ['0001_x'],
  tables: ['events'],
  holders: ['pid 7 (psql, active for 9 s)'],
  [Symbol.toPrimitive]: () => 'x',
};

/** Details that suit the sentence of every row. */
const anything = new Proxy({}, { get: (_, name) => LISTS[name] ?? 'x' });

table('every row makes a sentence and a fix, and has statuses that mean something', () => {
  for (const [code, row] of Object.entries(errors)) {
    const message = (row.message as (details: unknown) => string)(anything);
    const fix = (row.fix as (details: unknown) => string)(anything);
    assert.match(code, /^[a-z]+(_[a-z]+)*$/);
    for (const text of [message, fix])
      assert.ok(text !== '' && !/undefined|NaN|\[object/.test(text), `${code}: ${text}`);
    assert.ok([1, 2].includes(row.exit), code);
    assert.ok(row.http >= 400 && row.http < 600, code);
  }
});

table('an error carries code, fix, statuses, details and cause', () => {
  const cause = new Error('connect ECONNREFUSED');
  const error = new GatewayError(
    'port_in_use',
    { port: 5005, bind: '0.0.0.0', setting: 'server.http.port', flag: '--port' },
    { cause },
  );
  assert.is(error.message, 'port 5005 on 0.0.0.0 is already in use');
  assert.is(
    error.fix,
    'stop the process that listens there, or choose another port with --port or server.http.port',
  );
  assert.equal(
    [error.code, error.exitStatus, error.httpStatus, error.cause, error.details.port],
    ['port_in_use', 1, 500, cause, 5005],
  );
  assert.is(`${error}`, `${error.message}\n${error.fix}`);
});

table('an error is recognised by its code', () => {
  const error: unknown = new GatewayError('encryption_key_missing');
  assert.ok(isGatewayError(error));
  assert.ok(isGatewayError(error, 'encryption_key_missing'));
  assert.not.ok(isGatewayError(error, 'not_found'));
  assert.not.ok(isGatewayError(new Error('encryption_key_missing')));
});

table('a missing encryption key says which setting it is and how to make one', () => {
  const { message, fix } = new GatewayError('encryption_key_missing');
  assert.match(message, 'no encryption key is set');
  for (const part of ['encryption_key', 'GATEWAY_ENCRYPTION_KEY', 'openssl rand -base64 32'])
    assert.match(fix, part);
});

table('a pending migration says what to run', () => {
  const error = new GatewayError('migration_pending', { pending: ['0001_a', '0002_b'] });
  assert.is(error.message, 'the database lacks 2 migrations: 0001_a, 0002_b');
  assert.match(error.fix, '`gateway migrate up`');
});

table.run();
