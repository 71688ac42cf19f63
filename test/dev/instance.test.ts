import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startInstance } from '#dev/instance';
import { choosePorts } from '#dev/services/ports';
import { openState, resolveSettings } from '#dev/state';
import { silentLog } from '#core/logging/log';
import { discover } from '#core/plugins/discovery';
import { Lifecycle } from '#core/process/lifecycle';
import { root } from '../meta/house.js';
import { database } from '../support/database.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';

const instance = suite('dev/instance');

/**
 * The reconciler ignores events younger than five seconds: an event delivered earlier came through
 * KV.
 */
const BEFORE_RECONCILER_MS = 4_000;

instance(
  'an event that is made over the API is delivered at once: server and agent share their KV',
  async () => {
    const db = await database();
    const folder = tempFolder('instance');
    fs.chmodSync(folder, 0o755); // if started by root, Postgres runs as another user
    process.chdir(folder);
    const discovery = discover({ root });
    const ports = await choosePorts({});
    const state = await openState({ isFresh: false });
    const lifecycle = new Lifecycle(silentLog);
    const settings = resolveSettings(state, ports, {}, discovery.rows);
    const resolved = {
      ...settings,
      config: {
        ...settings.config,
        database: { ...settings.config.database, ...db.connection, password: '' },
      },
    };
    try {
      const tell = () => undefined;
      const { api, project, inbox } = await startInstance({
        state,
        ports,
        resolved,
        discovery,
        log: silentLog,
        lifecycle,
        tell,
      });
      const event = {
        event_type: 'order.paid',
        data: { n: 1 },
        endpoint_id: state.record.endpoint_id,
      };
      await api.call('POST', `${project}/events`, event);
      const { body } = await until('the delivery', () => inbox.receipts[0], {
        withinMs: BEFORE_RECONCILER_MS,
      });
      assert.equal(JSON.parse(body), { n: 1 });
    } finally {
      await lifecycle.close({ deadlineMs: 20_000 });
      state.unlock();
      await db.close();
    }
  },
);

instance.run();
