import http from 'node:http';
import net from 'node:net';
import { suite } from 'uvu';
import {
  sourceConformance,
  sourceRules,
  type Place,
  type SourceRig,
} from '@gateway/plugin-conformance';
import plugin, { type Connection } from '@gateway/source-sqs';
import { loopback } from '../support/ports.js';
import { proxy } from '../support/proxy.js';
import { sqs } from '../support/sqs.js';
import { judged } from './judged.js';

const conforms = suite('conformance/source-sqs');

judged(conforms, sourceRules, () => sourceConformance(plugin, rig), ['keeps-the-order']);

conforms.run();

/** The emulator, with a visibility timeout of two seconds. */
async function rig(): Promise<SourceRig<Connection>> {
  const queues = await sqs();
  const guarded = await proxy({ port: queues.port });
  // The emulator accepts any key; this server refuses as SQS does.
  const refusing = http.createServer((_request, response) => {
    const refusal = { __type: 'com.amazon.coral.service#SignatureDoesNotMatch', message: 'no' };
    response
      .writeHead(403, { 'content-type': 'application/x-amz-json-1.0' })
      .end(JSON.stringify(refusal));
  });
  const sockets = new Set<net.Socket>();
  const silent = net.createServer((socket) => void sockets.add(socket));
  const [refusingPort, silentPort] = [await loopback(refusing), await loopback(silent)];
  const at = (port: number) => `http://127.0.0.1:${port}`;

  const open = (endpoint?: string): Place<Connection> => {
    const queue = queues.queue({ VisibilityTimeout: '2' });
    return {
      connection: { ...queues.connection(queue.name), ...(endpoint !== undefined && { endpoint }) },
      send: (messages) =>
        queues.send(
          queue,
          messages.map(({ body, headers: attributes }) => ({
            body: Buffer.from(body).toString(),
            attributes,
          })),
        ),
      unacknowledged: () => {
        const { ready, inFlight, delayed } = queues.depth(queue);
        return Promise.resolve(ready + inFlight + delayed);
      },
    };
  };
  return {
    shape: 'queue',
    bodies: { binary: false, empty: false },
    leaseMs: 2_000,
    open: () => Promise.resolve(open()),
    openBreakable: () =>
      Promise.resolve({
        ...open(at(guarded.port)),
        cut: () => Promise.resolve(guarded.cut()),
        heal: () => Promise.resolve(guarded.restore()),
      }),
    reader: import.meta.resolve('@gateway/source-sqs'),
    wrongCredentials: {
      connection: {
        ...queues.connection('any'),
        secret_key: 'not-the-secret',
        endpoint: at(refusingPort),
      },
      secrets: ['not-the-secret'],
    },
    missing: { connection: queues.connection('nowhere') },
    silent: { connection: { ...queues.connection('any'), endpoint: at(silentPort) } },
    close: async () => {
      refusing.close();
      silent.close();
      for (const socket of sockets) socket.destroy();
      await guarded.close();
      await queues.close();
    },
  };
}
