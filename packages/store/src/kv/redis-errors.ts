import { Redis, type RedisOptions } from 'ioredis';

/** Why each connection is down. ioredis fails commands without that reason. */
const reasons = new WeakMap<object, Error>();

/**
 * Records why a connection is down, and reports its errors.
 *
 * @param ask finds the cause that errors of a Cluster or of Sentinels omit
 */
export function keepReasons(redis: Redis, { onError, ask }: { onError: (error: Error) => void; ask: () => Promise<unknown> }): void {
  redis.on('ready', () => reasons.delete(redis));
  redis.on('error', (error: Error) => {
    const tell = (cause: unknown = undefined) => {
      const reason = cause ?? (hasNoReason(error) ? reasons.get(redis) : undefined);
      if (reason === undefined) reasons.set(redis, error);
      else error.cause ??= reason;
      if (cause) reasons.set(redis, error);
      onError(error);
    };
    if (hidesCause(error)) void ask().then(tell);
    else tell();
  });
}

/** Adds the reason why the connection is down to the error of a command. */
export function withReason(redis: Redis, error: unknown): unknown {
  const reason = reasons.get(redis);
  if (reason && error instanceof Error && hasNoReason(error)) error.cause ??= reason;
  return error;
}

/** The failure of the first server on which `use` fails; undefined when it works on all. */
export async function firstFailure(
  addresses: readonly { readonly host: string; readonly port: number }[],
  options: RedisOptions,
  use: (redis: Redis) => Promise<unknown>,
): Promise<unknown> {
  for (const address of addresses) {
    const redis = new Redis({ ...options, ...address, retryStrategy: () => null, lazyConnect: true, enableReadyCheck: false });
    let failure: unknown;
    redis.on('error', (error) => (failure = error));
    try {
      await redis.connect();
      await use(redis);
    } catch (error) {
      return failure ?? error;
    } finally {
      redis.disconnect();
    }
  }
  return undefined;
}

function hasNoReason({ message }: Error): boolean {
  return /Stream isn't writeable|Connection is closed|Cluster isn't ready|Cluster redirections/.test(message);
}

function hidesCause({ name, message }: Error): boolean {
  return name === 'ClusterAllFailedError' || /^All sentinels are unreachable.*Connection is closed/.test(message);
}
