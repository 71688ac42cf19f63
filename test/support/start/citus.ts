import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { answers, freePort } from '../ports.js';
import { discard, tempFolder } from './keep.js';
import { accepts, unprivilegedUser } from './postgres.js';
import { ServerProcess } from './server-process.js';
import { Unavailable } from './unavailable.js';

export interface CitusCluster {
  /** A database of the coordinator that knows the workers, as superuser. */
  readonly url: string;
  /** The coordinator, then the workers. Empty if the cluster was not started here. */
  readonly nodes: readonly ServerProcess[];
  close(): Promise<void>;
}

const BINARIES = '/usr/lib/postgresql/15/bin';
const WORKERS = 2;

/**
 * Starts a Citus cluster of a coordinator and workers, or returns that of `GATEWAY_CITUS` if it
 * is a URL. Otherwise `GATEWAY_CITUS` is a folder with the extension and `cluster.sh`, which needs
 * root; the default is `shared/citus` beside the repository.
 * @throws `Unavailable` without such a folder, or if the script fails there
 */
export async function startCitus(workers = WORKERS): Promise<CitusCluster> {
  const beside = fileURLToPath(new URL('../../../../shared/citus', import.meta.url));
  const place = process.env['GATEWAY_CITUS'] ?? beside;
  if (/^postgres(ql)?:/.test(place)) return { url: place, nodes: [], close: async () => undefined };
  const script = path.join(place, 'cluster.sh');
  if (!fs.existsSync(script))
    throw new Unavailable(
      `Citus: there is no ${script}; set GATEWAY_CITUS to the folder with cluster.sh, or to the URL of a coordinator`,
    );
  const folder = tempFolder('citus');
  const port = await firstOfFreePorts(workers + 1);
  const url = up(script, folder, port, workers);
  run(script, 'down', folder);
  const nodes = Array.from({ length: workers + 1 }, (_, k) => node(folder, k, port + k));
  const close = async () => {
    await Promise.all(nodes.map((it) => it.stop()));
    discard(folder);
  };
  try {
    await Promise.all(nodes.map((it) => it.start()));
  } catch (error) {
    await close();
    throw error;
  }
  return { url, nodes, close };
}

function up(script: string, folder: string, port: number, workers: number): string {
  try {
    return run(script, 'up', folder, String(port), String(workers)).trim();
  } catch (error) {
    const log = path.join(folder, 'n0.log');
    const lines = fs.existsSync(log) ? fs.readFileSync(log, 'utf8').trim().split('\n') : [];
    discard(folder);
    // An extension that is newer than this Postgres says so in the log only.
    const fatal = lines.findLast((line) => line.includes('FATAL')) ?? '';
    throw new Unavailable(`Citus: ${(error as Error).message}${fatal}`);
  }
}

function node(folder: string, k: number, port: number): ServerProcess {
  // Each database with the extension has a background worker on each node.
  const settings = { fsync: 'off', max_worker_processes: 300 };
  return new ServerProcess({
    name: k === 0 ? 'the Citus coordinator' : `Citus worker ${k}`,
    program: path.join(BINARIES, 'postgres'),
    args: [
      '-D',
      path.join(folder, `n${k}`),
      ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    ],
    folder,
    log: path.join(folder, `n${k}.log`),
    user: unprivilegedUser(),
    stopSignal: 'SIGINT',
    crashSignal: 'SIGQUIT',
    ready: () => accepts(`postgres://postgres@127.0.0.1:${port}/postgres`),
    startWithinMs: 60_000,
  });
}

function run(script: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('bash', [script, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${script} ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}

/** Returns the first of `count` consecutive ports that nothing listens on. */
async function firstOfFreePorts(count: number): Promise<number> {
  for (;;) {
    const port = await freePort();
    const others = Array.from({ length: count - 1 }, (_, k) => answers(port + 1 + k));
    if (!(await Promise.all(others)).includes(true)) return port;
  }
}
