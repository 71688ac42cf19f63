// deadline: 180 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { kafka } from '../support/kafka.js';
import { kafkaSource, production, subscribed, type Created } from '../support/production.js';
import { until } from '../support/until.js';

const kept = suite('e2e/kept-messages');

/** Two events per message, without the card in it. */
const FUNCTION = `function transform({ lines }) {
  return lines.map((n) => ({ event_type: 'line', data: { n } }));
}`;

interface Event extends Created {
  readonly data: unknown;
}

kept(
  'what the functions of a topic and of an HTTP source got is shown with each event that they made, and nowhere else',
  async () => {
    const receiver = await endpoint();
    const gateway = await production({ agents: 1 });
    const topics = await kafka();
    try {
      await subscribed(gateway, receiver.url);
      const options = { body_function: FUNCTION, keep_messages: true };
      const topic = await kafkaSource(gateway, topics, 1, options);
      const http = await gateway.api('POST', '/sources', {
        name: 'hooks',
        type: 'http',
        ...options,
      });
      const { content: sources } = await gateway.api<{ content: Created[] }>('GET', '/sources');
      const topicSource = sources.find(({ uid }) => uid !== http.uid)!.uid;
      const [ofTopic, ofRequest] = [
        '{ "lines": [1, 2], "card": "4242 topic" }',
        '{ "lines": [3, 4], "card": "4242 http" }',
      ];
      await topics.produce(topic, [ofTopic]);
      const url = new URL(String(http['url']), `http://127.0.0.1:${gateway.serverPort}`);
      assert.is((await fetch(url, { method: 'POST', body: ofRequest })).status, 200);
      const requests = await receiver.received(4);
      for (const { body } of requests) assert.not.match(body.toString(), '4242');

      for (const [source, raw] of [
        [topicSource, ofTopic],
        [http.uid, ofRequest],
      ]) {
        const { content } = await until('both events', async () => {
          const page = await gateway.api<{ content: Event[] }>('GET', `/events?sourceId=${source}`);
          return page.content.length === 2 && page;
        });
        for (const { uid, data } of content) {
          assert.not.match(JSON.stringify(data), '4242');
          assert.is((await gateway.api<{ raw: string }>('GET', `/events/${uid}/message`)).raw, raw);
          const config = { database: gateway.database.connection };
          assert.is(
            (await runGateway(['utils', 'explain', uid, '--message'], { config })).stdout,
            raw,
          );
        }
      }
      assert.equal(await gateway.database.rows('select count(*)::int as n from event_messages'), [
        { n: 2 },
      ]);
    } finally {
      await gateway.close();
      await receiver.close();
      await topics.close();
    }
  },
);

kept.run();
