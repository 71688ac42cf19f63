import { setTimeout as sleep } from 'node:timers/promises';
import { sentenceOf } from '@gateway/core/routing';
import { failureOf, printed } from '@gateway/cli/app/failure';
import { escapeLine } from '@gateway/cli/output/escape-terminal';
import { paint } from '@gateway/cli/output/paint';
import type { AttemptView, DeliveryView, EventView, QuarantinedView } from './api.js';
import type { KafkaTopic } from './flags.js';
import { DevError } from './services/dev-error.js';
import type { Instance } from './instance.js';
import type { Receipt } from './services/inbox.js';
import { QUEUE_NAME } from './services/queue.js';
import { addTopic } from './setup.js';
import { followTraffic } from './traffic.js';

interface SessionOptions {
  readonly isOnce: boolean;
  readonly topics: readonly KafkaTopic[];
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

const SOURCE_MS = 20_000;

/**
 * Shows the sample if this run created resources or `isOnce` is set, and adds the topics. Without
 * `isOnce`, also shows the addresses and the traffic. With `isOnce`, throws a DevError if the
 * sample or a topic failed.
 */
export async function showSession(instance: Instance, options: SessionOptions): Promise<void> {
  const { isOnce, topics, print } = options;
  print(`\n${paint('bold', 'Ready')} after ${(performance.now() / 1000).toFixed(2)} s.`);
  const failures: unknown[] = [];
  const report = (error: unknown) => {
    failures.push(error);
    if (!isOnce) print(printed(failureOf(error, { command: 'dev', flags: [] })).trimEnd());
  };
  if (isOnce || instance.made.length > 0) await showSample(instance, print).catch(report);
  if (!isOnce) {
    await followTraffic(instance, options);
    print(placesText(instance));
  }
  for (const topic of topics) await showTopic(topic, instance, print).catch(report);
  if (isOnce && failures.length > 0) throw failures[0];
}

async function showSample(instance: Instance, print: (line: string) => void): Promise<void> {
  await sourceIsRead(instance.sourceName, instance, 'correct the source, or start with --fresh');
  print('\nThe sample message:\n');
  const { request, headers, body } = await followSample(sampleMessage('A-1001'), instance, print);
  print('\nReceived by the inbox:\n');
  for (const line of [
    request,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ])
    print(`    ${line}`);
  print(`\n${body.replaceAll(/^/gm, '    ')}`);
}

async function showTopic(
  topic: KafkaTopic,
  instance: Instance,
  print: (line: string) => void,
): Promise<void> {
  const { source, isNew } = await addTopic(instance.api, instance.state, topic);
  await sourceIsRead(
    source,
    instance,
    'check that the broker runs and that its address is correct, then start again with --kafka',
  );
  print(
    `the topic ${topic.name} on ${topic.brokers.join(',')} is a source ${isNew ? 'now' : 'already'}`,
  );
}

/**
 * Waits until the agent reads the source. Throws a DevError if it cannot, or has not connected
 * within 20 seconds.
 */
async function sourceIsRead(source: string, { health }: Instance, fix: string): Promise<void> {
  const cannot = (reason: string) =>
    new DevError(`the source "${source}" is not read: ${reason}`, fix);
  for (const deadline = Date.now() + SOURCE_MS; Date.now() < deadline; await sleep(20)) {
    const component = (await health()).find(({ name }) => name === `source ${source}`);
    if (component?.state === 'ok') return;
    if (component?.state === 'down') throw cannot(component.reason ?? component.state);
  }
  throw cannot('the agent has not connected to it; it may be disabled');
}

function placesText({ api, state, serverUrl, agentUrl, queue, inbox }: Instance): string {
  const start = process.env['npm_lifecycle_event'] === 'start' ? 'npm start --' : 'gateway dev';
  const name = (text: string) => paint('bold', text.padEnd(11));
  const { user } = state.record;
  const login = user ? `  (${user.email}, password ${user.password})` : '';
  return `
  ${name('dashboard')}${serverUrl}${login}
  ${name('API')}${api.url}  (key and ids in .gateway/dev.json)
  ${name('health')}${serverUrl}/healthz?ready  ${agentUrl}/healthz?ready
  ${name('inbox')}${inbox.url}
  ${name('queue')}${queue.url}
  ${name('log')}.gateway/dev.log

Send another message to the queue:

  curl ${queue.endpoint} -d Action=SendMessage -d QueueUrl=${queue.url} --data-urlencode 'MessageBody=${sampleMessage('A-1002')}'

Read a Kafka topic too (stop this one first):

  ${start} --kafka localhost:9092/orders

Deliveries follow, a line each. Ctrl-C stops.
`;
}

/** Returns a sample message in a custom format, which the source's function turns into an event. */
function sampleMessage(number: string): string {
  return JSON.stringify({
    kind: 'order.created',
    shop: 'berlin',
    order: { number, total: '19.90', currency: 'EUR' },
  });
}

const DEADLINE_MS = 30_000;
const POLL_MS = 10;
const FRESH = 'or start with --fresh';

/**
 * Sends one message to the queue, follows it through the API to the inbox, and prints each step
 * with its time. Returns the verified request. Throws a DevError with the failed step and the
 * reason.
 */
async function followSample(
  body: string,
  { queue, api, inbox, project, state, health }: Instance,
  print: (line: string) => void,
): Promise<Receipt> {
  const { source_id: sourceId, endpoint_id: endpointId } = state.record;
  const failed = (what: string, fix: string) => new DevError(`the sample was ${what}`, fix);
  const sentAt = Date.now();
  let lastMs = 0;
  const step = (at: string | number, name: string, text: string) => {
    lastMs = Math.max(lastMs, new Date(at).getTime() - sentAt);
    print(`  ${`${lastMs} ms`.padStart(9)}  ${paint('bold', name.padEnd(9))}  ${text}`);
  };
  const until = async <T>(expected: string, find: () => Promise<T | undefined>): Promise<T> => {
    while (Date.now() < sentAt + DEADLINE_MS) {
      const found = await find();
      if (found !== undefined) return found;
      await sleep(POLL_MS);
    }
    const problems = (await health()).flatMap(({ name, state: is, reason = is }) =>
      is === 'ok' ? [] : [`${name}: ${reason}`],
    );
    throw failed(
      `not ${expected} within ${DEADLINE_MS / 1000} seconds: ${problems.join('; ') || 'a function that returns null drops it'}`,
      `read .gateway/dev.log, ${FRESH}`,
    );
  };
  const newest = async <T>(list: string) =>
    (await api.list<T>(`${project}/${list}?sourceId=${sourceId}&perPage=1`))[0];
  const before = [
    await newest<EventView>('events'),
    await newest<QuarantinedView>('quarantine'),
  ].map((it) => it?.uid);

  await queue.send(body);
  step(sentAt, 'sent', `to the queue ${QUEUE_NAME}: ${escapeLine(body, 100)}`);

  const event = await until('accepted', async () => {
    const quarantined = await newest<QuarantinedView>('quarantine');
    if (quarantined && !before.includes(quarantined.uid))
      throw failed(
        `quarantined (${quarantined.code}): ${quarantined.reason}`,
        `change the function of the source, ${FRESH}`,
      );
    const found = await newest<EventView>('events');
    return found && !before.includes(found.uid) && found.status !== 'pending' ? found : undefined;
  });
  const committed = `committed as event ${event.uid}, then acknowledged to the queue`;
  step(event.created_at, 'accepted', `transformed into ${event.event_type}, ${committed}`);

  const toInbox = async () => {
    const list = `${project}/eventdeliveries?eventId=${event.uid}`;
    const deliveries = await api.list<DeliveryView>(list);
    const found = deliveries.find(({ endpoint_id: endpoint }) => endpoint === endpointId);
    if (found) return found;
    const others = deliveries.map(({ endpoint_metadata: { name } }) => name).join(', ');
    throw failed(
      `not routed to the inbox: ${others ? `it went to ${others}` : sentenceOf(String(event.outcome))}`,
      `subscribe the endpoint Inbox to ${event.event_type}, ${FRESH}`,
    );
  };
  const { uid, created_at: routedAt, endpoint_metadata: endpoint } = await toInbox();
  step(routedAt, 'routed', `to the endpoint ${endpoint.name}`);

  const attempt = await until('delivered', async () => {
    const { status } = (await toInbox()).endpoint_metadata;
    if (status !== 'active')
      throw failed(`held: the endpoint Inbox is ${status}`, `activate it, ${FRESH}`);
    return (await api.list<AttemptView>(`${project}/eventdeliveries/${uid}/deliveryattempts`)).at(
      -1,
    );
  });
  const { http_status: status, error, response_body: response, number, duration_ms: ms } = attempt;
  const receipt = inbox.receipts.find(({ headers }) => headers['webhook-id'] === uid);
  if (!attempt.status || !receipt) {
    const answer = `answered ${status}${response ? `: ${escapeLine(response, 200)}` : ''}`;
    const reason =
      status === null ? error : `${receipt ? 'the inbox' : String(endpoint.url)} ${answer}`;
    throw failed(
      `not delivered to the inbox by attempt ${number}: ${String(reason).trim()}`,
      `check that the endpoint Inbox has the URL ${inbox.url}/, and that endpoint_secret in .gateway/dev.json is its secret, ${FRESH}`,
    );
  }
  step(
    Date.parse(attempt.requested_at) + ms,
    'delivered',
    `POST ${endpoint.url} answered ${status} in ${ms} ms, attempt ${number}`,
  );
  step(
    receipt.received_at,
    'verified',
    'by the inbox before it answered: the Standard Webhooks signature is valid',
  );
  return receipt;
}
