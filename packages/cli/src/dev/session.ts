import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, printed } from '../app/failure.js';
import { paint } from '../output/paint.js';
import { DevError } from './error.js';
import type { Topic } from './flags.js';
import type { Instance } from './instance.js';
import { followSample, sampleMessage } from './sample.js';
import { addTopic } from './setup.js';
import { followTraffic } from './traffic.js';

export interface SessionOptions {
  readonly isOnce: boolean;
  readonly topics: readonly Topic[];
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

const SOURCE_MS = 20_000;

/**
 * Shows the sample (on the first start, and with `isOnce`), the addresses, and the traffic. Adds
 * the topics. With `isOnce`, throws a DevError when the sample or a topic failed.
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
  print('\nA message on its way:\n');
  const { request, headers, body } = await followSample(sampleMessage('A-1001'), instance, print);
  print('\nWhat the inbox got:\n');
  for (const line of [
    request,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ])
    print(`    ${line}`);
  print(`\n${body.replaceAll(/^/gm, '    ')}`);
}

async function showTopic(
  topic: Topic,
  instance: Instance,
  print: (line: string) => void,
): Promise<void> {
  const { source, isNew } = await addTopic(instance.api, instance.state, topic);
  await sourceIsRead(
    source,
    instance,
    'check that the broker runs and that its address is right, then start again with --kafka',
  );
  print(
    `the topic ${topic.name} on ${topic.brokers.join(',')} is a source ${isNew ? 'now' : 'already'}`,
  );
}

/** Waits until the agent reads the source. Throws a DevError when it cannot. */
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
