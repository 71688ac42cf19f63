// long
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../support/gateway.js';
import { licensing } from '../support/licensing.js';
import { discard, tempFolder } from '../support/start/keep.js';

const refused = suite('e2e/tracers-refused');

const encryption_key = Buffer.alloc(32, 7).toString('base64');
/** A tracer that cannot start ends the process before it connects to Postgres. */
const strict = { encryption_key, plugins: { strict: true } };
const issuer = licensing();
const folder = tempFolder('tracers-refused');
refused.after(() => {
  discard(folder);
});

/** Runs an agent that must not start. Returns its output. */
async function refusal({
  flags = [],
  env = {},
  config = {},
}: {
  flags?: string[];
  env?: Record<string, string>;
  config?: object;
}) {
  const { code, stdout, stderr } = await runGateway(['agent', '--port', '0', ...flags], {
    config: { ...strict, ...config },
    env,
  });
  assert.is(code, stderr.includes('plugins.strict') ? 1 : 2, stderr);
  assert.not.match(stdout + stderr, 'planted-key');
  return stderr;
}

refused(
  '`gateway config check` lists everything that is wrong with the settings of the tracers at once, without their secrets',
  async () => {
    const tracer = {
      type: 'otel',
      otel: {
        collector_url: 'http://collector:4318/v1/traces',
        sample_rate: 7,
        insecure_skip_verify: 'maybe',
      },
      errtrack: { dsn: 'https://planted-key@sentry.example.com', debug: 'x' },
      apm: { agent_url: 'apm:8200' },
    };
    const env = { GATEWAY_ERRTRACK_SAMPLE_RATE: '-1' };
    const { code, stdout, stderr } = await runGateway(['config', 'check'], {
      config: { encryption_key, tracer },
      env,
    });
    assert.is(code, 1);
    for (const sentence of [
      'tracer.otel.collector_url must be an address such as collector:4317',
      'tracer.otel.sample_rate must be at most 1, not 7',
      'tracer.otel.insecure_skip_verify must be true or false',
      'tracer.errtrack.dsn must be a DSN such as https://<key>@<host>/<project>, not what was given',
      'tracer.errtrack.sample_rate must be at least 0, not "-1" (from GATEWAY_ERRTRACK_SAMPLE_RATE)',
      'tracer.errtrack.debug must be true or false',
      'tracer.apm.agent_url must be a URL such as',
    ])
      assert.ok(stderr.includes(sentence), `${sentence}\n${stderr}`);
    assert.match(stderr, '7 settings are wrong');
    assert.not.match(stdout + stderr, 'planted-key');
  },
);

refused(
  'a tracer that nobody knows, and one whose settings are missing, are refused by name',
  async () => {
    assert.match(
      await refusal({ flags: ['--tracer-type', 'datadog'] }),
      /no tracer plugin named datadog is installed/,
    );
    assert.match(
      await refusal({ env: { GATEWAY_TRACER_PROVIDER: 'errtrack' } }),
      /tracer\.errtrack\.dsn is not set/,
    );
    assert.match(
      await refusal({ config: { tracer: { type: 'otel' } } }),
      /tracer\.otel\.collector_url is not set/,
    );
  },
);

refused('a DSN that is none is refused with the form that it should have', async () => {
  const stderr = await refusal({
    flags: [
      '--tracer-type',
      'errtrack',
      '--errtrack-dsn',
      'https://planted-key@sentry.example.com',
    ],
  });
  assert.match(stderr, 'tracer.errtrack.dsn must be a DSN such as https://<key>@<host>/<project>');
});

refused(
  'apm is refused without a licence that includes it, and with one by a URL that is none',
  async () => {
    const flags = ['--tracer-type', 'apm', '--apm-agent-url', 'http://127.0.0.1:1'];
    assert.match(
      await refusal({ flags }),
      /the community licence does not include apm; set license_key \/ GATEWAY_LICENSE_KEY/,
    );
    const licence = {
      license_public_key: issuer.publicKey,
      license_key: issuer.licence({ entitlements: ['otel'] }),
    };
    assert.match(
      await refusal({ flags, config: licence }),
      /the licence of Acme does not include apm|does not include apm/,
    );
    const entitled = { license_public_key: issuer.publicKey, license_key: issuer.licence() };
    const wrong = await refusal({
      flags: ['--tracer-type', 'apm', '--apm-agent-url', 'apm:8200'],
      config: entitled,
    });
    assert.match(wrong, 'tracer.apm.agent_url must be a URL');
  },
);

refused(
  'an authority that cannot be read, and half a header, are refused when the collector is to be reached',
  async () => {
    const flags = ['--tracer-type', 'otel', '--otel-collector-url', 'collector:4317'];
    const unread = await refusal({ flags: [...flags, '--otel-ca-file', '/nowhere/ca.pem'] });
    assert.match(
      unread,
      'otel: it failed to start: tracer.otel.ca_file is /nowhere/ca.pem, and it cannot be read (ENOENT); Name a file',
    );
    const half = await refusal({ flags, env: { GATEWAY_OTEL_AUTH_HEADER_VALUE: 'planted-key' } });
    assert.match(half, 'header_value is set, but tracer.otel.otel_auth.header_name is not');
  },
);

refused('a second tracer, which something in NODE_OPTIONS has brought, is refused', async () => {
  const file = path.join(folder, 'other.mjs');
  const api = pathToFileURL(fileURLToPath(import.meta.resolve('@opentelemetry/api'))).href;
  fs.writeFileSync(
    file,
    `import api from '${api}'; api.trace.setGlobalTracerProvider({ getTracer: () => ({}) });`,
  );
  const stderr = await refusal({
    flags: ['--tracer-type', 'otel', '--otel-collector-url', 'collector:4317'],
    env: { NODE_OPTIONS: `--import ${pathToFileURL(file).href}` },
  });
  assert.match(
    stderr,
    /Another tracer is registered in this process.*; Omit tracer\.type, or remove the other tracer/,
  );
});

refused.run();
