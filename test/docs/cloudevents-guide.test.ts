// deadline: 240 s
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { kafka, randomName } from '../support/kafka.js';
import { production, subscribed, type Created } from '../support/production.js';
import { installed } from '../support/start/packages.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks } from './page.js';

const guide = suite('docs/cloudevents-guide');

interface Sent {
  readonly id: string;
  readonly source: string;
  readonly subject?: string;
}

guide('CloudEvents come in and go out as docs/guides/cloudevents.md says', async () => {
  for (const program of ['curl', 'jq']) installed(program, [program], 'for the guides');
  const [topics, receiver] = await Promise.all([kafka(), endpoint()]);
  const gateway = await production({ agents: 1 });
  try {
    const { uid: ENDPOINT_ID } = await subscribed(gateway, receiver.url);
    const topic = await topics.topic();
    const { username, password } = topics.users.scram;
    const { uid: SOURCE_ID } = await gateway.api<Created>('POST', '/sources', {
      name: 'Topic',
      type: 'pub_sub',
      forward_headers: [],
      pub_sub: {
        type: 'kafka',
        kafka: {
          brokers: [topics.listeners.saslPlaintext],
          topic_name: topic,
          consumer_group_id: randomName('group'),
          auth: { type: 'scram', hash: 'SHA512', username, password, tls: false },
        },
      },
    });
    const run = (section: string) =>
      runBlocks(
        blocksOf('docs/guides/cloudevents.md').filter((it) => it.section === section),
        {
          cwd: gateway.run.folder,
          env: {
            GATEWAY_URL: `http://127.0.0.1:${gateway.serverPort}`,
            GATEWAY_KEY: gateway.apiKey,
            PROJECT_ID: gateway.projectId,
            SOURCE_ID,
            ENDPOINT_ID,
          },
        },
      );
    await run('From a broker');
    await run('To an endpoint');
    const format = async () =>
      (await gateway.api<Created>('GET', `/endpoints/${ENDPOINT_ID}`))['format'];
    await until('the format', async () => (await format()) === 'cloudevents');
    await run('Over HTTP');
    assert.ok(fs.existsSync(path.join(gateway.run.folder, 'answer.txt')), 'the handshake');

    const value = '{"n":9007199254740993}';
    const headers = { ce_specversion: '1.0', ce_id: '3', ce_source: '/topic', ce_type: 'a' };
    const batch = [4, 5].map((id) => ({
      ...{ specversion: '1.0', id: String(id), source: '/topic', type: 'a', data: { id } },
    }));
    await topics.produce(topic, [
      { value, headers: { ...headers, ce_subject: 'Zürich' } },
      { value: JSON.stringify(batch) },
      { value, headers: { ...headers, ce_id: '' } },
    ]);
    await receiver.received(5);
    const texts = receiver.requests.map(({ body }) => body.toString());
    const sent = texts.map((text) => JSON.parse(text) as Sent);
    assert.equal(sent.map(({ id, source }) => `${source} ${id}`).sort(), [
      '/shop 1',
      '/shop 2',
      '/topic 3',
      '/topic 4',
      '/topic 5',
    ]);
    assert.is(sent.find(({ id }) => id === '3')!.subject, 'Zürich');
    assert.ok(texts.some((text) => text.endsWith(`"data":${value}}`)));
    assert.ok(texts.some((text) => text.endsWith('"data":{"total":12.50}}')));
    const quarantined = async () =>
      (
        await gateway.api<{ content: { code: string; reason: string; uid: string }[] }>(
          'GET',
          '/quarantine',
        )
      ).content;
    await until('the quarantine', async () => (await quarantined()).length === 1);
    const [{ code, reason } = { code: '', reason: '' }] = await quarantined();
    assert.is(code, 'undecodable');
    assert.match(reason, 'The attribute id is empty.');
  } finally {
    await gateway.close();
    await Promise.all([topics.close(), receiver.close()]);
  }
});

guide.run();
