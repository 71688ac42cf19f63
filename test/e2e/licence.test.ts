// deadline: 180 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { DAY_MS, licensing } from '../support/licensing.js';
import { production, subscribed } from '../support/production.js';

const licence = suite('e2e/licence');
const distribution = licensing();
const receiver = await endpoint();
const gateway = await production({
  agents: 0,
  settings: {
    license_public_key: distribution.publicKey,
    tracer: { type: 'apm', apm: { agent_url: 'http://127.0.0.1:1' } },
    metrics: { enabled: true, metrics_backend: 'pullmetrics' },
    enable_feature_flag: ['pullmetrics'],
  },
});
await subscribed(gateway, receiver.url);
licence.after(async () => {
  await gateway.close();
  await receiver.close();
});

/** Runs a test with one agent under this licence, which delivers whatever the licence. */
async function licensed(
  token: string,
  test: (agent: { log: string; port: number }) => Promise<void>,
): Promise<void> {
  const { process, port } = await gateway.startAgent(['--license-key', token]);
  try {
    const n = receiver.requests.length + 1;
    await gateway.api('POST', '/events', { event_type: 'order.paid', data: { n } });
    const requests = await receiver.received(n);
    assert.is(requests.at(-1)?.body.toString(), `{"n":${n}}`);
    await test({ log: process.stderr, port });
  } finally {
    await process.terminate();
  }
}

async function plugins(port: number): Promise<Record<string, { state: string; reason?: string }>> {
  const { data } = (await (await fetch(`http://127.0.0.1:${port}/healthz`)).json()) as {
    data: { plugins: { name: string; state: string; reason?: string }[] };
  };
  return Object.fromEntries(data.plugins.map(({ name, ...row }) => [name, row]));
}

const exposition = async (port: number) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

licence(
  'with an expired token an agent says so and delivers, without the apm tracer and with the metrics of the community licence',
  () =>
    licensed(
      distribution.licence({ entitlements: ['apm', 'otel'], expiresInMs: -DAY_MS }),
      async ({ log, port }) => {
        assert.match(
          log,
          /"level":"warn".*"message":"the licence of Acme expired at [^"]+; the community licence applies"/,
        );
        const { apm, pullmetrics } = await plugins(port);
        assert.equal(
          [apm?.state, apm?.reason],
          ['inactive', 'the community licence does not include apm'],
        );
        assert.is(pullmetrics?.state, 'active');
        assert.match(await exposition(port), /^gateway_\w+/m);
      },
    ),
);

licence(
  'a licence that leaves out pullmetrics gives an empty exposition with the reason, has the apm tracer, and delivers; what it lists beyond is said',
  () =>
    licensed(
      distribution.licence({ entitlements: ['apm', 'teleportation'] }),
      async ({ log, port }) => {
        assert.match(log, '"organisation":"Acme"');
        assert.is(
          log.split('The licence has an entitlement that no installed plugin declares').length,
          2,
          'once',
        );
        assert.match(log, /"level":"warn".*"entitlements":\["teleportation"\]/);
        const { apm, pullmetrics } = await plugins(port);
        assert.is(apm?.state, 'active');
        assert.is(pullmetrics?.state, 'inactive');
        const text = await exposition(port);
        assert.match(
          text,
          /^# .*pullmetrics is inactive: the licence of Acme does not include pullmetrics; /,
        );
        assert.not.match(text, /^[^#\n]/m);
      },
    ),
);

licence('with the clock behind the token an agent says what the clock says, and delivers', () =>
  licensed(
    distribution.licence({ entitlements: ['apm'], issuedInMs: DAY_MS }),
    async ({ log, port }) => {
      assert.match(
        log,
        /the licence of Acme was issued at \S+, but the clock of this machine says 20\d\d-/,
      );
      assert.is((await plugins(port))['apm']?.state, 'inactive');
    },
  ),
);

licence.run();
