// deadline: 240 s, long
import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { production, subscribed } from '../support/production.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const replicas = suite('e2e/replicas');

/** Long enough for two requests to a busy server while the replay is paused. */
const MAX_LAG_SECONDS = 10;

interface Page {
  readonly content: readonly { readonly uid: string }[];
}

replicas(
  'lists come from a replica, and from the primary while it is behind, away or promoted',
  async () => {
    const primary = await own.postgres();
    const standby = await own.standby(primary);
    const receiver = await endpoint();
    const gateway = await production({
      postgres: primary,
      settings: {
        database: {
          replicas: [`127.0.0.1:${standby.port}`],
          max_replica_lag_seconds: MAX_LAG_SECONDS,
        },
        metrics: { metrics_backend: 'pullmetrics', enabled: true },
        enable_feature_flag: ['pullmetrics'],
      },
    });
    const onStandby = async (sql: string) => {
      const client = new pg.Client({ connectionString: standby.url });
      await client.connect();
      await client.query(sql).finally(() => client.end());
    };
    const post = async () =>
      (await gateway.api('POST', '/events', { event_type: 'order.paid', data: {} })).uid;
    const listed = async () => {
      const { content } = (await gateway.api('GET', '/events')) as unknown as Page;
      return content.map(({ uid }) => uid);
    };
    const health = async () => {
      const response = await fetch(`http://127.0.0.1:${gateway.serverPort}/healthz?ready`);
      const { data } = (await response.json()) as {
        data: { components: { name: string; state: string; reason?: string }[] };
      };
      const component = data.components.find(({ name }) => name === 'replicas');
      return `${response.status} ${component?.state} ${component?.reason ?? ''}`;
    };
    const reads = async (server: string) => {
      const text = await (await fetch(`http://127.0.0.1:${gateway.serverPort}/metrics`)).text();
      const line = new RegExp(`^gateway_replica_reads_total{server="${server}"} (\\d+)`, 'm');
      return Number(line.exec(text)?.[1] ?? 0);
    };
    try {
      await subscribed(gateway, receiver.url);
      const first = await post();
      await until('the replica to have the event', async () => (await listed()).includes(first));
      await until('the replica to be well', async () => (await health()) === '200 ok ');
      await onStandby('select pg_wal_replay_pause()');
      const second = await post();
      assert.is((await gateway.api('GET', `/events/${second}`)).uid, second, 'shown at once');
      assert.equal(await listed(), [first], 'the list is that of the replica');
      await until('the list of the primary', async () => (await listed()).includes(second));
      assert.match(await health(), /^200 degraded .* is more than 10 s behind the primary/);
      const doctor = await runGateway(['utils', 'doctor'], { folder: gateway.server.folder });
      assert.match(doctor.stdout, /^warning +replica 127\.0\.0\.1:\d+ .*more than 10 s behind/m);

      await onStandby('select pg_wal_replay_resume()');
      await until('the replica to be well again', async () => (await health()) === '200 ok ');
      const before = await reads(`127.0.0.1:${standby.port}`);
      assert.equal(await listed(), [second, first]);
      assert.ok((await reads(`127.0.0.1:${standby.port}`)) > before);
      const healed = await runGateway(['utils', 'doctor'], { folder: gateway.server.folder });
      assert.match(healed.stdout, /^ok +replica 127\.0\.0\.1:\d+ +at most \d\.\d s behind/m);

      await standby.crash();
      assert.equal(await listed(), [second, first], 'no list fails while the replica is away');
      assert.match(await health(), /^200 degraded Postgres at 127\.0\.0\.1:\d+ /);
      await standby.start();
      await until('the replica to be well again', async () => (await health()) === '200 ok ');
      await onStandby('select pg_promote()');
      await until('the promotion to be seen', async () =>
        (await health()).includes('is not a replica'),
      );
      const third = await post();
      assert.equal(await listed(), [third, second, first]);
      assert.ok((await reads('primary')) > 0);
    } finally {
      await gateway.close();
      await receiver.close();
      await standby.close();
      await primary.close();
    }
  },
);

replicas.run();
