import { must } from './rule.js';

/**
 * Requires that the work rejects with an error that a person can act on: a sentence and a fix, as a `PluginError` has, also one of another copy of
 * `@gateway/plugin`.
 * @param what who rejects, for the reason
 * @param otherwise the reason when it resolves
 */
export async function mustReject(work: Promise<unknown>, what: string, otherwise: string): Promise<unknown> {
  const rejected = await work.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  must(rejected !== undefined, otherwise);
  mustHaveFix(rejected.error, what);
  return rejected.error;
}

/** Requires a sentence and a fix. */
export function mustHaveFix(error: unknown, what: string): void {
  must(error instanceof Error, `${what} failed with ${String(error)}, which is no Error`);
  const { name, message, fix } = error as Error & { fix?: unknown };
  must(message.trim() !== '', `${what} failed with an error that has no message`);
  must(
    typeof fix === 'string' && fix.trim() !== '',
    `${what} failed with "${name}: ${message}", which has no fix; throw a PluginError with one`,
  );
}

/** Requires that the text contains none of the secrets. */
export function mustNotTell(secrets: readonly string[], text: string, where: string): void {
  for (const secret of secrets) must(!text.includes(secret), `${where} contains a secret: ${text.replaceAll(secret, '***').slice(0, 300)}`);
}

/** The message and fix of an error and of its causes. */
export function toldBy(error: unknown): string {
  const parts: unknown[] = [];
  const seen = new Set<unknown>();
  for (let at = error; at !== undefined && at !== null && !seen.has(at); at = (at as { cause?: unknown }).cause) {
    seen.add(at);
    const { message, fix } = at as { message?: unknown; fix?: unknown };
    parts.push(message, fix);
  }
  return parts.filter((part) => typeof part === 'string').join(' ');
}
