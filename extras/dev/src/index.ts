import type { FlagValues } from '@gateway/core/config';
import type { Discovery } from '@gateway/core/plugins';
import { parsePort, parseTopic } from './flags.js';

/**
 * Runs `gateway dev`.
 * @param given the flags of the command
 */
export async function runDev(given: FlagValues, discovery: Discovery): Promise<void> {
  const { once, fresh, kafka, port, 'agent-port': agentPort, ...flags } = given;
  const topics = (Array.isArray(kafka) ? kafka : []).map((text) => parseTopic(String(text)));
  const ports = { api: parsePort('--port', port), agent: parsePort('--agent-port', agentPort) };
  const { runSession } = await import('./run.js');
  const [isOnce, isFresh] = [once === true, fresh === true];
  await runSession({ isOnce, isFresh, ports, topics, flags, discovery });
}
