import { watch, type FSWatcher } from 'node:fs';
import type { Server } from 'node:https';
import { dirname } from 'node:path';
import { isGatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { readTlsPair, type TlsFiles, type TlsPair } from './tls.js';

/** A renewal writes two files; they are read when both are there. */
const SETTLE_MS = 300;
/** In case a change was not heard of: folders on a network do not tell of theirs. */
const LOOK_MS = 60_000;

/**
 * Takes a renewed certificate on without a restart: new connections get it, open ones stay. Files that cannot be used are told of once, and what is
 * in use stays in use.
 *
 * @param inUse what the server was made with
 */
export function followTls(
  server: Server,
  { files, inUse, log, lookMs = LOOK_MS }: { files: TlsFiles; inUse: TlsPair; log: Log; lookMs?: number },
): { close(): void } {
  let present = textOf(inUse);
  let told = '';
  warnOfEnd(inUse, log);

  const look = () => {
    try {
      const pair = readTlsPair(files);
      if (textOf(pair) === present) return;
      server.setSecureContext(pair.options);
      present = textOf(pair);
      told = '';
      log.info({ expires_at: pair.expiresAt.toISOString() }, 'The renewed certificate is in use.');
      warnOfEnd(pair, log);
    } catch (error) {
      if (!isGatewayError(error)) throw error;
      if (error.message !== told) log.warn({ code: error.code, fix: error.fix }, `The certificate in use stays: ${error.message}.`);
      told = error.message;
    }
  };

  let settling: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(settling);
    settling = setTimeout(look, SETTLE_MS);
  };
  // Folders and not the files: a renewal puts new ones in their place, and one that is mounted changes a link beside them.
  const watchers = [...new Set([dirname(files.certificate), dirname(files.key)])].flatMap((folder) => watched(folder, changed));
  const timer = setInterval(look, lookMs);
  return {
    close: () => {
      clearInterval(timer);
      clearTimeout(settling);
      for (const watcher of watchers) watcher.close();
    },
  };
}

/** A system without watches left, or a folder that went away, is looked at all the same, each minute. */
function watched(folder: string, changed: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, changed);
    watcher.on('error', () => watcher.close());
    return [watcher];
  } catch {
    return [];
  }
}

function textOf({ options: { cert, key } }: TlsPair): string {
  return cert + key;
}

function warnOfEnd({ expiresAt }: TlsPair, log: Log): void {
  if (expiresAt <= new Date()) log.warn({ expired_at: expiresAt.toISOString() }, 'The certificate has expired: clients refuse it.');
}
