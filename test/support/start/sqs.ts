import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { answers, freePort } from '../ports.js';
import { tempFolder } from './keep.js';
import { ServerProcess } from './server-process.js';

/**
 * An SQS emulator in a separate process, which can be frozen. Without persistence: a restart
 * empties it.
 */
export interface SqsServer extends ServerProcess {
  readonly port: number;
  readonly region: string;
}

/** Starts an emulator on a free port. It accepts any key. */
export async function startSqs(): Promise<SqsServer> {
  const folder = tempFolder('sqs');
  const port = await freePort();
  const region = 'eu-west-1';
  const server = new ServerProcess({
    name: 'SQS emulator',
    program: process.execPath,
    args: [fileURLToPath(new URL('./sqs-server.mjs', import.meta.url)), String(port), region],
    folder,
    log: path.join(folder, 'sqs.log'),
    stopSignal: 'SIGTERM',
    ready: () => answers(port),
    startWithinMs: 30_000,
  });
  await server.start();
  return Object.assign(server, { port, region });
}
