import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { alive, processes } from './processes.js';
import { production } from './production.js';
import { services } from './services.js';

const test = suite('support/production');

/** How many there are: which ones changes when the compiler of the tests starts its own anew. */
const children = () => [...processes()].filter(([pid, { parent }]) => parent === process.pid && alive(pid)).length;

test('a gateway in which no project can be made leaves no server running', async () => {
  await Promise.all([services.postgres(), services.redis()]);
  const before = children();
  // The server is ready, and its API is not where it is called.
  const failure = await production({ settings: { root_path: '/elsewhere' } }).then(String, String);
  assert.match(failure, /POST \/projects answered 404/);
  assert.is(children(), before);
});

test.run();
