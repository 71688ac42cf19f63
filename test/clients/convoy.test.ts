// deadline: 180 s, long
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { production } from '../support/production.js';
import { own } from '../support/services.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';

const clients = suite('clients/convoy');

const [gateway, receiver, queues] = await Promise.all([
  production({ agents: 1 }),
  endpoint(),
  sqs(),
]);
clients.after(
  async () => void (await Promise.all([gateway.close(), receiver.close(), queues.close()])),
);
const base = `http://127.0.0.1:${gateway.serverPort}/convoy/api`;
const queue = queues.queue();

/** Runs a script of this folder with the package. Returns its output; throws with its errors. */
async function use(requirement: string, script: string): Promise<Record<string, string>> {
  const python = await own.python(requirement);
  const connection = JSON.stringify(queues.connection(queue.name));
  const args = [
    fileURLToPath(new URL(script, import.meta.url)),
    base,
    gateway.projectId,
    gateway.apiKey,
    receiver.url,
    connection,
  ];
  return new Promise((resolve, reject) => {
    execFile(python, args, { timeout: 60_000 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${requirement}: ${stderr}${stdout}`));
      else resolve(JSON.parse(stdout) as Record<string, string>);
    });
  });
}

const signed = (secret: string, body: Buffer) =>
  createHmac('sha512', secret).update(body).digest('hex');

clients(
  'the stable client of Python works with a new base URL, and its receivers verify by the secret that it gave',
  async () => {
    const { secret } = await use('convoy-python==0.2.0', 'convoy_0_2.py');
    assert.is(secret, 'endpoint-secret');
    await receiver.received(2);
    const [first] = receiver.requests.filter(({ url }) => url === '/old');
    assert.equal(JSON.parse(first!.body.toString()), { event: 'old.single', data: { n: 1 } });
    await gateway.api('POST', '/events/broadcast', { event_type: 'old.signed', data: {} });
    const requests = await receiver.received(3);
    const last = requests.find(({ headers }) => headers['x-convoy-signature'] !== undefined)!;
    assert.is(last.headers['x-convoy-signature'], signed('endpoint-secret', last.body));
  },
);

clients(
  'the client of Python that is made from the description, in preview, works with a new base URL and reads every answer',
  async () => {
    const { endpoint: id } = await use('convoy-python==1.0.0a1', 'convoy_1_0.py');
    const mine = receiver.requests.filter(({ url }) => url === '/new');
    assert.equal(
      [...new Set(mine.map(({ body }) => (JSON.parse(body.toString()) as { n: number }).n))].sort(),
      [1, 2, 3],
    );
    assert.is(
      mine[0]!.headers['authorization'],
      `Basic ${Buffer.from('ada:hunter2').toString('base64')}`,
    );
    assert.is(mine.find(({ headers }) => headers['x-shop'])?.headers['x-shop'], '2');
    assert.ok(id);
  },
);

/** `{0}` in a request stands for the id in the first response. */
interface Recorded {
  readonly request: string;
  readonly type?: string;
  readonly body?: unknown;
  readonly status: number;
}

for (const name of ['convoy-go-2', 'convoy-js-2.1']) {
  clients(`every request that ${name} was recorded to send is answered as it expects`, async () => {
    const recorded = JSON.parse(
      fs.readFileSync(new URL(`../fixtures/clients/${name}.json`, import.meta.url), 'utf8'),
    ) as Recorded[];
    const known: Record<string, string> = {
      '{project}': gateway.projectId,
      '{receiver}': receiver.url,
    };
    const filled = (text: string) =>
      text.replaceAll(/\{(?:\d+|project|receiver)\}/g, (place) => known[place]!);
    for (const [k, { request, type, body, status }] of recorded.entries()) {
      const [method = '', path = ''] = filled(request).split(' ');
      const send = async () => {
        const response = await fetch(`${base}/v1${path}`, {
          method,
          headers: {
            authorization: `Bearer ${gateway.apiKey}`,
            ...(type === undefined ? {} : { 'content-type': type }),
          },
          ...(body === undefined || method === 'GET' ? {} : { body: filled(JSON.stringify(body)) }),
        });
        const text = await response.text();
        assert.is(response.status, status, `${request}: ${text}`);
        const { data } = JSON.parse(text) as { data: Made };
        return [data].flat()[0]?.uid ?? (data as Listed | null)?.content?.[0]?.uid;
      };
      const isNeeded = recorded.some((it) => JSON.stringify(it).includes(`{${k}}`));
      known[`{${k}}`] =
        (isNeeded ? await until(`an id from ${request}`, send) : await send()) ?? '';
    }
  });
}

type Row = { readonly uid: string };
type Listed = { readonly content?: readonly Row[] };
type Made = Row | (Row & Listed) | readonly Row[] | null;

clients.run();
