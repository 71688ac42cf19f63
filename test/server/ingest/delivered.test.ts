import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ENCRYPTION_KEY } from '../../agent/records.js';
import { runAgent } from '../../agent/running.js';
import { endpoint as receiver } from '../../support/endpoint.js';
import { makeProject, startApi } from '../api.js';
import { httpSource, sign } from './http-source.js';

const delivered = suite('server/ingest/delivered');

delivered(
  'a webhook that a provider posts is delivered to the endpoint that subscribes to it, and no agent tries to read its source',
  async () => {
    const at = await receiver();
    const api = await startApi({
      file: { encryption_key: ENCRYPTION_KEY, delivery: { allowed_networks: ['127.0.0.0/8'] } },
    });
    const project = await makeProject(api, { type: 'incoming' });
    const agent = await runAgent({ db: api.db, kv: api.kv, projectId: project.id });
    try {
      const { uid } = (
        await api.call('POST', `${project.path}/endpoints`, { name: 'ours', url: at.url })
      ).body.data;
      const filter_config = {
        event_types: ['push'],
        filter: { headers: { 'x-github-event': 'push' }, body: { ref: 'main' } },
      };
      await api.call('POST', `${project.path}/subscriptions`, {
        name: 'pushes',
        endpoint_id: uid,
        filter_config,
      });
      const source = await httpSource(api, project, {
        verifier: { type: 'github', secret: 's3cret' },
      });
      agent.wiring.start();
      await agent.configCache.refresh();
      const body = '{"ref": "main", "n": 1.50}';
      const post = (text: string, event: string) =>
        source.post(text, {
          'x-github-event': event,
          'x-hub-signature-256': `sha256=${sign('s3cret', text)}`,
        });
      assert.is((await post('{"ref":"other"}', 'push')).status, 200);
      assert.is((await post(body, 'ping')).status, 200);
      assert.is((await post(body, 'push')).status, 200);
      await at.received(1);
      const [request] = at.requests;
      assert.equal(
        [at.requests.length, String(request!.body), request!.headers['x-github-event']],
        [1, body, 'push'],
      );
      assert.equal(
        agent.health.components.filter(({ name }) => name.startsWith('source')),
        [],
      );
    } finally {
      await agent.close();
      await api.close();
      await at.close();
    }
  },
);

delivered.run();
