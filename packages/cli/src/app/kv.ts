import type { Config } from '@gateway/core/config';
import { explainKvError, GatewayError, kvAddress } from '@gateway/core/errors';
import { openKv, type Kv } from '@gateway/store/kv';

const PAUSE_MS = 50;

/**
 * Repeats a request until it succeeds: KV connects in the background, and until then every command fails at once.
 *
 * @param isPatient whether to try once more after so many milliseconds; if not, the last error is thrown
 */
export async function retryUntil<T>(ask: () => Promise<T>, isPatient: (waitedMs: number) => boolean): Promise<T> {
  const beganAtMs = performance.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isPatient(performance.now() - beganAtMs)) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** Opens KV for one piece of work, tried for up to two seconds, and closes it. Throws `kv_unreachable` and its like. */
export async function withKv<T>({ kv: settings }: Config, work: (kv: Kv) => Promise<T>): Promise<T> {
  let last: unknown;
  const kv = openKv(settings, (error) => (last = error));
  try {
    return await retryUntil(
      () => work(kv),
      (waitedMs) => waitedMs < 2_000,
    );
  } catch (error) {
    const explained = explainKvError(last ?? error, settings);
    if (explained instanceof GatewayError) throw explained;
    throw new GatewayError('kv_unreachable', { ...kvAddress(settings), reason: explained.message }, { cause: error });
  } finally {
    await kv.close();
  }
}
