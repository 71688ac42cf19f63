import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RECEIVER, SAMPLE } from '#dashboard/pages/start/commands';
import { checksOf, type Progress } from '#dashboard/pages/start/progress';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { kafka, type KafkaBroker } from '../support/kafka.js';
import { sqs, type Queues } from '../support/sqs.js';
import { until } from '../support/until.js';
import { inspect, picture, visit, type Visit } from './browser.js';
import { emptyInstance } from './scene.js';

const firstRun = suite('dashboard/first-run');

let instance: Awaited<ReturnType<typeof emptyInstance>>;
let shop: Endpoint;
let broker: KafkaBroker;
let queues: Queues;
firstRun.before(async () => {
  [instance, shop, broker, queues] = await Promise.all([
    emptyInstance(),
    endpoint(),
    kafka(),
    sqs(),
  ]);
});
firstRun.after(async () => {
  await instance.close();
  await Promise.all([shop.close(), broker.close(), queues.close()]);
});

/** Opens the dashboard as the user created by `gateway bootstrap`. */
const open = (options: Parameters<typeof visit>[2] = {}): Promise<Visit> =>
  visit(instance.browser, instance.api.url, { cookie: instance.cookie, ...options });

/** Runs commands copied from a page. */
const run = async (command: string) =>
  (await promisify(execFile)('bash', ['-c', command], { timeout: 20_000 })).stdout;

firstRun(
  'an empty instance leads to a delivered message, by its lines and by keyboard alone',
  async () => {
    const { page, close } = await open();
    await page.getByRole('heading', { name: 'New project' }).waitFor();
    await until('the focus', () =>
      page.getByLabel('Name').evaluate((it) => it === it.ownerDocument.activeElement),
    );
    await inspect(page);
    await page.keyboard.type('Orders');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'First message' }).waitFor();
    await page.getByText('Waiting for a message.').waitFor();
    await inspect(page, 'start-empty-light');

    await page.getByLabel('URL').focus();
    await page.keyboard.type(shop.url);
    await page.keyboard.press('Enter');
    const secret = page.getByText(/^whsec_/).first();
    await secret.waitFor();
    await picture(page, 'start-endpoint-light');

    const keyText = await page.getByLabel('Key', { exact: true }).innerText();
    const post = await page.getByLabel('Post a message', { exact: true }).innerText();
    const answer = JSON.parse(await run(`${keyText}\n${post}`)) as {
      status: boolean;
      message: string;
    };
    assert.is(answer.status, true, answer.message);
    await page.getByText(`${SAMPLE.event_type} arrived.`).waitFor();
    await page.getByText(/accepted the event\./).waitFor();
    await inspect(page, 'start-done-light');
    assert.is(shop.requests.length, 1);
    await page.getByRole('link', { name: 'Go to overview' }).press('Enter');
    await page.getByText('Healthy: messages are accepted, routed and delivered.').waitFor();
    await close();
  },
);

firstRun(
  'a project without an endpoint says so, and the check tells what is wrong until it is mended',
  async () => {
    const { page, close } = await open({ theme: 'dark' });
    await page.getByRole('link', { name: 'New project' }).click();
    await page.getByLabel('Name').fill('Invoices');
    await page.getByRole('button', { name: 'Create project' }).click();
    await page.getByRole('heading', { name: 'First message' }).waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('This project has no endpoints yet').waitFor();
    await inspect(page, 'overview-new-dark');
    await page.getByRole('link', { name: 'Deliver a first message' }).click();

    await page.getByRole('button', { name: 'Send from here' }).click();
    await page.getByText('No endpoint received the event.').waitFor();
    shop.answer({ status: 500 });
    await page.getByLabel('URL').fill(shop.url);
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await page
      .getByText(/^whsec_/)
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Send from here' }).click();
    await page.getByText(/answered 500\. The gateway will retry/).waitFor();
    await inspect(page, 'start-failed-dark');
    shop.answer({ status: 204 });
    await page.getByRole('button', { name: 'Send from here' }).click();
    await page.getByText(/accepted the event\./).waitFor();
    await close();
  },
);

/** Creates a project with an endpoint, and chooses where its messages come from. */
async function from(origin: string, project: string): Promise<Visit> {
  const it = await open();
  const { page } = it;
  await page.getByRole('link', { name: 'New project' }).click();
  await page.getByLabel('Name').fill(project);
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.getByLabel('URL').fill(shop.url);
  await page.getByRole('button', { name: 'Add endpoint' }).click();
  await page.getByRole('button', { name: origin }).click();
  return it;
}

/** Waits until the page says that the message was delivered. */
async function delivered({ page }: Visit): Promise<void> {
  await page.getByText(`${SAMPLE.event_type} arrived.`).waitFor();
  await page.getByText(/accepted the event\./).waitFor();
  await page.getByRole('link', { name: 'Go to overview' }).waitFor();
}

firstRun('a message of a Kafka topic is delivered', async () => {
  const topic = await broker.topic();
  const it = await from('From Kafka', 'From a topic');
  const { page } = it;
  await page.getByLabel('Topic name').waitFor();
  await inspect(page, 'start-kafka-light');
  await page.getByLabel('Name', { exact: true }).fill('orders');
  await page.getByLabel('Brokers').fill(broker.listeners.plaintext);
  await page.getByLabel('Topic name').fill(topic);
  await page.getByRole('button', { name: 'Create source' }).click();
  const text = await page.getByLabel('First message', { exact: true }).innerText();
  const [, body, address, to] =
    /^echo '(.+)' \| kafka-console-producer\.sh --bootstrap-server (\S+) --topic (\S+)$/.exec(
      text,
    ) ?? [];
  assert.equal([address, to], [broker.listeners.plaintext, topic], text);
  await broker.produce(topic, [body ?? '']);
  await delivered(it);
  await inspect(page, 'start-kafka-done-light');
  await it.close();
});

firstRun('a message of an SQS queue is delivered', async () => {
  const queue = queues.queue();
  const connection = queues.connection(queue.name);
  const it = await from('From SQS', 'From a queue');
  const { page } = it;
  await page.getByLabel('Name', { exact: true }).fill('orders');
  await page.getByLabel('Access key').fill(connection.access_key_id);
  await page.getByLabel('Secret key').fill(connection.secret_key);
  await page.getByLabel('Region').fill(connection.default_region);
  await page.getByLabel('Queue name').fill(connection.queue_name);
  await page.getByLabel('Endpoint', { exact: true }).fill(connection.endpoint);
  await inspect(page, 'start-sqs-light');
  await page.getByRole('button', { name: 'Create source' }).click();
  const text = await page.getByLabel('First message', { exact: true }).innerText();
  const place = `--region ${connection.default_region} --endpoint-url '${connection.endpoint}'`;
  assert.match(text, `aws sqs get-queue-url ${place} --queue-name ${queue.name} `);
  await queues.send(queue, [/--message-body '(.+)'$/.exec(text)?.[1] ?? '']);
  await delivered(it);
  await it.close();
});

firstRun(
  'a provider that signs is given the URL, and no command that would be refused',
  async () => {
    const { page, close } = await from("From a provider's webhook", 'Signed');
    await page.getByLabel('Name', { exact: true }).fill('code host');
    await page.getByLabel('Verification').selectOption('GitHub');
    await page.getByLabel('Secret', { exact: true }).fill('a secret of the provider');
    await page.getByRole('button', { name: 'Create source' }).click();
    await page.getByText('only the provider can sign it').waitFor();
    const url = await page.getByText(/\/ingest\//).innerText();
    assert.is(new URL(url).origin, instance.api.url);
    assert.is(await page.getByLabel('First message', { exact: true }).count(), 0);
    await close();
  },
);

firstRun("a provider's webhook becomes a first message on the same page", async () => {
  const it = await from("From a provider's webhook", 'Payments');
  const { page, close } = it;
  await page.getByLabel('Name', { exact: true }).fill('billing provider');
  await page.getByRole('button', { name: 'Create source' }).click();
  const command = page.getByLabel('First message', { exact: true });
  await command.waitFor();
  await inspect(page, 'start-webhook-light');
  const text = await command.innerText();
  await until('the message', async () => {
    await run(text);
    return (await page.getByText(`${SAMPLE.event_type} arrived.`).count()) === 1;
  });
  await delivered(it);
  await close();
});

firstRun(
  'a viewer is told what is missing, and offered nothing that would be refused',
  async () => {
    await instance.become('viewer');
    const { page, close } = await open({ isPhone: true });
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.evaluate(
      "history.pushState(null, '', location.pathname.replace('overview', 'start')); dispatchEvent(new PopStateEvent('popstate'))",
    );
    await page.getByRole('heading', { name: 'First message' }).waitFor();
    await page.getByText('The command reads the API key').waitFor();
    await until(
      'no buttons',
      async () =>
        (await page
          .getByRole('button', { name: /Create key|Send from here|Add endpoint/ })
          .count()) === 0,
    );
    assert.is(await page.getByRole('link', { name: 'New project' }).count(), 0);
    await picture(page, 'start-viewer-phone');
    await close();
    await instance.become('owner');
  },
);

firstRun('the receiver to copy verifies a delivery', async () => {
  const folder = mkdtempSync(
    path.join(fileURLToPath(new URL('../../', import.meta.url)), '.tests', 'receiver-'),
  );
  const file = path.join(folder, 'receiver.mjs');
  writeFileSync(
    file,
    RECEIVER.replace(
      '.listen(process.env.PORT ?? 8080);',
      ".listen(0, function () { console.log('port', this.address().port); });",
    ),
  );
  const { call } = instance.api;
  const { status, body: project } = await call('POST', '/projects', { name: 'receiver' });
  assert.is(status, 201, JSON.stringify(project));
  const at = `/projects/${project.data.uid}`;
  const { body: made } = await call('POST', `${at}/endpoints`, { name: 'local', url: shop.url });
  let output = '';
  const child = execFile(process.execPath, [file], {
    env: { ...process.env, WEBHOOK_SECRET: made.data.secrets[0].value },
  });
  child.stdout!.on('data', (text: string) => (output += text));
  child.stderr!.on('data', (text: string) => (output += text));
  try {
    const port = await until('the receiver', () => /port (\d+)/.exec(output)?.[1]);
    await call('PUT', `${at}/endpoints/${made.data.uid}`, { url: `http://127.0.0.1:${port}/` });
    await call('POST', `${at}/subscriptions`, {
      name: 'all',
      endpoint_id: made.data.uid,
      filter_config: { event_types: ['*'] },
    });
    await call('POST', `${at}/events`, SAMPLE);
    await until('the message', () => output.includes('A-1001'));
    assert.equal(
      (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' })).status,
      400,
    );
  } finally {
    child.kill();
    rmSync(folder, { recursive: true });
  }
});

const event = {
  uid: 'e',
  event_type: 'order.paid',
  status: 'pending',
  created_at: '2026-01-01T00:00:00Z',
} as unknown as NonNullable<Progress['event']>;
const at = Date.parse(event.created_at);
const words = (progress: Partial<Progress>, afterMs = 0) =>
  checksOf(
    {
      endpoint: undefined,
      event: undefined,
      delivery: undefined,
      attempt: undefined,
      quarantinedCount: 0,
      ...progress,
    },
    at + afterMs,
  ).map(({ state, sentence }) => `${state}: ${sentence}`);

firstRun('each way that a first message can take is told', () => {
  assert.equal(
    words({ quarantinedCount: 1 })[0],
    'bad: A message arrived, but it was quarantined.',
  );
  assert.equal(words({ event })[1], 'waiting: The event is being routed.');
  assert.equal(
    words({ event }, 20_000)[1],
    'bad: No agent is routing events. Start one with gateway agent.',
  );
  const delivery = {
    uid: 'd',
    status: 'retry',
    attempts: 1,
    reason: null,
    endpoint_metadata: { name: 'shop' },
  } as unknown as NonNullable<Progress['delivery']>;
  const attempt = (fields: object) =>
    ({ http_status: null, error: null, ...fields }) as unknown as NonNullable<Progress['attempt']>;
  assert.equal(
    words({ event, delivery, attempt: attempt({ http_status: 500 }) })[1],
    'bad: shop answered 500. The gateway will retry.',
  );
  const refused = {
    event,
    delivery: { ...delivery, status: 'failure' as const },
    attempt: attempt({ error: 'the connection was refused' }),
  };
  assert.equal(
    words(refused)[1],
    'bad: shop has not accepted the event. The connection was refused.',
  );
  assert.equal(
    words({ event, delivery: { ...delivery, status: 'scheduled', attempts: 0 } })[1],
    'waiting: The event is on its way to shop.',
  );
});

firstRun.run();
