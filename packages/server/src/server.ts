import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { explainDatabaseError, explainListenError, sealer, type ActivatedPlugins, type Config, type Log } from '@gateway/core';
import { openDatabase, openKv, requireMigrated, type Kv } from '@gateway/store';
import { createApp } from './app.js';

/** Seconds that requests under way have to end when the server closes. */
const CLOSE_SECONDS = 10;
const REQUEST_TIMEOUT_MS = 60_000;

export interface ServerOptions {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  /** In place of what the settings name: `gateway dev` shares one KV among its parts. */
  readonly kv?: Kv;
}

/**
 * Starts the control plane: the management API, /healthz and /metrics.
 *
 * @returns the port that it listens on, and `close`, which lets requests under way end
 * @throws GatewayError when the encryption key is missing, Postgres cannot be reached, a migration is pending, or the port is taken
 */
export async function startServer({ config, plugins, log, kv: givenKv }: ServerOptions): Promise<{ port: number; close(): Promise<void> }> {
  const seals = sealer(config.encryption_key);
  const database = openDatabase(config.database, { poolSize: config.database.max_open_connections, name: 'gateway-server' });
  // Only a faster way to tell agents of new events: the server starts and works without it.
  const kv = givenKv ?? openKv(config.kv, () => undefined);
  const release = async () => {
    if (!givenKv) await kv.close();
    await database.close();
  };
  try {
    await requireMigrated(database).catch((error: unknown) => {
      throw explainDatabaseError(error, config.database);
    });
    let closing = false;
    const answer = createApp({ config, database, kv, plugins, sealer: seals, log }, () => closing).callback();
    const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => void answer(request, response));
    const port = await listen(server, config);
    return {
      port,
      close: async () => {
        closing = true;
        await closeServer(server);
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

function listen(server: Server, { server: { http } }: Config): Promise<number> {
  const { port, bind } = http;
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(explainListenError(error, { port, bind, setting: 'server.http.port (PORT)', flag: '--port' })));
    server.listen(port, bind, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Takes no new connection, closes idle ones, and ends what is still under way after the deadline. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const impatient = setTimeout(() => server.closeAllConnections(), CLOSE_SECONDS * 1000);
    server.close(() => {
      clearTimeout(impatient);
      resolve();
    });
    server.closeIdleConnections();
  });
}
