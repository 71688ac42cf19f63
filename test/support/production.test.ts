import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { alive, commandOf, processes } from './processes.js';
import { production } from './production.js';
import { services } from './services.js';

const test = suite('support/production');

/** The gateways among the children of this process, which also include the tests' compiler. */
const gateways = () =>
  [...processes()].flatMap(([pid, { parent }]) =>
    parent === process.pid && alive(pid) && commandOf(pid).includes('gateway.js') ? [pid] : [],
  );

test('a gateway in which no project can be made leaves no server running', async () => {
  await Promise.all([services.postgres(), services.redis()]);
  // The server becomes ready, but its API is at another path.
  const failure = await production({ settings: { root_path: '/elsewhere' } }).then(String, String);
  assert.match(failure, /POST \/projects answered 404/);
  assert.equal(gateways(), []);
});

test.run();
