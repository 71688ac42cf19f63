import type http from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { loopback } from '../support/ports.js';
import type { Tenant } from './tenant.js';

/** An attack on the other tenants by a tenant who only has a project key. */
export interface Attack {
  readonly name: string;
  /** Only in the long form: another test covers its limit too. */
  readonly isLong?: true;
  /** Sends nothing to the gateway: measures the effect of a busy process on the same machine. */
  readonly isControl?: true;
  /** Runs before the neighbour is measured. */
  readonly prepare?: (tenant: Tenant) => Promise<unknown>;
  readonly run: (tenant: Tenant) => Promise<unknown>;
  /** Keys of `Evidence` that prove that the attack took place and reached its limit. */
  readonly seen: readonly string[];
  /** Keys that must not be in `Evidence`. */
  readonly never?: readonly string[];
}

const MB = 1_000_000;
/**
 * The rate of most attacks: a quarter of the neighbour's events, or a few megabytes.
 * `api_rate_limit` and `limits.events_per_second` limit higher rates.
 */
const PER_SECOND = 25;
const LARGE_PER_SECOND = 5;
const LOOP = 'function transform() { for (;;); }';
const hang: http.RequestListener = (incoming) => void incoming.resume();
const ok: http.RequestListener = (incoming, response) =>
  void incoming.resume().once('end', () => response.end());
const event = (data: object, fields: object = {}) => ({ event_type: 'attack', data, ...fields });
const members = (count: number, prefix = 'k') =>
  Object.fromEntries(Array.from({ length: count }, (_, k) => [`${prefix}${k}`, k]));
const numbers = (count: number) => Array.from({ length: count }, (_, k) => k);

/** Retries practically forever. */
const strategy = { type: 'linear', duration: 1, retry_count: 1000 };

/** Creates resources until the project is full, or `most` exist. */
async function fill(
  most: number,
  create: (n: number) => Promise<{ readonly status: number }>,
): Promise<void> {
  let n = 0;
  const one = async () => {
    for (let status = 201; n < most && (status === 201 || status === 429);) {
      ({ status } = await create(n));
      if (status === 429) await sleep(100);
      else n++;
    }
  };
  await Promise.all(numbers(8).map(one));
}

/** Creates endpoints that never answer, with a timeout of two minutes. */
async function hanging(tenant: Tenant, most: number): Promise<void> {
  const url = await tenant.listen(hang);
  await fill(most, (n) =>
    tenant.call('POST', '/endpoints', {
      name: 'e',
      url: `${url}${n}`,
      http_timeout: 120,
      strategy,
    }),
  );
}

async function answering(tenant: Tenant): Promise<string> {
  return tenant.endpoint(await tenant.listen(ok));
}

/** A broker that accepts connections and never answers. */
async function tarpit(): Promise<string> {
  return `127.0.0.1:${await loopback(net.createServer((socket) => socket.on('error', () => undefined).resume()))}`;
}

function compute(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

export const attacks: readonly Attack[] = [
  {
    name: 'no attack: a program beside the gateway that computes half of the time',
    isLong: true,
    isControl: true,
    run: async (tenant) => {
      for (; !tenant.isOver; await sleep(20)) {
        compute(20);
        tenant.count('computed');
      }
    },
    seen: ['computed'],
  },
  {
    name: 'filters larger than they may be',
    isLong: true,
    run: async (tenant) => {
      const endpoint = await answering(tenant);
      const $or = numbers(60_000).map((n) => ({ amount: n }));
      const body = JSON.stringify({
        name: 's',
        endpoint_id: endpoint,
        filter_config: { filter: { body: { $or } } },
      });
      await tenant.repeat(LARGE_PER_SECOND, () => tenant.call('POST', '/subscriptions', body));
    },
    seen: ['413 body_too_large'],
  },
  {
    name: 'filters as large as they may be, in as many subscriptions, written again and again',
    prepare: async (tenant) => {
      const endpoint = await answering(tenant);
      const filter = {
        body: { $or: numbers(90).map((n) => ({ [`member ${n} ${'x'.repeat(80)}`]: n })) },
      };
      await fill(Infinity, () => tenant.subscribe(endpoint, { filter }));
    },
    run: async (tenant) => {
      const endpoint = await answering(tenant);
      await tenant.repeat(PER_SECOND, (n) =>
        tenant.call('PUT', `/endpoints/${endpoint}`, { description: String(n) }),
      );
    },
    seen: ['422 project_full', '200'],
  },
  {
    name: 'filters that compare 2,000 objects with 60,000 members',
    prepare: async (tenant) => {
      const endpoint = await answering(tenant);
      for (let k = 0; k < 20; k++)
        await tenant.subscribe(endpoint, {
          filter: { body: { a: { $in: numbers(190).map(() => ({})) } } },
        });
    },
    run: (tenant) => {
      const body = JSON.stringify(event({ a: members(60_000) }));
      return tenant.repeat(LARGE_PER_SECOND, () => tenant.call('POST', '/events', body));
    },
    seen: ['201'],
  },
  {
    name: 'events of a megabyte for endpoints that hang',
    prepare: (tenant) => hanging(tenant, 20),
    run: (tenant) => {
      const body = JSON.stringify(event({ text: 'x'.repeat(MB) }));
      return tenant.repeat(LARGE_PER_SECOND, () => tenant.call('POST', '/events/broadcast', body));
    },
    seen: ['201', 'requests to the attacker'],
  },
  {
    name: 'as many endpoints as may be, all of which hang, and each event for all of them',
    prepare: (tenant) => hanging(tenant, Infinity),
    run: (tenant) =>
      tenant.repeat(PER_SECOND, () => tenant.call('POST', '/events/broadcast', event({}))),
    seen: ['201', '422 project_full', 'requests to the attacker'],
  },
  {
    name: 'bodies with 130,000 unknown fields, and names of a megabyte',
    isLong: true,
    run: (tenant) => {
      const [many, long] = [members(130_000), { ['x'.repeat(MB)]: 1 }].map((more) =>
        JSON.stringify({ ...event({}), ...more }),
      );
      return tenant.repeat(LARGE_PER_SECOND, (n) =>
        tenant.call('POST', n % 2 === 0 ? '/events' : '/endpoints', n % 4 < 2 ? many : long),
      );
    },
    seen: ['422 invalid_request', '413 body_too_large'],
  },
  {
    name: 'a function that loops, written anew as fast as it can be',
    prepare: (tenant) =>
      tenant.source({ body_function: LOOP }).then((id) => (tenant.evidence[`source ${id}`] = 1)),
    run: async (tenant) => {
      const id = Object.keys(tenant.evidence)
        .find((key) => key.startsWith('source '))!
        .slice('source '.length);
      await tenant.repeat(20, async (n) => {
        await tenant.produce(numbers(10).map(String));
        await tenant.call('PUT', `/sources/${id}`, { body_function: `${LOOP} // ${n}` });
      });
    },
    seen: ['messages', '200'],
  },
  {
    name: 'a function that fills its memory, in ten sources',
    isLong: true,
    prepare: (tenant) =>
      Promise.all(
        numbers(10).map((k) =>
          tenant.source({
            name: String(k),
            body_function: `function transform() { const all = []; for (;;) all.push(new Array(1000).fill(${k})); }`,
          }),
        ),
      ),
    run: (tenant) => tenant.repeat(10, () => tenant.produce(numbers(20).map(String))),
    seen: ['messages'],
  },
  {
    name: 'sources that scan addresses inside',
    run: (tenant) => {
      const hosts = ['127.0.0.2', '169.254.169.254', '168.63.129.16', '[::1]', '10.0.0.1'];
      return tenant.repeat(PER_SECOND, async (n) => {
        const host = hosts[n % hosts.length]!;
        const sqs = {
          endpoint: `http://${host}:${tenant.order.port}`,
          queue_name: 'q',
          default_region: 'us-east-1',
          access_key_id: 'k',
          secret_key: 's',
        };
        const kafka = { brokers: [`${host}:${tenant.order.port}`], topic_name: 't' };
        const pubSub = n % 2 === 0 ? { type: 'sqs', sqs } : { type: 'kafka', kafka };
        const { text } = await tenant.call('POST', '/sources', {
          name: 's',
          type: 'pub_sub',
          pub_sub: pubSub,
        });
        if (/Nothing listens|closed the connection|path|healthz/.test(text))
          tenant.count('a port was told');
      });
    },
    seen: ['422 source_check_failed'],
    never: ['a port was told', '201'],
  },
  {
    name: 'connection tests of a server that answers without end',
    prepare: async (tenant) => {
      const piece = Buffer.alloc(65_536, 'x');
      const url = await tenant.listen((incoming, response) => {
        incoming.resume();
        response
          .writeHead(400, { 'content-type': 'application/x-amz-json-1.0' })
          .write('{"message":"the words of the attacker ');
        const pour = () => {
          while (!response.destroyed && response.write(piece));
        };
        response.on('drain', pour).on('error', () => undefined);
        pour();
      });
      tenant.evidence[`at ${url}`] = 1;
    },
    run: (tenant) => {
      const endpoint = Object.keys(tenant.evidence)
        .find((key) => key.startsWith('at '))!
        .slice('at '.length);
      return tenant.repeat(PER_SECOND, async () => {
        const sqs = {
          endpoint,
          queue_name: 'q',
          default_region: 'us-east-1',
          access_key_id: 'k',
          secret_key: 's',
        };
        const { text } = await tenant.call('POST', '/sources', {
          name: 's',
          type: 'pub_sub',
          pub_sub: { type: 'sqs', sqs },
        });
        if (text.includes('words of the attacker')) tenant.count('words of a server in an answer');
      });
    },
    seen: ['requests to the attacker'],
    never: ['words of a server in an answer', '201'],
  },
  {
    name: 'guessing of passwords and keys',
    run: (tenant) => {
      const { port } = tenant.order;
      const url = `http://127.0.0.1:${port}/api/v1/organisations`;
      return tenant.repeat(4 * PER_SECOND, (n) => {
        const guess =
          n % 2 === 0
            ? `Basic ${Buffer.from(`operator:${n}`).toString('base64')}`
            : `Bearer gw_${n}`;
        return tenant.ask('GET', url, undefined, { authorization: guess, address: '127.0.0.4' });
      });
    },
    seen: ['429 too_many_logins'],
    never: ['200'],
  },
  {
    name: 'reading what belongs to the neighbour',
    isLong: true,
    run: (tenant) => {
      const { port, neighbourId } = tenant.order;
      const of = (path: string) => `http://127.0.0.1:${port}/api/v1${path}`;
      const theirs = ['', '/endpoints', '/events', '/sources', '/quarantine'].map((path) =>
        of(`/projects/${neighbourId}${path}`),
      );
      const urls = [...theirs, of('/organisations'), of('/projects')];
      return tenant.repeat(PER_SECOND, async (n) => {
        const { text } = await tenant.ask('GET', urls[n % urls.length]!);
        if (text.includes('orders')) tenant.count('a name of the neighbour');
      });
    },
    seen: ['403 forbidden'],
    never: ['a name of the neighbour'],
  },
  {
    name: 'events of a megabyte',
    isLong: true,
    prepare: async (tenant) => tenant.subscribe(await answering(tenant)),
    run: (tenant) => {
      const body = JSON.stringify(event({ text: 'x'.repeat(MB) }));
      return tenant.repeat(LARGE_PER_SECOND, () => tenant.call('POST', '/events', body));
    },
    seen: ['201'],
  },
  {
    name: 'events as fast as they can be sent',
    isLong: true,
    prepare: async (tenant) => tenant.subscribe(await answering(tenant)),
    run: (tenant) => tenant.repeat(Infinity, (n) => tenant.call('POST', '/events', event({ n }))),
    seen: ['201', '429 too_many_requests'],
  },
  {
    name: 'a topic with a backlog without end',
    isLong: true,
    prepare: async (tenant) => {
      await tenant.subscribe(await answering(tenant));
      for (let k = 0; k < 20 * tenant.order.scale; k++)
        await tenant.produce(
          numbers(1000).map((n) => JSON.stringify(event({ n, text: 'x'.repeat(500) }))),
        );
      await tenant.source();
    },
    run: (tenant) =>
      tenant.repeat(10, () =>
        tenant.produce(numbers(200).map((n) => JSON.stringify(event({ n })))),
      ),
    seen: ['messages', 'requests to the attacker'],
  },
  {
    name: 'bodies that come a byte a second, on a thousand connections',
    isLong: true,
    run: async (tenant) => {
      const { port, key, projectId } = tenant.order;
      const sockets = numbers(1000 * tenant.order.scale).map(() => {
        const socket = net.connect(port, '127.0.0.1', () => tenant.count('connections'));
        socket
          .on('error', () => tenant.count('connections that were reset'))
          .on('close', () => tenant.count('connections that were closed'));
        const head = `POST /api/v1/projects/${projectId}/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n`;
        socket.write(head + '{'.repeat(100));
        return socket.resume();
      });
      while (!tenant.isOver) {
        for (const socket of sockets) if (socket.writable) socket.write(' ');
        await sleep(1000);
      }
      for (const socket of sockets) socket.destroy();
    },
    seen: ['connections'],
  },
  {
    name: 'lists, as deep and as many as can be asked for',
    isLong: true,
    prepare: async (tenant) => {
      await tenant.subscribe(await answering(tenant));
      await fill(500, (n) => tenant.call('POST', '/events', event({ n })));
    },
    run: (tenant) => {
      const paths = [
        '/events?',
        '/eventdeliveries?status=success&status=failure&',
        '/quarantine?search=x&',
        '/endpoints?',
        '/subscriptions?',
      ];
      return tenant.repeat(PER_SECOND, (n) =>
        tenant.call('GET', `${paths[n % paths.length]}perPage=200`),
      );
    },
    seen: ['200'],
  },
  {
    name: 'endpoints that refuse the connection, and retries without end',
    isLong: true,
    prepare: (tenant) =>
      fill(100, () =>
        tenant.call('POST', '/endpoints', { name: 'e', url: 'http://127.0.0.1:1/', strategy }),
      ),
    run: (tenant) =>
      tenant.repeat(PER_SECOND, () => tenant.call('POST', '/events/broadcast', event({}))),
    seen: ['201'],
  },
  {
    name: 'endpoints that answer bombs, and a byte a second',
    prepare: async (tenant) => {
      const bomb = gzipSync(Buffer.alloc(100 * MB));
      const url = await tenant.listen((incoming, response) => {
        incoming.resume();
        if (incoming.url?.includes('bomb'))
          return void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
        response.writeHead(200).write('x');
        const timer = setInterval(() => response.write('x'), 1000);
        response.once('close', () => clearInterval(timer));
      });
      for (let k = 0; k < 20; k++)
        await tenant.subscribe(await tenant.endpoint(`${url}${k % 2 === 0 ? 'bomb' : 'slow'}${k}`));
    },
    run: (tenant) => tenant.repeat(20, () => tenant.call('POST', '/events', event({}))),
    seen: ['201', 'requests to the attacker'],
  },
  {
    name: 'as many sources as may be, at a broker that says nothing',
    prepare: async (tenant) => {
      const kafka = { brokers: [await tarpit()], topic_name: 't' };
      const pubSub = { type: 'kafka', workers: 2, kafka };
      await fill(Infinity, (n) =>
        tenant.call('POST', '/sources?skip_check=true', {
          name: `s${n}`,
          type: 'pub_sub',
          pub_sub: pubSub,
        }),
      );
    },
    run: async (tenant) => {
      while (!tenant.isOver) await sleep(100);
    },
    seen: ['422 project_full'],
  },
  {
    name: 'a function that makes a thousand events of each message',
    prepare: async (tenant) => {
      await tenant.subscribe(await answering(tenant));
      await tenant.source({
        body_function:
          'function transform() { return Array.from({ length: 1000 }, (_, n) => ({ event_type: "a", data: { n } })); }',
      });
    },
    run: (tenant) => tenant.repeat(10, () => tenant.produce(numbers(50).map(String))),
    seen: ['messages'],
  },
  {
    name: 'messages that cannot be read, of a megabyte',
    isLong: true,
    prepare: (tenant) => tenant.source(),
    run: (tenant) =>
      tenant.repeat(2, () => tenant.produce(numbers(3).map(() => 'x'.repeat(900_000)))),
    seen: ['messages'],
  },
  {
    name: 'event types, each once',
    isLong: true,
    prepare: async (tenant) => tenant.subscribe(await answering(tenant)),
    run: (tenant) =>
      tenant.repeat(PER_SECOND, (n) =>
        tenant.call('POST', '/events', { event_type: `${n} ${'x'.repeat(500)}`, data: {} }),
      ),
    seen: ['201'],
  },
  {
    name: 'arrays a thousand levels deep, and headers by the hundred',
    isLong: true,
    run: (tenant) => {
      const deep = `{"event_type":"a","data":{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}}`;
      const headers = JSON.stringify(
        event(
          {},
          {
            custom_headers: Object.fromEntries(
              numbers(5000).map((n) => [`x-${n}`, 'y'.repeat(100)]),
            ),
          },
        ),
      );
      return tenant.repeat(LARGE_PER_SECOND, (n) =>
        tenant.call('POST', '/events', n % 2 === 0 ? deep : headers),
      );
    },
    seen: ['400 bad_body'],
  },
];
