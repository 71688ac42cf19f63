import { spawn } from 'node:child_process';
import path from 'node:path';
import { randomBytes } from 'node:crypto';
import { database } from '../support/database.js';
import { endpoint, type ReceivedRequest } from '../support/endpoint.js';
import { freePort } from '../support/ports.js';
import { redis } from '../support/redis.js';
import { forget, keep, tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';
import { until } from '../support/until.js';
import { blocksOf } from './page.js';

/** A broker for the guides that name one. */
interface Broker {
  readonly address: string;
  readonly topic: string;
  produce(): Promise<unknown>;
}

/**
 * Runs the shell blocks of a page word by word in one bash, as a reader does in one terminal, until
 * the endpoint of the guide has received its messages. Only what a guide says to replace is
 * replaced, by the table below.
 *
 * @param section heading at the second level; by default the whole page
 * @param options.path folders with the `gateway` command; `env` is added to the environment
 */
export async function follow(
  page: string,
  {
    section,
    path: programs,
    env = {},
    broker,
  }: {
    section?: string;
    path: readonly string[];
    env?: Readonly<Record<string, string>>;
    broker?: Broker;
  },
): Promise<readonly ReceivedRequest[]> {
  for (const program of ['curl', 'jq']) installed(program, [program], 'for the guides');
  const [db, kv, inbox] = await Promise.all([database(), redis(), endpoint()]);
  const name = `guide_${randomBytes(6).toString('hex')}`;
  const [server, agent, second] = [await freePort(), await freePort(), await freePort()];
  const { host, port, username } = db.connection;
  const table: readonly (readonly [written: string, here: string])[] = [
    ['--db-host localhost', `--db-host ${host} --db-port ${port} --db-database ${name}`],
    ['--db-username postgres', `--db-username ${username}`],
    ['--db-username gateway', `--db-username ${username}`],
    ['--kv-host localhost', `--kv-host ${kv.connection.host} --kv-port ${kv.connection.port}`],
    ['https://example.com/webhooks', inbox.url],
    ['kafka.example.com:9092', broker?.address ?? ''],
    ['"topic_name": "orders"', `"topic_name": "${broker?.topic}"`],
    ['127.0.0.1:5005', `127.0.0.1:${server}`],
    ['127.0.0.1:5008', `127.0.0.1:${agent}`],
    ['--port 5009', `--port ${second}`],
  ];
  const blocks = blocksOf(page)
    .filter((block) => block.kind === 'sh' && (!section || block.section === section))
    .map(({ text }) =>
      table.reduce((done, [written, here]) => done.replaceAll(written, here), text),
    );
  // Background processes end with the shell, which waits until its input is closed.
  const script = [
    'set -eo pipefail',
    `trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT`,
    ...blocks,
    'echo; echo "the guide is done"; cat',
  ].join('\n');
  const folder = tempFolder('guide');
  const shell = spawn('bash', ['--norc', '--noprofile', '-c', script], {
    cwd: folder,
    env: {
      ...env,
      PATH: [...programs, path.dirname(process.execPath), process.env['PATH']].join(':'),
      HOME: folder,
      PORT: String(server),
      AGENT_PORT: String(agent),
      GATEWAY_HTTP_BIND: '127.0.0.1',
      GATEWAY_DELIVERY_ALLOWED_NETWORKS: '127.0.0.0/8',
      GATEWAY_SOURCE_ALLOWED_NETWORKS: '127.0.0.0/8',
      GATEWAY_KV_DATABASE: String(kv.connection.database),
    },
    stdio: 'pipe',
  });
  keep(shell.pid!, 'SIGTERM');
  let output = '';
  for (const stream of [shell.stdout, shell.stderr])
    stream.on('data', (shown: Buffer) => (output += shown.toString()));
  let code: number | null | undefined;
  const ended = new Promise<void>((resolve) =>
    shell.once('close', (status) => {
      code = status;
      forget(shell.pid!);
      resolve();
    }),
  );
  try {
    const failed = () => {
      if (code !== undefined) throw new Error(`bash ended with ${code}:\n${output}`);
    };
    await until('the end of the guide', () => (failed(), output.includes('the guide is done')), {
      withinMs: 200_000,
    });
    await broker?.produce();
    return await inbox.received(broker ? 2 : 1);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${output}`, { cause: error });
  } finally {
    shell.stdin.end();
    await ended;
    await db.rows(`drop database if exists ${name} with (force)`);
    await Promise.all([db.close(), kv.close(), inbox.close()]);
  }
}
