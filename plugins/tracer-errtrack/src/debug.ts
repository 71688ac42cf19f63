import type { PluginLog } from '@gateway/plugin';
import { debug } from '@sentry/core';

type Print = (typeof debug)['log'];

/**
 * Redirects the debug output of Sentry to this log; it would go to standard output and mix with the log lines.
 * @returns a function that ends this
 */
export function debugInto(log: PluginLog | undefined): () => void {
  if (!log) return () => undefined;
  const { log: print, warn, error } = debug;
  const into =
    (level: 'info' | 'warn'): Print =>
    (...words) => {
      if (debug.isEnabled()) log[level]({ tracer: 'errtrack', debug: true }, words.map(textOf).join(' '));
    };
  Object.assign(debug, { log: into('info'), warn: into('warn'), error: into('warn') });
  return () => {
    debug.disable();
    Object.assign(debug, { log: print, warn, error });
  };
}

/** Only the message of an error: its fields may hold the request, with the key in it. */
function textOf(word: unknown): string {
  if (typeof word === 'string') return word;
  return word instanceof Error ? word.message : (JSON.stringify(word) ?? String(word));
}
