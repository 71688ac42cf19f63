import type { Config } from '@gateway/core/config';
import { explainKvError, GatewayError, kvAddress } from '@gateway/core/errors';
import { openKv, retryKv, type Kv } from '@gateway/store/kv';

const PATIENCE_MS = 2_000;

/** Opens KV for one piece of work, tried for up to two seconds, and closes it. Throws `kv_unreachable` and its like. */
export async function withKv<T>({ kv: settings }: Config, work: (kv: Kv) => Promise<T>): Promise<T> {
  let last: unknown;
  const kv = openKv(settings, (error) => (last = error));
  try {
    return await retryKv(() => work(kv), PATIENCE_MS);
  } catch (error) {
    const explained = explainKvError(last ?? error, settings);
    if (explained instanceof GatewayError) throw explained;
    throw new GatewayError('kv_unreachable', { ...kvAddress(settings), reason: explained.message }, { cause: error });
  } finally {
    await kv.close();
  }
}
