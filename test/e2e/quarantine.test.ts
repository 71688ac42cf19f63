// deadline: 120 s
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { production, subscribed } from '../support/production.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';

const quarantine = suite('e2e/quarantine');

quarantine(
  'a poisoned message is listed, edited, replayed while its source is read, delivered with a valid signature, and never twice',
  async () => {
    const queues = await sqs();
    const receiver = await endpoint();
    const gateway = await production();
    const config = { database: gateway.database.connection, kv: gateway.kv.connection };
    const run = (...args: string[]) =>
      runGateway(['utils', 'quarantine', ...args], {
        config,
        env: { EDITOR: "sed -i 's/}$/}}/'" },
      });
    try {
      const { secret } = await subscribed(gateway, receiver.url);
      const queue = queues.queue();
      await gateway.api('POST', '/sources', {
        name: 'orders',
        type: 'pub_sub',
        pub_sub: { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) },
      });
      await queues.send(queue, [
        '{"event_type":"order.paid","data":{"price":1.10}',
        '{"event_type":"order.paid","data":{"n":2}}',
      ]);
      await receiver.received(1);
      const [poisoned] = await until('the message to be quarantined', async () => {
        const { stdout } = await run('list', '--status', 'quarantined', '--json');
        const found = JSON.parse(stdout) as { id: string; code: string }[];
        return found.length > 0 && found;
      });
      assert.is(poisoned?.code, 'not_json');
      const id = poisoned!.id;

      const edited = await run('edit', id);
      assert.match(edited.stdout, `would be accepted → event ${id}`, edited.stderr);
      const outcomes = await Promise.all([run('replay', id), run('replay', id)]);
      assert.is(
        outcomes.filter(({ stdout }) => stdout.includes(`replayed → event ${id}`)).length,
        1,
        JSON.stringify(outcomes),
      );
      assert.match((await run('replay', id)).stdout, /was already replayed/);

      const [, request] = await receiver.received(2);
      const data = '{"price":1.10}';
      assert.is(request?.body.toString(), data);
      assert.not.throws(() => new Webhook(secret).verify(data, { ...request!.headers }));
      await until('both deliveries to be recorded', async () => {
        const { content } = await gateway.api<{ content: { status: string }[] }>(
          'GET',
          '/eventdeliveries',
        );
        return content.filter(({ status }) => status === 'success').length === 2;
      });
      assert.equal(await gateway.database.rows('select count(*)::int as n from events'), [
        { n: 2 },
      ]);
      assert.is(receiver.requests.length, 2);
    } finally {
      await gateway.close();
      await receiver.close();
      await queues.close();
    }
  },
);

quarantine.run();
