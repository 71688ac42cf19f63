import type { PluginLog } from '@gateway/plugin';
import { debug } from '@sentry/core';

type Print = (typeof debug)['log'];

/**
 * Lets the lines that Sentry prints when it debugs go to this log, where they would else go to standard output and break the form of standard error.
 * @returns what ends that
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

/** An error is told by its message: its fields may hold the request, with the key in it. */
function textOf(word: unknown): string {
  if (typeof word === 'string') return word;
  return word instanceof Error ? word.message : (JSON.stringify(word) ?? String(word));
}
