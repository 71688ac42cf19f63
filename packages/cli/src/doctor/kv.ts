import { explainKvError, GatewayError, isGatewayError, kvAddress } from '@gateway/core/errors';
import type { Config } from '@gateway/core/config';
import { openKv } from '@gateway/store/kv';
import { retryUntil } from '../app/kv.js';
import { failed, failedBy, ok, warning, type Finding } from './finding.js';

const OLDEST = [6, 2] as const;
/** A connection is made in the background; this long is waited for it when there are errors, and when there are none yet. */
const PATIENCE_MS = 2_000;
const SILENCE_MS = 6_000;

export async function checkKv({ kv: settings }: Config): Promise<Finding> {
  if (settings.type === 'in-memory')
    return warning('kv', 'in the memory of each process', 'set kv.type to redis as soon as more than one process runs');
  let last: unknown;
  const kv = openKv(settings, (error) => (last = error));
  try {
    const isPatient = (waitedMs: number) => waitedMs < (last === undefined ? SILENCE_MS : PATIENCE_MS);
    return examine(await retryUntil(() => kv.info(), isPatient), placeOf(settings));
  } catch (error) {
    const explained = explainKvError(last ?? error, settings);
    const reason = explained.message;
    return failedBy('kv', isGatewayError(explained) ? explained : new GatewayError('kv_unreachable', { ...kvAddress(settings), reason }));
  } finally {
    await kv.close();
  }
}

function placeOf(settings: Config['kv']): string {
  const { host, port, sentinels, nodes } = kvAddress(settings);
  if (nodes) return `on one node of the Cluster with ${nodes}`;
  return sentinels ? `found through the Sentinels ${sentinels}` : `at ${host}:${port}`;
}

/** @param info the answer of Redis' INFO */
function examine(info: string | null, place: string): Finding {
  const fact = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info ?? '')?.[1]?.trim() ?? '';
  const version = fact('redis_version');
  const policy = fact('maxmemory_policy') || 'unknown';
  const kept = fact('aof_enabled') === '1' ? 'kept in an append-only file' : 'no append-only file';
  const sentence = `Redis ${version} ${place}, ${policy}, ${kept}`;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    return failed('kv', `${sentence}: too old`, `upgrade Redis to ${OLDEST.join('.')} or later`);
  if (policy !== 'noeviction' && policy !== 'unknown')
    return warning(
      'kv',
      sentence,
      'set maxmemory-policy to noeviction: signals that Redis evicts are found again, seconds later, in Postgres',
    );
  return ok('kv', sentence);
}
