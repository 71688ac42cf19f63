import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError, type GatewayError } from '#core/errors/errors';
import {
  explainKvError,
  explainListenError,
  kvReason,
  networkReason,
} from '#core/errors/connection-errors';
import { databaseReason, explainDatabaseError } from '#core/errors/database-errors';
import { loopback } from '../../support/ports.js';

const failures = suite('core/errors/connection-errors');
const postgres = { host: 'db', port: 5432, database: 'gateway', username: 'ada' };
const redis = { host: 'kv', port: 6379 };
const failed = (fields: object, message = 'failed') => Object.assign(new Error(message), fields);

function known(error: Error): GatewayError {
  assert.ok(isGatewayError(error), `${error.name}: ${error.message}`);
  return error;
}

failures('an error of Postgres becomes the place, the reason and the setting', () => {
  const expected: [object, string, string][] = [
    [
      { code: 'ECONNREFUSED' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: nothing listens there',
    ],
    [
      { code: 'ENOTFOUND' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: no such host',
    ],
    [
      { code: '57P03' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: it is starting or stopping',
    ],
    [
      { code: '57P02' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: it restarts after a crash of one of its processes',
    ],
    [
      { code: '08006' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: the connection was cut',
    ],
    [
      { message: 'Client has encountered a connection error and is not queryable' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: the connection was cut',
    ],
    [{ code: '28P01' }, 'database_refused', 'Postgres at db:5432 refused the user ada'],
    [{ code: '3D000' }, 'database_missing', 'there is no database gateway on Postgres at db:5432'],
    [
      { code: '53300' },
      'database_full',
      'Postgres at db:5432 has no free connections: max_connections is used up',
    ],
    [
      { code: '53300', message: 'too many connections for role "ada"' },
      'database_full',
      'Postgres at db:5432 has no free connections: the connection limit of the role is used up',
    ],
    [
      { code: '42501', message: 'permission denied for table events' },
      'database_forbidden',
      'Postgres at db:5432 denies the user ada a permission that the gateway needs: permission denied for table events',
    ],
    [
      { code: '08P01', message: 'unsupported startup parameter: options' },
      'database_pooled',
      'a connection pooler answers at db:5432, where Postgres itself is expected: it refuses a startup parameter',
    ],
    [
      { code: 'CERT_HAS_EXPIRED' },
      'database_tls',
      'TLS with Postgres at db:5432 failed: its certificate has expired',
    ],
    [
      { code: 'SELF_SIGNED_CERT_IN_CHAIN' },
      'database_tls',
      'TLS with Postgres at db:5432 failed: its certificate is signed by an unknown authority',
    ],
    [
      { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
      'database_tls',
      'TLS with Postgres at db:5432 failed: its certificate is self-signed',
    ],
    [
      { code: '28000', message: 'no pg_hba.conf entry for host "x", no encryption' },
      'database_tls',
      'TLS with Postgres at db:5432 failed: it requires TLS for this user',
    ],
    [
      { code: '25006' },
      'database_read_only',
      'Postgres at db:5432 is read-only: it is a replica, or default_transaction_read_only is on',
    ],
    [
      { code: '57014' },
      'database_timeout',
      'Postgres at db:5432 cancelled a statement: it took longer than statement_timeout',
    ],
    [
      { code: '55P03' },
      'database_timeout',
      'Postgres at db:5432 cancelled a statement: it waited longer than lock_timeout for a lock',
    ],
    [
      { message: 'Query read timeout' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: no answer in time',
    ],
    [
      { name: 'KnexTimeoutError' },
      'database_busy',
      'no connection to Postgres at db:5432 became free in time: all connections of this process are in use',
    ],
    [
      { message: 'Connection terminated due to connection timeout' },
      'database_unreachable',
      'Postgres at db:5432 cannot be reached: no answer in time',
    ],
  ];
  for (const [fields, code, sentence] of expected) {
    const error = known(explainDatabaseError(failed(fields), postgres));
    assert.equal([error.code, error.message], [code, sentence]);
    assert.match(error.fix, /database\./);
    assert.ok(error.cause);
  }
});

failures('what Postgres has run out of is told', () => {
  for (const [code, reason] of [
    ['53100', 'its disk is full'],
    ['53200', 'its memory is used up'],
    ['58030', 'it cannot read or write its files'],
  ]) {
    const error = known(explainDatabaseError(failed({ code }), postgres));
    assert.equal(
      [error.code, error.httpStatus, error.message],
      ['database_exhausted', 503, `Postgres at db:5432 cannot write: ${reason}`],
    );
  }
});

failures(
  'for health every error of Postgres has a sentence and a fix, one that nobody foresaw too',
  () => {
    assert.equal(databaseReason(failed({ code: '53100' }), postgres), {
      reason: 'Postgres at db:5432 cannot write: its disk is full',
      fix: 'free disk space or memory on its host; the gateway needs no restart',
    });
    assert.equal(
      databaseReason(failed({ code: 'XX000' }, 'tuple concurrently updated'), postgres),
      {
        reason: 'Postgres at db:5432 answers with an error: tuple concurrently updated (XX000)',
        fix: 'read the log of Postgres',
      },
    );
  },
);

failures(
  'for health a Redis that answers and takes nothing is not one that does not answer',
  () => {
    for (const [message, reason] of [
      ["OOM command not allowed when used memory > 'maxmemory'.", 'its memory is full (maxmemory)'],
      ["READONLY You can't write against a read only replica.", 'it is a replica'],
      [
        'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist on disk.',
        'it cannot save its data to its disk',
      ],
      ['LOADING Redis is loading the dataset in memory', 'it is still loading its data'],
    ] as const) {
      const { code, message: sentence, fix } = known(explainKvError(new Error(message), redis));
      assert.equal(
        [code, sentence],
        ['kv_denied', `Redis at kv:6379 accepts no writes: ${reason}`],
      );
      assert.is(kvReason(new Error(message), redis), `${sentence}; ${fix}`);
      assert.not.match(fix, 'kv.password');
    }
  },
);

failures('the reason is found in what an error is made of', () => {
  const several = new AggregateError(
    [failed({ code: 'ECONNREFUSED' }), failed({ code: 'ECONNREFUSED' })],
    'all addresses failed',
  );
  assert.is(networkReason(several), 'nothing listens there');
  assert.is(
    networkReason(new Error('outer', { cause: failed({ code: 'ETIMEDOUT' }) })),
    'no answer in time',
  );
  assert.is(
    networkReason(failed({ code: 'EINVAL', syscall: 'getaddrinfo' })),
    'the host name is not valid',
  );
  assert.is(
    networkReason(failed({ code: 'EADDRNOTAVAIL', syscall: 'connect' })),
    'the system answers EADDRNOTAVAIL',
  );
  assert.is(networkReason(failed({ code: 'EACCES', syscall: 'open' })), undefined);
  assert.is(networkReason(new Error('other')), undefined);
  assert.is(networkReason(undefined), undefined);
});

failures('an error that is not about reaching Postgres comes back as it is', () => {
  const syntax = failed({ code: '42601' }, 'syntax error');
  assert.is(explainDatabaseError(syntax, postgres), syntax);
  assert.instance(explainDatabaseError('a text', postgres), Error);
});

failures('an error of Redis becomes the place, the reason and the setting', () => {
  const refused = known(
    explainKvError(failed({}, 'WRONGPASS invalid username-password pair'), redis),
  );
  assert.equal(
    [refused.code, refused.message],
    [
      'kv_refused',
      'Redis at kv:6379 refused the connection: the user or password is wrong or missing',
    ],
  );
  assert.is(
    known(explainKvError(failed({}, 'NOAUTH Authentication required.'), redis)).code,
    'kv_refused',
  );
  assert.is(
    known(explainKvError(failed({}, 'ERR DB index is out of range'), redis)).message,
    'Redis at kv:6379 refused the connection: it has no database of that number',
  );
  assert.is(known(explainKvError(failed({ code: 'ECONNREFUSED' }), redis)).code, 'kv_unreachable');
});

failures('what Redis denies to a user that it let in is no matter of the password', () => {
  for (const [message, reason, fix] of [
    [
      "NOPERM User gw has no permissions to run the 'eval' command",
      'the ACL of its user refuses the command EVAL',
      '+@scripting',
    ],
    ['MOVED 866 127.0.0.1:7001', 'it is a node of a Cluster', 'kv.cluster.addresses'],
  ] as const) {
    const denied = known(explainKvError(new Error(message), redis));
    assert.equal(
      [denied.code, denied.message],
      ['kv_denied', `Redis at kv:6379 refuses commands: ${reason}`],
    );
    assert.match(denied.fix, fix);
    assert.not.match(denied.fix, 'kv.password');
  }
});

failures(
  'of Sentinels and a Cluster the error names the addresses that were tried, and their settings',
  () => {
    const sentinels = { ...redis, sentinel: { addresses: ['a:1', 'b:2'] } };
    const away = known(
      explainKvError(
        new Error('All sentinels are unreachable. Last error: connect ECONNREFUSED 1.2.3.4:1'),
        sentinels,
      ),
    );
    assert.is(
      away.message,
      'the Redis master behind the Sentinels a:1, b:2 cannot be reached: nothing listens there',
    );
    assert.match(
      away.fix,
      'kv.sentinel.addresses (--kv-sentinel-addresses, GATEWAY_KV_SENTINEL_ADDRESSES)',
    );
    const refused = known(
      explainKvError(
        new Error('All sentinels are unreachable. Last error: NOAUTH Authentication required.'),
        sentinels,
      ),
    );
    assert.equal(
      [refused.code, refused.fix.includes('kv.sentinel.password')],
      ['kv_refused', true],
    );

    const cluster = { ...redis, cluster: { addresses: ['a:1', 'b:2'] } };
    const lost = failed(
      { name: 'ClusterAllFailedError', lastNodeError: failed({}, 'connect ETIMEDOUT') },
      'Failed to refresh slots cache.',
    );
    assert.is(
      known(explainKvError(lost, cluster)).message,
      'the Redis Cluster with a:1, b:2 cannot be reached: no answer in time',
    );
    const down = known(explainKvError(new Error('CLUSTERDOWN The cluster is down'), cluster));
    assert.is(
      down.message,
      'the Redis Cluster with a:1, b:2 cannot be reached: the Cluster is down: nodes are missing, or not all slots are served',
    );
  },
);

failures(
  'what ioredis says of commands while Redis was never reached tells where that is',
  async () => {
    const { Redis } = await import('ioredis');
    const never = createServer();
    const port = await loopback(never);
    never.close();
    await once(never, 'close');
    const place = { host: '127.0.0.1', port };
    const client = new Redis({
      ...place,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => 60_000,
    });
    try {
      const [why] = (await once(client, 'error')) as [Error];
      assert.is(
        known(explainKvError(why, place)).message,
        `Redis at 127.0.0.1:${port} cannot be reached: nothing listens there`,
      );
      const unwritable = await client.ping().catch((error: Error) => error);
      client.disconnect();
      const closed = await client.ping().catch((error: Error) => error);
      for (const error of [unwritable, closed, new Error('Connection is closed.')]) {
        const explained = known(explainKvError(error, place));
        assert.is(
          explained.message,
          `Redis at 127.0.0.1:${port} cannot be reached: there is no connection to it`,
        );
        assert.match(explained.fix, /kv\.host/);
      }
    } finally {
      client.disconnect();
    }
  },
);

failures('a real refused connection and a real taken port are explained', async () => {
  const server = createServer();
  const port = await loopback(server);
  const place = { port, bind: '127.0.0.1', setting: 'server.http.port', flag: '--port' };

  const second = createServer();
  second.listen(port, '127.0.0.1');
  const [taken] = (await once(second, 'error')) as [Error];
  const error = known(explainListenError(taken, place));
  assert.equal(
    [error.code, error.message],
    ['port_in_use', `port ${port} on 127.0.0.1 is already in use`],
  );

  server.close();
  await once(server, 'close');
  const [refused] = (await once(connect(port, '127.0.0.1'), 'error')) as [Error];
  assert.is(
    known(explainDatabaseError(refused, { ...postgres, host: '127.0.0.1', port })).message,
    `Postgres at 127.0.0.1:${port} cannot be reached: nothing listens there`,
  );
});

failures('an address that is not of this machine is explained', () => {
  const place = { port: 80, bind: '192.0.2.1', setting: 'server.http.port', flag: '--port' };
  assert.is(
    known(explainListenError(failed({ code: 'EADDRNOTAVAIL' }), place)).message,
    'cannot listen on 192.0.2.1:80: this machine has no such address',
  );
  assert.is(
    known(explainListenError(failed({ code: 'EACCES' }), place)).message,
    'cannot listen on 192.0.2.1:80: this user may not open that port',
  );
});

failures.run();
