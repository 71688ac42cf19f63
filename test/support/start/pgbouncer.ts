import fs from 'node:fs';
import path from 'node:path';
import { freePort } from '../ports.js';
import { tempFolder } from './keep.js';
import { installed } from './packages.js';
import { accepts, unprivilegedUser } from './postgres.js';
import { ServerProcess } from './server-process.js';

export interface PgBouncer extends ServerProcess {
  readonly port: number;
}

/**
 * Starts Debian's `pgbouncer` in transaction mode, for all databases of a Postgres. Its sessions have
 * the user of the URL.
 * @param more additional settings of the section `pgbouncer`,
 * `{ ignore_startup_parameters: 'options' }`
 * @throws `Unavailable` if it cannot be installed
 */
export async function startPgBouncer(
  postgresUrl: string,
  more: Readonly<Record<string, string | number>> = {},
): Promise<PgBouncer> {
  installed('pgbouncer', ['pgbouncer'], 'for the tests of connection poolers');
  const folder = tempFolder('pgbouncer');
  const user = unprivilegedUser();
  if (user) fs.chownSync(folder, user.uid, user.gid);
  const { hostname, port: postgresPort, username } = new URL(postgresUrl);
  const port = await freePort();
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: 8,
    max_client_conn: 300,
    // A database can be dropped soon after its last client has disconnected.
    server_idle_timeout: 1,
    ...more,
  };
  const file = path.join(folder, 'pgbouncer.ini');
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`);
  fs.writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${hostname} port=${postgresPort} user=${username}`,
      '[pgbouncer]',
      ...lines,
      '',
    ].join('\n'),
  );
  const server = new ServerProcess({
    name: 'PgBouncer',
    program: 'pgbouncer',
    args: [file],
    folder,
    log: path.join(folder, 'pgbouncer.log'),
    user,
    stopSignal: 'SIGTERM',
    ready: () => accepts(`postgres://postgres@127.0.0.1:${port}/postgres`),
    startWithinMs: 30_000,
  });
  await server.start();
  return Object.assign(server, { port });
}
