import type { Context } from 'koa';
import { explainDatabaseError, Health, isGatewayError, kvReason, VERSION } from '@gateway/core';
import { requireMigrated } from '@gateway/store';
import { send } from './envelope.js';
import type { Parts } from './parts.js';
import { within } from './within.js';

const PROBE_MS = 3_000;

/**
 * `GET /healthz`: the process is alive. With `?ready`: it can work too; 503 and the reason of each part when it cannot. Needs no key and tells no
 * secret: errors of Postgres are given in our words.
 */
export async function answerHealth(ctx: Context, parts: Parts, isClosing: boolean): Promise<void> {
  const asksReady = 'ready' in ctx.query;
  const health = new Health();
  if (asksReady) await Promise.all([probeDatabase(health, parts), probeKv(health, parts)]);
  if (asksReady && parts.billing) {
    const { problem } = parts.billing;
    if (problem === null) health.report('billing', 'ok');
    else health.report('billing', 'degraded', problem);
  }
  const ready = !isClosing && health.state !== 'down';
  const data = {
    ready,
    draining: isClosing,
    version: VERSION,
    environment: parts.config.env,
    state: health.state,
    components: health.components,
    plugins: parts.plugins.table,
  };
  if (asksReady) send(ctx, ready ? 200 : 503, { status: ready, message: ready ? 'ready' : 'not ready', data });
  else {
    const { version, environment, draining, plugins } = data;
    send(ctx, 200, { status: true, message: 'alive', data: { version, environment, draining, plugins } });
  }
}

async function probeDatabase(health: Health, { database, config }: Parts): Promise<void> {
  try {
    await within(PROBE_MS, requireMigrated(database));
    health.report('postgres', 'ok');
    health.report('migrations', 'ok');
  } catch (error) {
    if (isGatewayError(error, 'migration_pending') || isGatewayError(error, 'database_newer')) {
      health.report('postgres', 'ok');
      health.report('migrations', 'down', `${error.message}; ${error.fix}`);
    } else {
      health.report('postgres', 'down', explainDatabaseError(error, config.database).message);
      health.report('migrations', 'down', 'unknown while Postgres is away');
    }
  }
}

/** KV is a faster way to tell agents of new events; without it the server is slower, not unready. */
async function probeKv(health: Health, { kv, config }: Parts): Promise<void> {
  try {
    await within(PROBE_MS, kv.ping());
    health.report('kv', 'ok');
  } catch (error) {
    health.report('kv', 'degraded', `${kvReason(error, config.kv)}; events that are created here wait a few seconds to be routed`);
  }
}
