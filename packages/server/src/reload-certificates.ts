import { watch, type FSWatcher } from 'node:fs';
import type { Server } from 'node:https';
import { dirname } from 'node:path';
import { isGatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { readTlsPair, type TlsFiles, type TlsPair } from './tls.js';

/** Waits until a renewal has written both files. */
const SETTLE_MS = 300;
/** Polls as well: network file systems report no changes. */
const POLL_MS = 60_000;

/**
 * Uses a renewed certificate for new connections, without a restart. Unusable files are logged once, and the certificate in use stays.
 *
 * @param inUse what the server was made with
 */
export function reloadCertificates(
  server: Server,
  { files, inUse, log, pollMs = POLL_MS }: { files: TlsFiles; inUse: TlsPair; log: Log; pollMs?: number },
): { close(): void } {
  const textOf = ({ options: { cert, key } }: TlsPair) => cert + key;
  let present = textOf(inUse);
  let logged = '';
  warnIfExpired(inUse, log);

  const reload = () => {
    try {
      const pair = readTlsPair(files);
      if (textOf(pair) === present) return;
      server.setSecureContext(pair.options);
      present = textOf(pair);
      logged = '';
      log.info({ expires_at: pair.expiresAt.toISOString() }, 'The renewed certificate is in use.');
      warnIfExpired(pair, log);
    } catch (error) {
      if (!isGatewayError(error)) throw error;
      if (error.message !== logged) log.warn({ code: error.code, fix: error.fix }, `The certificate in use stays: ${error.message}.`);
      logged = error.message;
    }
  };

  let settling: NodeJS.Timeout | undefined;
  const onChange = () => {
    clearTimeout(settling);
    settling = setTimeout(reload, SETTLE_MS);
  };
  // Watches folders, not files: renewals replace files, and mounted ones change a link beside them.
  const watchers = [...new Set([dirname(files.certificate), dirname(files.key)])].flatMap((folder) => watchFolder(folder, onChange));
  const timer = setInterval(reload, pollMs);
  return {
    close: () => {
      clearInterval(timer);
      clearTimeout(settling);
      for (const watcher of watchers) watcher.close();
    },
  };
}

/** Empty when the folder cannot be watched; polling covers it. */
function watchFolder(folder: string, onChange: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, onChange);
    watcher.on('error', () => watcher.close());
    return [watcher];
  } catch {
    return [];
  }
}

function warnIfExpired({ expiresAt }: TlsPair, log: Log): void {
  if (expiresAt <= new Date()) log.warn({ expired_at: expiresAt.toISOString() }, 'The certificate has expired: clients refuse it.');
}
