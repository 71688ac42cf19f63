import { settingAt, type FlagValues, type Resolved } from '@gateway/core/config';
import type { Dialogue } from './dialogue.js';

/** In the order of the questions. */
export const POSTGRES = [
  'database.host',
  'database.port',
  'database.username',
  'database.password',
  'database.database',
];
export const REDIS = ['kv.host', 'kv.port', 'kv.password'];

/** Their defaults would be a guess. */
const NEEDED = ['database.host', 'database.username', 'database.database', 'kv.host'];

/** For where no question can be asked. */
export function missingFlags({ config, origins, rows }: Resolved): string[] {
  return NEEDED.filter((key) => key !== 'kv.host' || hasKvHost(config))
    .filter((key) => origins.get(key) === 'default')
    .map((key) => `--${rows[key]!.flag}`);
}

/** Asks for settings that were not given, or with `again` for all. Returns the answers as flags. */
export async function askFor(
  keys: readonly string[],
  { config, origins, rows }: Resolved,
  { dialogue, again }: { dialogue: Dialogue; again: boolean },
): Promise<FlagValues> {
  const answers: Record<string, string> = {};
  for (const key of keys) {
    const { flag = '', summary, secret = false } = rows[key]!;
    if (origins.get(key) !== 'default' && !again) continue;
    if (key.startsWith('kv.') && !hasKvHost(config)) continue;
    const now = settingAt(config, key) as string | number | undefined;
    const shown = secret ? (now ? 'unchanged' : 'none') : now;
    const question = `${summary.replace(/\.$/, '')} [${shown}]: `;
    const answer = secret ? await dialogue.askHidden(question) : await dialogue.ask(question);
    if (answer !== '') answers[flag] = answer;
    else if (!secret) answers[flag] = String(now);
  }
  return answers;
}

/** Sentinels, a Cluster and an in-memory store have none. */
function hasKvHost({ kv }: Resolved['config']): boolean {
  return (
    kv.type === 'redis' && kv.sentinel.addresses.length === 0 && kv.cluster.addresses.length === 0
  );
}
