import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { freePort } from '../ports.js';
import { cached } from './cached.js';
import { tempFolder } from './keep.js';
import { installed } from './packages.js';
import { ServerProcess } from './server-process.js';
import { Unavailable } from './unavailable.js';

const VERSION = '2.6.13.Final';

/** A schema registry with its schemas in memory: a restart empties it. */
export interface RegistryServer extends ServerProcess {
  /** The base of the Confluent API. */
  readonly url: string;
  /** The base of its own API. */
  readonly ownUrl: string;
  readonly port: number;
}

/**
 * Starts Apicurio from its Maven artifact. Takes five to ten seconds.
 * @throws `Unavailable` without Java or the artifact
 */
export async function startRegistry(): Promise<RegistryServer> {
  installed('java', ['openjdk-17-jre-headless'], 'to run the schema registry (17 or newer)');
  const jars = cached(path.join('gateway-apicurio', VERSION), fetch);
  const folder = tempFolder('registry');
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const server = new ServerProcess({
    name: 'Apicurio',
    program: 'java',
    args: [
      '-Xmx512m',
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-Dquarkus.http.host=127.0.0.1',
      `-Dquarkus.http.port=${port}`,
      '-jar',
      path.join(jars, `apicurio-registry-app-${VERSION}-runner.jar`),
    ],
    folder,
    log: path.join(folder, 'registry.log'),
    stopSignal: 'SIGTERM',
    ready: () =>
      globalThis.fetch(`${base}/apis/ccompat/v7/subjects`).then(
        ({ ok }) => ok,
        () => false,
      ),
    startWithinMs: 120_000,
  });
  await server.start();
  return Object.assign(server, {
    url: `${base}/apis/ccompat/v7`,
    ownUrl: `${base}/apis/registry/v2`,
    port,
  });
}

function fetch(folder: string): void {
  installed('mvn', ['maven'], 'to fetch the schema registry');
  process.stderr.write(`fetching Apicurio ${VERSION} (70 MB)\n`);
  const artifact = `io.apicurio:apicurio-registry-app:${VERSION}:tar.gz:all`;
  const copy = [
    '-q',
    '-B',
    'dependency:copy',
    `-Dartifact=${artifact}`,
    `-DoutputDirectory=${folder}`,
  ];
  run('mvn', copy, folder);
  const archive = fs.readdirSync(folder).find((name) => name.endsWith('.tar.gz'))!;
  run('tar', ['xzf', archive], folder);
  fs.rmSync(path.join(folder, archive));
}

function run(program: string, args: readonly string[], cwd: string): void {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (status === 0) return;
  const said = `${stdout}${stderr}`.trim().split('\n').slice(0, 3).join(' ');
  throw new Unavailable(`Apicurio ${VERSION} could not be fetched with ${program}: ${said}`);
}
