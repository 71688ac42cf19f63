import type { Context } from 'koa';
import { databaseReason, isGatewayError, kvReason } from '@gateway/core/errors';
import { Health, readySentence, VERSION } from '@gateway/core/process';
import { probeDatabase, requireMigrated } from '@gateway/store/postgres';
import { send } from '../http/envelope.js';
import type { Parts } from '../http/server-context.js';
import { withTimeout } from '@gateway/core/process';

const PROBE_MS = 3_000;

/**
 * `GET /healthz`: the process is alive. With `?ready`: it can work too; 503 and the reason of each part when it cannot, and since when: since the first
 * look that found it so. Needs no key and tells no secret: errors of Postgres are given in our words. Who asks while a look is under way gets its result.
 */
export function healthAnswer(parts: Parts, isClosing: () => boolean): (ctx: Context) => Promise<void> {
  const health = new Health();
  let looking: Promise<unknown> | undefined;
  const look = () =>
    (looking ??= Promise.all([probeDatabaseInto(health, parts), probeKv(health, parts)]).finally(() => (looking = undefined)));
  return async (ctx) => {
    const { environment, plugins } = { environment: parts.config.env, plugins: parts.plugins.table };
    if (!('ready' in ctx.query)) {
      send(ctx, 200, { status: true, message: 'alive', data: { version: VERSION, environment, draining: isClosing(), plugins } });
      return;
    }
    await look();
    if (parts.billing) {
      const { problem } = parts.billing;
      if (problem === null) health.report('billing', 'ok');
      else health.report('billing', 'degraded', problem);
    }
    const draining = isClosing();
    const { state, components } = health;
    const ready = !draining && state !== 'down';
    const data = { ready, draining, version: VERSION, environment, state, components, plugins };
    send(ctx, ready ? 200 : 503, { status: ready, message: readySentence(ready, draining, components), data });
  };
}

async function probeDatabaseInto(health: Health, { database, config }: Parts): Promise<void> {
  try {
    // First, since this one gives up by itself: the other would hold a connection for as long as Postgres is silent.
    const { isWritable } = await probeDatabase(database.pool, PROBE_MS);
    await withTimeout(requireMigrated(database), PROBE_MS).then(
      () => health.report('migrations', 'ok'),
      (error: unknown) => {
        // What a migration adds does not disturb the version before it (docs/guides/deploy.md, Upgrade). Unready, every server would be so from then on until it is
        // replaced, and with them the API.
        if (!isGatewayError(error, 'database_newer')) throw error;
        health.report('migrations', 'degraded', `${error.message}; this process goes on, and would not start again: ${error.fix}`);
      },
    );
    if (isWritable) health.report('postgres', 'ok');
    else {
      const { reason, fix } = databaseReason({ code: '25006' }, config.database);
      health.report('postgres', 'degraded', `${reason}. What is asked for is answered, what changes something is not. To mend it: ${fix}.`);
    }
  } catch (error) {
    if (isGatewayError(error, 'migration_pending')) {
      health.report('postgres', 'ok');
      health.report('migrations', 'down', `${error.message}; ${error.fix}`);
    } else {
      const { reason, fix } = databaseReason(error, config.database);
      health.report('postgres', 'down', `${reason}. To mend it: ${fix}.`);
      health.report('migrations', 'down', 'unknown while Postgres is away');
    }
  }
}

/** KV is a faster way to tell agents of new events; without it the server is slower, not unready. */
async function probeKv(health: Health, { kv, config }: Parts): Promise<void> {
  try {
    await withTimeout(kv.ping(), PROBE_MS);
    health.report('kv', 'ok');
  } catch (error) {
    health.report('kv', 'degraded', `${kvReason(error, config.kv)}; events that are created here wait a few seconds to be routed`);
  }
}
