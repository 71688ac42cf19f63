import fs from 'node:fs';
import path from 'node:path';
import { freePort } from '../ports.js';
import { tempFolder } from './keep.js';
import { ServerProcess } from './server-process.js';

export interface PrometheusServer extends ServerProcess {
  /** `http://127.0.0.1:port` */
  readonly url: string;
}

/**
 * Starts a real Prometheus on a free port.
 * @param program its path
 * @param config the content of its file; JSON is valid YAML. Paths in it should be absolute.
 */
export async function startPrometheus(program: string, config: object): Promise<PrometheusServer> {
  const folder = tempFolder('prometheus');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const file = path.join(folder, 'prometheus.yml');
  fs.writeFileSync(file, JSON.stringify(config, null, 2));
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${path.join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const server = new ServerProcess({
    name: 'Prometheus',
    program,
    args: [...args, '--log.level=warn'],
    folder,
    log: path.join(folder, 'prometheus.log'),
    stopSignal: 'SIGTERM',
    ready: () => isReady(url),
    startWithinMs: 30_000,
  });
  await server.start();
  return Object.assign(server, { url });
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/-/ready`, { signal: AbortSignal.timeout(2_000) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}
