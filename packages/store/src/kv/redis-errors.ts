import { Redis, type RedisOptions } from 'ioredis';

/** Why a connection is not there, until it is. Of commands ioredis says only that it is not there. */
const reasons = new WeakMap<object, Error>();

/**
 * Remembers of a connection why it is not there, and tells each of its errors.
 *
 * @param ask finds what an error of a Cluster or of Sentinels keeps to itself
 */
export function keepReasons(redis: Redis, { onError, ask }: { onError: (error: Error) => void; ask: () => Promise<unknown> }): void {
  redis.on('ready', () => reasons.delete(redis));
  redis.on('error', (error: Error) => {
    const tell = (cause: unknown = undefined) => {
      const reason = cause ?? (saysLittle(error) ? reasons.get(redis) : undefined);
      if (reason === undefined) reasons.set(redis, error);
      else error.cause ??= reason;
      if (cause) reasons.set(redis, error);
      onError(error);
    };
    if (hidesCause(error)) void ask().then(tell);
    else tell();
  });
}

/** The error of a command, with why there is no connection when that is what it is about. */
export function withReason(redis: Redis, error: unknown): unknown {
  const reason = reasons.get(redis);
  if (reason && error instanceof Error && saysLittle(error)) error.cause ??= reason;
  return error;
}

/** Why the first of these servers is of no use that is not; undefined when all are. */
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

function saysLittle({ message }: Error): boolean {
  return /Stream isn't writeable|Connection is closed|Cluster isn't ready|Cluster redirections/.test(message);
}

function hidesCause({ name, message }: Error): boolean {
  return name === 'ClusterAllFailedError' || /^All sentinels are unreachable.*Connection is closed/.test(message);
}
