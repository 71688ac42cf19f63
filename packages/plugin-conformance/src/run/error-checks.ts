import { must } from './judge.js';

/**
 * Sees that an error is one that a person can mend: a sentence and what to change. `PluginError` is, also that of another copy of this package.
 * @param what who failed, for the reason
 */
export function mustBeMendable(error: unknown, what: string): void {
  must(error instanceof Error, `${what} failed with ${String(error)}, which is no Error`);
  const { name, message, fix } = error as Error & { fix?: unknown };
  must(message.trim() !== '', `${what} failed without a sentence`);
  must(
    typeof fix === 'string' && fix.trim() !== '',
    `${what} failed with "${name}: ${message}", which says nothing of what to change; throw a PluginError with a fix`,
  );
}

/** Sees that none of the secrets is in the text. */
export function mustKeep(secrets: readonly string[], text: string, where: string): void {
  for (const secret of secrets)
    must(!text.includes(secret), `${where} tells a secret: ${text.replaceAll(secret, '<the secret>').slice(0, 300)}`);
}

/** Everything that an error tells, with its causes. */
export function toldBy(error: unknown): string {
  const parts: string[] = [];
  const seen = new Set<unknown>();
  for (let at = error; at !== undefined && at !== null && !seen.has(at); at = (at as { cause?: unknown }).cause) {
    seen.add(at);
    const { message, fix } = at as { message?: unknown; fix?: unknown };
    parts.push(...[message, fix].filter((part) => typeof part === 'string'));
  }
  return parts.join(' ');
}
