import type { Instance } from './instance.js';
import { paint } from '../output/paint.js';
import { LOOPBACK, type Ports } from './ports.js';
import { headerLines, type Receipt } from './receipt.js';
import { sampleMessage } from './sample.js';

/** The request as its receiver got it. */
export function shownRequest(receipt: Receipt): string[] {
  return [receipt.requestLine, ...headerLines(receipt), '', ...receipt.body.split('\n')].map((line) => (line ? `    ${line}` : ''));
}

/** Where everything is. */
export function shownPlaces({ apiUrl, queue }: Instance, ports: Ports): string[] {
  const at = (port: number, path = '') => `http://${LOOPBACK}:${port}${path}`;
  const rows = [
    ['API', `${apiUrl}  (key and ids in .gateway/dev.json)`],
    ['health', `${at(ports.api, '/healthz?ready')}  ${at(ports.agent, '/healthz?ready')}`],
    ['inbox', at(ports.inbox)],
    ['queue', queue.url],
    ['log', '.gateway/dev.log'],
  ];
  return rows.map(([name = '', text = '']) => `  ${paint('bold', name.padEnd(8))}${text}`);
}

/** What a person would type next, each line to be copied as it is. */
export function shownNext({ queue }: Instance): string[] {
  const message = sampleMessage('A-1002');
  const start = process.env['npm_lifecycle_event'] === 'start' ? 'npm start --' : 'gateway dev';
  return [
    'Send another message to the queue:',
    '',
    `  curl ${queue.endpoint} -d Action=SendMessage -d QueueUrl=${queue.url} --data-urlencode 'MessageBody=${message}'`,
    '',
    'Read a Kafka topic too (stop this one first):',
    '',
    `  ${start} --kafka localhost:9092/orders`,
  ];
}
