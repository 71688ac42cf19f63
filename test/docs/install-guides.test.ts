import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { kafka } from '../support/kafka.js';
import { follow } from './follow.js';
import { programs } from './page.js';

/** The long form, `install-guides-installed`, installs the command, too. */
const guides = suite('docs/install-guides');

guides('README, In production, leads to delivered messages of the API and of a topic', async () => {
  const broker = await kafka();
  try {
    const topic = await broker.topic();
    const requests = await follow('README.md', {
      section: 'In production',
      path: [programs()],
      broker: {
        address: broker.listeners.plaintext,
        topic,
        produce: () => broker.produce(topic, ['{"event_type":"order.paid","data":{"id":"o-2"}}']),
      },
    });
    assert.equal(
      requests.map(({ body }) => JSON.parse(body.toString()) as unknown),
      [{ id: 'o-1' }, { id: 'o-2' }],
    );
  } finally {
    await broker.close();
  }
});

guides('docs/guides/install.md leads to a delivered message', async () => {
  const requests = await follow('docs/guides/install.md', { path: [programs()] });
  assert.equal(
    requests.map(({ body }) => JSON.parse(body.toString()) as unknown),
    [{ id: 'o-1' }],
  );
});

guides.run();
