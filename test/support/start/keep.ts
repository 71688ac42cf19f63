import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

let keeper: ChildProcess | undefined;

/**
 * Creates a folder in the system's temp folder. It is deleted when discarded, or when this process
 * ends for any reason.
 */
export function tempFolder(name: string): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `gateway-test-${name}-`));
  tell({ folder });
  return folder;
}

export function discard(folder: string): void {
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  tell({ leave: folder });
}

/** Keeps a folder of `tempFolder` when this process ends, for inspection. */
export function spare(folder: string): void {
  tell({ leave: folder });
}

/** Makes the keeper send this signal to the process when this process ends. */
export function keep(pid: number, signal: NodeJS.Signals): void {
  tell({ keep: { pid, signal } });
}

/** Releases a process that has ended: its pid can be reused. */
export function forget(pid: number): void {
  tell({ forget: pid });
}

function tell(change: object): void {
  keeper ??= startKeeper();
  keeper.stdin?.write(`${JSON.stringify(change)}\n`);
}

/**
 * Starts the keeper in a separate session, out of reach of Ctrl-C and of signals to this process
 * group, and without holding the event loop.
 */
function startKeeper(): ChildProcess {
  const script = fileURLToPath(new URL('./keeper.mjs', import.meta.url));
  const child = spawn(process.execPath, [script], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
  });
  child.unref();
  const input = child.stdin as typeof child.stdin & { unref(): void };
  input.unref();
  input.on('error', () => undefined); // the keeper was killed from outside
  return child;
}
