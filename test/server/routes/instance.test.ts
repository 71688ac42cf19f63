import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { registerAgent } from '#store/deliveries/agents';
import { makeProject, startApi, type Api } from '../api.js';

const instance = suite('server/routes/instance');

const PROCESS_KEY = 'process-key-0123456789';
const SECRET = 'a-password-that-nobody-sees';

let api: Api;
instance.before(async () => {
  const file = {
    server: { auth: { api_keys: [PROCESS_KEY] } },
    enable_feature_flag: ['pullmetrics'],
    metrics: { bearer_token: SECRET },
  };
  api = await startApi({ file });
});
instance.after(() => api.close());

const PATHS = ['plugins', 'feature-flags', 'license', 'settings', 'health', 'usage'].map(
  (name) => `/instance/${name}`,
);

instance(
  'it is for credentials of the process and for instance admins, and for no key of a project',
  async () => {
    const project = await makeProject(api);
    const users = 'update users set is_instance_admin = $1';
    for (const path of PATHS) {
      assert.is((await api.call('GET', path, undefined, { key: PROCESS_KEY })).status, 200);
      assert.is(
        (await api.call('GET', path)).status,
        200,
        'the user that bootstrap made is an instance admin',
      );
      assert.is((await api.call('GET', path, undefined, { key: project.key })).status, 403);
      assert.is((await api.call('GET', path, undefined, { key: null })).status, 401);
      await api.db.rows(users, [false]);
      const { status, body } = await api.call('GET', path);
      assert.equal([status, body.code], [403, 'forbidden']);
      await api.db.rows(users, [true]);
    }
  },
);

instance('plugins are listed with why they are inactive', async () => {
  const { content } = (await api.call('GET', '/instance/plugins')).body.data;
  const otel = content.find((it: { name: string }) => it.name === 'otel');
  assert.equal([otel.kind, otel.state, otel.code], ['tracer', 'inactive', 'plugin_not_selected']);
  assert.ok(
    content.some(
      (it: { name: string; state: string }) => it.name === 'kafka' && it.state === 'active',
    ),
  );
});

instance('feature flags and settings have their origin, and secrets are masked', async () => {
  const flags = (await api.call('GET', '/instance/feature-flags')).body.data.content;
  const { enabled, origin } = flags.find((it: { name: string }) => it.name === 'pullmetrics');
  assert.equal([enabled, origin], [true, 'the configuration']);
  const answer = await api.call('GET', '/instance/settings');
  const settings = new Map<
    string,
    { value: unknown; default: unknown; origin: string; summary: string }
  >(answer.body.data.content.map((it: { key: string }) => [it.key, it]));
  assert.equal(
    [settings.get('metrics.bearer_token')!.origin, answer.text.includes(SECRET)],
    ['the configuration', false],
  );
  assert.equal(
    [settings.get('retention.days')!.origin, typeof settings.get('retention.days')!.value],
    ['default', 'number'],
  );
  assert.is(settings.get('retention.days')!.default, settings.get('retention.days')!.value);
  assert.is(settings.get('metrics.bearer_token')!.default, null);
  assert.ok(settings.get('server.http.port')!.summary);
});

instance('the licence in force is shown', async () => {
  const { kind, entitlements, problem } = (await api.call('GET', '/instance/license')).body.data;
  assert.equal(
    [kind, entitlements, problem],
    ['community', ['errtrack', 'otel', 'pullmetrics'], null],
  );
});

instance(
  'health tells the components of the server, and agents that live or are dead',
  async () => {
    await registerAgent(api.db.pool, 'first', 60_000);
    await registerAgent(api.db.pool, 'second', 0, { readsSources: false });
    const { server, agents } = (await api.call('GET', '/instance/health')).body.data;
    assert.is(server.state, 'ok');
    assert.equal(
      server.components.map((it: { name: string; state: string }) => [it.name, it.state]),
      [
        ['kv', 'ok'],
        ['migrations', 'ok'],
        ['postgres', 'ok'],
      ],
    );
    assert.equal(
      agents.map((it: { name: string; state: string; reads_sources: boolean }) => [
        it.name,
        it.state,
        it.reads_sources,
      ]),
      [
        ['first', 'alive', true],
        ['second', 'dead', false],
      ],
    );
  },
);

instance.run();
