import { createRequire } from 'node:module';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openClient } from '#source-kafka/client';

const session = suite('plugins/source-kafka-session');

interface Connection {
  authenticatedAt: [number, number];
  sessionLifetime: unknown;
  reauthenticationThreshold: number;
  isAuthenticated(): boolean;
}

session(
  'a login counts for half of a session that is shorter than 20 s, and until 10 s before the end of a longer one',
  () => {
    openClient(
      { brokers: ['127.0.0.1:1'], topic_name: 't' },
      { clientId: 'c', retries: 0, logTo: () => () => undefined },
    );
    const require = createRequire(import.meta.url);
    const { prototype } = require('kafkajs/src/network/connection') as { prototype: Connection };
    const Long = require('kafkajs/src/utils/long') as { fromValue(ms: number): unknown };
    const [now] = process.hrtime();
    const isLoggedIn = (lifetimeMs: number, agoSeconds: number) =>
      Object.assign(Object.create(prototype) as Connection, {
        authenticatedAt: [now - agoSeconds, 0],
        sessionLifetime: Long.fromValue(lifetimeMs),
        reauthenticationThreshold: 10_000,
      }).isAuthenticated();
    const cases = [
      [8_000, 2, true],
      [8_000, 5, false],
      [60_000, 40, true],
      [60_000, 52, false],
      [0, 1_000, true],
    ] as const;
    for (const [lifetimeMs, ago, expected] of cases)
      assert.is(isLoggedIn(lifetimeMs, ago), expected, `${lifetimeMs} ms, ${ago} s ago`);
  },
);

session.run();
