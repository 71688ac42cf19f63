import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { alive, commandOf, processes } from './processes.js';
import { production } from './production.js';
import { services } from './services.js';

const test = suite('support/production');

/** The gateways that this process runs. It has other children too: the compiler of the tests comes and goes. */
const gateways = () =>
  [...processes()].flatMap(([pid, { parent }]) =>
    parent === process.pid && alive(pid) && commandOf(pid).includes('gateway.js') ? [pid] : [],
  );

test('a gateway in which no project can be made leaves no server running', async () => {
  await Promise.all([services.postgres(), services.redis()]);
  // The server is ready, and its API is not where it is called.
  const failure = await production({ settings: { root_path: '/elsewhere' } }).then(String, String);
  assert.match(failure, /POST \/projects answered 404/);
  assert.equal(gateways(), []);
});

test.run();
