import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { crossChecks } from '#core/config/cross-checks';
import type { Config } from '#core/config/settings';
import { isGatewayError, type GatewayError } from '#core/errors/errors';

const crossChecking = suite('core/config/cross-checks');

function refusal(
  file: Record<string, unknown>,
  more: Parameters<typeof resolveConfig>[0] = {},
): GatewayError {
  try {
    resolveConfig({ env: {}, file, ...more });
  } catch (error) {
    assert.ok(isGatewayError(error), String(error));
    return error;
  }
  throw new Error('it was accepted');
}

/** Sentences about settings that no command refuses directly. */
function told(file: Record<string, unknown>): string[] {
  const { config, origins } = resolveConfig({ env: {}, file });
  return crossChecks(config, origins).map(({ sentence }) => sentence);
}

const from = ' (from the configuration)';

crossChecking('the defaults, and settings that fit together, have none', () => {
  assert.equal(told({}), []);
  assert.equal(
    told({
      kv: { sentinel: { master_name: 'mine', addresses: ['a:1'], password: 'x' }, database: '3' },
    }),
    [],
  );
  assert.equal(
    told({
      kv: {
        cluster: { addresses: ['a:1'] },
        scheme: 'rediss',
        tls: { cert_file: 'a', key_file: 'b' },
      },
    }),
    [],
  );
  assert.equal(
    told({ kv: { type: 'in-memory', cluster: { addresses: ['a:1'] }, database: '3' } }),
    [],
  );
  assert.equal(
    told({
      smtp: { url: 'a', from: 'a@b.c' },
      billing: { enabled: true, url: 'http://a', api_key: 'x' },
    }),
    [],
  );
  assert.equal(
    told({ server: { http: { ssl: true, ssl_cert_file: 'a', ssl_key_file: 'b' } } }),
    [],
  );
});

crossChecking(
  'every command refuses those of how Postgres and KV are reached, with the place they come from',
  () => {
    const expected: [Record<string, unknown>, string][] = [
      [
        { cluster: { addresses: ['a:1'] }, sentinel: { master_name: 'm', addresses: ['b:2'] } },
        'kv.cluster.addresses and kv.sentinel are both set; set only one of them',
      ],
      [
        { sentinel: { addresses: ['a:1'] } },
        'kv.sentinel.addresses is set without kv.sentinel.master_name (--kv-sentinel-master-name, GATEWAY_KV_SENTINEL_MASTER_NAME)',
      ],
      [
        { sentinel: { master_name: 'm' } },
        'kv.sentinel.master_name is set without kv.sentinel.addresses (--kv-sentinel-addresses, GATEWAY_KV_SENTINEL_ADDRESSES)',
      ],
      [
        { cluster: { addresses: ['a:1'] }, database: '2' },
        'kv.database is 2, but a Redis Cluster (kv.cluster.addresses) has only database 0',
      ],
      [
        { cluster: { addresses: [':6379'] } },
        'kv.cluster.addresses holds ":6379", which names no host or no port',
      ],
      [{ database: 'zero' }, 'kv.database must be a number, not "zero"'],
      [
        { tls: { ca_file: '/ca.pem' } },
        'kv.tls.ca_file is set, but kv.scheme is redis, which does not use TLS; set kv.scheme (--kv-scheme, GATEWAY_KV_SCHEME) to rediss',
      ],
      [
        { scheme: 'rediss', tls: { cert_file: 'a' } },
        'kv.tls.cert_file is set without kv.tls.key_file (--kv-tls-key-file, GATEWAY_KV_TLS_KEY_FILE)',
      ],
      [
        { scheme: 'rediss', tls: { key_file: 'a' } },
        'kv.tls.key_file is set without kv.tls.cert_file (--kv-tls-cert-file, GATEWAY_KV_TLS_CERT_FILE)',
      ],
      [
        { scheme: 'rediss', tls: { ca_file: 'a', insecure_skip_verify: true } },
        'kv.tls.insecure_skip_verify is set, so kv.tls.ca_file has no effect; remove one of them',
      ],
    ];
    for (const [kv, sentence] of expected) {
      const error = refusal({ kv });
      assert.equal([error.code, error.message], ['invalid_settings', sentence + from]);
    }
    assert.match(
      refusal({ database: { options: 'sslmode=x' } }).message,
      /^database\.options has sslmode of "x"; it must be one of .*\(from the configuration\)$/,
    );
  },
);

crossChecking('those that come from flags alone are wrong use, and all are told at once', () => {
  const flags = { 'kv-cluster-addresses': ['a:1'], 'kv-database': '3', 'db-options': 'sslmode=no' };
  const error = refusal({}, { flags, command: 'agent' });
  assert.is(error.code, 'wrong_flags');
  for (const part of ['2 flags are wrong', '(from --kv-database)', '(from --db-options)'])
    assert.match(error.message, part);
  assert.is(
    refusal({ kv: { database: '3' } }, { flags: { 'kv-cluster-addresses': ['a:1'] } }).code,
    'invalid_settings',
  );
});

crossChecking('those of one process alone are listed, and keep no command from running', () => {
  assert.equal(told({ server: { http: { ssl: true } } }), [
    `server.http.ssl is true without server.http.ssl_cert_file (--ssl-cert-file, GATEWAY_SSL_CERT_FILE)${from}`,
    `server.http.ssl is true without server.http.ssl_key_file (--ssl-key-file, GATEWAY_SSL_KEY_FILE)${from}`,
  ]);
  assert.equal(told({ server: { http: { ssl_key_file: 'a' } } }), [
    `server.http.ssl_key_file is set, but server.http.ssl (--ssl, GATEWAY_SSL) is not true${from}`,
  ]);
  assert.equal(told({ smtp: { url: 'a' } }), [
    `smtp.url is set without smtp.from (--smtp-from, GATEWAY_SMTP_FROM), so no notifications are sent${from}`,
  ]);
  assert.equal(
    told({
      smtp: { url: 'a', from: 'a@b.c', insecure_skip_verify: true, ca_file: 'a' },
    }),
    [`smtp.insecure_skip_verify is set, so smtp.ca_file has no effect; remove one of them${from}`],
  );
  assert.equal(told({ billing: { enabled: true, api_key: 'x' } }), [
    `billing.enabled is true without billing.url (--billing-url, GATEWAY_BILLING_URL)${from}`,
  ]);
});

crossChecking('without origins the sentences name the settings alone', () => {
  const { config } = resolveConfig({ env: {}, file: {} });
  const changed = { ...config, billing: { enabled: true, url: 'http://a' } } as Config;
  const [problem] = crossChecks(changed);
  assert.equal(problem, {
    key: 'billing.enabled',
    origin: 'billing.enabled',
    sentence:
      'billing.enabled is true without billing.api_key (--billing-api-key, GATEWAY_BILLING_API_KEY)',
  });
});

crossChecking.run();
